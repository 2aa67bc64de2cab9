"""What an unaligned checkpoint holds of the channels of one subtask, while it is gathered.

The barrier overtakes what waits, so the checkpoint must hold what it overtook: at the sender what
had not left yet, at the receiver what had arrived and what still arrives before the barrier does.
Batches are pickled when they are recorded, because whoever processes them may change the records;
those from another slot travel pickled anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.checkpoint.channel_state import ChannelState, InFlightData, OwnBatch
from penstock.common.plain import Plain
from penstock.errors import RecordError
from penstock.graph.execution_graph import ChannelId
from penstock.network.elements import Barrier, Watermark
from penstock.network.frames import dump_element
from penstock.runtime.output import OutputChannel


class InFlight:
    """The channel state of one checkpoint. It is whole when nothing more can be before the cut."""

    def __init__(self, checkpoint: int, alignment_ns: int) -> None:
        self.checkpoint = checkpoint
        self.alignment_ns = alignment_ns
        """From the first barrier to the last, once it is whole."""
        self.problem: RecordError | None = None
        """Why it cannot be stored: a record that cannot be pickled."""
        self._recorded: dict[ChannelId, list[int | bytes]] = {}
        self._own: OwnBatch | None = None
        self._open: set[ChannelId] = set()
        self._leaving: list[OutputChannel] = []

    def add(self, channel: ChannelId, elements: Iterable[Any]) -> None:
        """Elements that are before the cut in `channel`.

        Idleness is left out: after a restore everyone is waited for until they are idle again. So
        are ends of input, which whoever has ended repeats, and barriers, which are of checkpoints
        that were given up.
        """
        recorded = self._recorded.setdefault(channel, [])
        for element in elements:
            if isinstance(element, Watermark):
                recorded.append(element.timestamp)
            elif isinstance(element, bytes):
                recorded.append(element)
            elif isinstance(element, list):
                recorded.append(self._dump(element))

    def add_own(self, uid: str, subtask: int, batch: list[Any], split: Plain) -> None:
        """The rest of a batch that came in no channel, in the hands of the chain of `uid`."""
        self._own = OwnBatch(uid, subtask, self._dump(batch), split)

    def _dump(self, batch: list[Any]) -> bytes:
        try:
            return dump_element(batch)
        except RecordError as error:
            self.problem = RecordError(
                f"{error}; it is under way between subtasks of one slot, and an unaligned "
                "checkpoint must store it: make it picklable, or switch "
                "execution.checkpointing.unaligned.enabled off"
            )
            return b""

    # --- until it is whole --------------------------------------------------------------------

    def opened(self, channel: ChannelId) -> None:
        """What arrives in `channel` is before the cut, until it is closed."""
        self._open.add(channel)

    def closed(self, channel: ChannelId) -> bool:
        """Its barrier is here; whether that was the last one."""
        self._open.discard(channel)
        return not self._open

    def leaves_by(self, channels: Iterable[OutputChannel]) -> None:
        """In these the barrier still waits: either it leaves, or it will have to overtake."""
        self._leaving = [channel for channel in channels if channel.holds(self.checkpoint)]

    def pull(self, barrier: Barrier) -> None:
        """Barriers that have not left yet overtake now."""
        for channel in self._still_leaving():
            self.add(channel.id, channel.pull(barrier))
        self._leaving = []

    def _still_leaving(self) -> list[OutputChannel]:
        self._leaving = [channel for channel in self._leaving if channel.holds(self.checkpoint)]
        return self._leaving

    def whole_input(self) -> bool:
        """Whether every input channel has brought its barrier."""
        return not self._open

    def whole(self) -> bool:
        return not self._open and not (self._leaving and self._still_leaving())

    def data(self, edges: Mapping[int, str]) -> InFlightData:
        """All of it, edges by their names."""
        channels = tuple(
            ChannelState(edges[channel.edge], channel.sender, channel.receiver, tuple(elements))
            for channel, elements in self._recorded.items()
            if elements
        )
        return InFlightData(channels, self._own)
