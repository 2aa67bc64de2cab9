"""Links: how much has gone from one slot to another, counted behind the data.

A link is all that goes from one slot to one other slot; it keeps its order. A receiver sees a gap
in a channel when the next element comes, but behind the *last* element no other comes. So a sender
puts a count into the link now and then: how many elements and credits went into it before. A
receiver that has fewer of them when the count arrives has lost some, whatever the time. A link that
is slow, or full, brings its count late, and everything before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from penstock.graph.execution_graph import ChannelId, ExecutionGraph
from penstock.runtime.input_channel import InputChannel
from penstock.runtime.output import OutputChannel

REPEAT_AFTER = 10
"""A count that says nothing new is left out so many times: only a lost count is missed by that."""


class Links:
    """The links of one slot in one attempt, in both directions."""

    def __init__(
        self,
        graph: ExecutionGraph,
        senders: Mapping[ChannelId, OutputChannel],
        receivers: Mapping[ChannelId, InputChannel],
        granted: Mapping[ChannelId, int],
        credited: Mapping[ChannelId, int],
    ) -> None:
        """`senders` and `receivers` are the slot's ends of channels to and from other slots.

        `granted` holds the credits that the slot has sent so far, and `credited` those that it
        was sent, by channel; the slot keeps both up to date.
        """
        self._granted, self._credited = granted, credited
        self._senders: dict[int, list[OutputChannel]] = defaultdict(list)
        self._receivers: dict[int, list[InputChannel]] = defaultdict(list)
        for channel, sender in senders.items():
            self._senders[graph.slot_of(graph.receiver_of(channel))].append(sender)
        for channel, receiver in receivers.items():
            self._receivers[graph.slot_of(graph.sender_of(channel))].append(receiver)
        self._peers = sorted({*self._senders, *self._receivers})
        self._told: dict[int, int] = dict.fromkeys(self._peers, 0)
        self._left_out: dict[int, int] = dict.fromkeys(self._peers, 0)

    def counts(self) -> Iterator[tuple[int, int]]:
        """(slot, how much went into the link to it), for every link whose count is to be sent."""
        for peer in self._peers:
            count = self._sent(peer)
            if count == self._told[peer] and self._left_out[peer] < REPEAT_AFTER:
                self._left_out[peer] += 1
                continue
            self._told[peer], self._left_out[peer] = count, 0
            yield peer, count

    def lost(self, peer: int, count: int) -> int:
        """How much is missing of the `count` that `peer` put into its link before it said so."""
        elements = sum(channel.sequence for channel in self._receivers[peer])
        credits = sum(self._credited.get(channel.id, 0) for channel in self._senders[peer])
        return count - elements - credits

    def _sent(self, peer: int) -> int:
        elements = sum(channel.sequence for channel in self._senders[peer])
        credits = sum(self._granted.get(channel.id, 0) for channel in self._receivers[peer])
        return elements + credits
