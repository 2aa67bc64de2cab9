"""A subtask's part in checkpoints: what a barrier or a trigger makes it do.

A source and a subtask that has ended hear of a checkpoint by its trigger, all others by the
barriers in their channels. In either case it is the same: the barrier goes on downstream, the
operators are cut, and what was cut is stored beside the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.network.elements import Barrier
from penstock.network.messages import Trigger
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.event_progress import EventProgress
from penstock.runtime.operators import RuntimeSink
from penstock.runtime.snapshots import Snapshots
from penstock.runtime.split_reading import SplitReading
from penstock.runtime.subtask_parts import SubtaskParts


class Barriers:
    """The checkpoints of one subtask, in one attempt."""

    def __init__(
        self,
        parts: SubtaskParts,
        environment: SlotEnvironment,
        fail: Callable[[Any], None],
        time: EventProgress,
        reading: SplitReading | None,
    ) -> None:
        self._operators = parts.operators
        self._outputs = parts.outputs
        self._gate = parts.gate
        self._time = time
        self._reading = reading
        self._writers = [o.writer for o in parts.operators if isinstance(o, RuntimeSink)]
        self.snapshots = Snapshots(
            parts.id, parts.attempt, parts.operators, parts.store, environment, fail
        )
        self.requested: Trigger | None = None
        """A checkpoint that was triggered, and that nothing was done for yet."""
        self.suspended: int | None = None
        """The savepoint behind which nothing happens any more."""
        self._given_up = 0
        self._at_end = False

    def trigger(self, trigger: Trigger) -> None:
        """A checkpoint begins. Barriers bring it to all but sources and ended subtasks."""
        if trigger.checkpoint < self.snapshots.epoch:
            return
        if self._at_end:
            self.take(trigger, 0)
            return
        # What was assigned while an older, now abandoned, checkpoint was due counts for this.
        self.requested = None
        self._assign_late()
        self.requested = trigger

    def ended(self) -> None:
        """The subtask has come to its end, which counts as every later barrier."""
        self._at_end = True
        if self.requested is not None:
            self.take(self.requested, 0)

    def drain(self, cause: Barrier | Trigger, alignment_ns: int) -> Iterator[None]:
        """Let event time come to its end, then do the part in the savepoint."""
        yield from self._time.end()
        self.take(cause, alignment_ns)

    def take(self, cause: Barrier | Trigger, alignment_ns: int) -> None:
        """Do the part in a checkpoint here, between two records."""
        if cause.checkpoint >= self.snapshots.epoch:
            self._cut(cause, alignment_ns)
        if self.requested is not None and self.requested.checkpoint <= cause.checkpoint:
            self.requested = None
            if not self._at_end:
                self._assign_late()

    def _assign_late(self) -> None:
        if self._reading is not None:
            self._reading.take_late()

    def _cut(self, cause: Barrier | Trigger, alignment_ns: int) -> None:
        checkpoint, confirmed, savepoint = cause.checkpoint, cause.confirmed, cause.savepoint
        for writer in self._writers:
            writer.flush()
        if not self._at_end:
            for output in self._outputs:
                output.control(Barrier(checkpoint, confirmed, savepoint))
        # What has ended has no state any more, only output that is not committed yet.
        part = [o for o in self._operators if not self._at_end or isinstance(o, RuntimeSink)]
        cut = SubtaskSnapshot(
            self._at_end,
            self._time.watermark,
            alignment_ns=alignment_ns,
            clocks=self._time.snapshot(),
        )
        self.snapshots.take(checkpoint, confirmed, part, cut, savepoint)
        if savepoint is not None and savepoint.stop and checkpoint > self._given_up:
            self.suspended = checkpoint

    def abort(self, checkpoint: int) -> None:
        """The checkpoint was given up."""
        if self._gate is not None:
            self._gate.abort(checkpoint)
        self._given_up = max(self._given_up, checkpoint)
        if self.suspended is not None and self.suspended <= checkpoint:
            self.suspended = None
        self.snapshots.abort(checkpoint)


def drains(cause: Barrier | Trigger) -> bool:
    """Whether event time comes to its end before the cut."""
    return cause.savepoint is not None and cause.savepoint.drain
