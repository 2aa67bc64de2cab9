"""Signs of life: which slots have fallen silent, and which channels have lost their tail.

A gap in a channel is seen by its receiver. When the *last* elements are lost nothing follows that
would show the gap, so slots tell with every heartbeat how far each channel has come. An element
counts as lost when the receiver has looked at its socket several times after it was sent and still
has not seen it, for longer than anything can be under way.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.jobmanager.job import Job
from penstock.network.messages import Channel, Heartbeat, credits_of

POLLS_TO_BE_SURE = 3


@dataclass(frozen=True)
class _Sent:
    """What a sender had sent at some moment, and the receiver's polls when that was learnt."""

    sequence: int
    learnt_ms: int
    polls: int


class Liveness:
    """Knows of one attempt who was heard of when, and how far its channels are."""

    def __init__(self, timeout_ms: int, channel_timeout_ms: int, receivers: dict[Channel, int]):
        self._timeout_ms = timeout_ms
        self._channel_timeout_ms = channel_timeout_ms
        self._receiver_slot = receivers
        self._heard_ms: dict[int, int] = {}
        self._latest: dict[int, Heartbeat] = {}
        self._outstanding: dict[Channel, _Sent] = {}

    def heard(self, slot: int, now_ms: int) -> None:
        self._heard_ms[slot] = now_ms

    def heartbeat(self, beat: Heartbeat, now_ms: int) -> Channel | None:
        """Take a heartbeat in; the channel that is now known to have lost elements, if any."""
        self.heard(beat.slot, now_ms)
        self._latest[beat.slot] = beat
        for channel, sequence in beat.sent.items():
            receiver = self._latest.get(self._receiver_slot.get(channel, -1))
            if receiver is None or channel in self._outstanding:
                continue
            if receiver.received.get(channel, 0) < sequence:
                self._outstanding[channel] = _Sent(sequence, now_ms, receiver.polls)
        for channel, sent in list(self._outstanding.items()):
            if self._receiver_slot[channel] != beat.slot:
                continue
            if beat.received.get(channel, 0) >= sent.sequence:
                del self._outstanding[channel]
            elif (
                beat.polls - sent.polls >= POLLS_TO_BE_SURE
                and now_ms - sent.learnt_ms >= self._channel_timeout_ms
            ):
                return channel
        return None

    def silent(self, now_ms: int) -> int | None:
        """A slot that has not been heard of for too long."""
        for slot, heard in self._heard_ms.items():
            if now_ms - heard >= self._timeout_ms:
                return slot
        return None

    def next_check_ms(self) -> int | None:
        return min(self._heard_ms.values()) + self._timeout_ms if self._heard_ms else None

    def latest(self) -> dict[int, Heartbeat]:
        """The last heartbeat of each slot."""
        return dict(self._latest)


def liveness_of(job: Job) -> Liveness:
    """For a new attempt of `job`, of whose slots nothing has been heard yet."""
    graph = job.graph
    receivers: dict[Channel, int] = {}
    for subtask in graph.subtasks():
        for channel in graph.input_channels(subtask):
            receivers[channel] = graph.slot_of(subtask)
            receivers[credits_of(channel)] = graph.slot_of(graph.sender_of(channel))
    return Liveness(job.timeouts.heartbeat, job.timeouts.channel, receivers)
