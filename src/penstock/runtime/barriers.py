"""A subtask's part in checkpoints: what a barrier or a trigger makes it do.

A source and a subtask that has ended hear of a checkpoint by its trigger, all others by the
barriers in their channels. In either case it is the same: the barrier goes on downstream, the
operators are cut, and what was cut is stored beside the stream.

An aligned checkpoint becomes unaligned when its time is up: from then on barriers overtake. The
subtask cuts where it stands, room or not, and a barrier that still waits to leave is pulled ahead
of what waits before it. Until its barriers have left, a subtask therefore does not acknowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.network.elements import Barrier
from penstock.network.messages import Trigger
from penstock.runtime.ends import RuntimeSink, note_ends, outlives_its_input
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.event_progress import EventProgress
from penstock.runtime.in_flight import InFlight
from penstock.runtime.intake import Intake
from penstock.runtime.reporting import report_of
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
        self._clock = environment.clock
        self._time = time
        self._reading = reading
        self._writers = [o.writer for o in parts.operators if isinstance(o, RuntimeSink)]
        self.snapshots = Snapshots(
            parts.id,
            parts.attempt,
            parts.operators,
            parts.store,
            environment,
            fail,
            parts.edges,
            parts.checkpoint,
            parts.changelog_ms,
            parts.compresses,
        )
        self.requested: Trigger | None = None
        """A checkpoint that was triggered, and that nothing was done for yet."""
        self.suspended: int | None = None
        """The checkpoint behind which nothing happens any more."""
        self._given_up = 0
        self.at_end = False
        """Whether its input is over and all is done."""
        self._timed: Trigger | None = None
        self._deadline_ms = 0
        self._unaligned = 0
        self._in_flight: InFlight | None = None

    # --- beginnings ---------------------------------------------------------------------------

    def trigger(self, trigger: Trigger) -> None:
        """A checkpoint begins. Barriers bring it to all but sources and ended subtasks."""
        if trigger.overtakes_after_ms is not None and trigger.checkpoint > self._given_up:
            self._timed = trigger
            self._deadline_ms = self._clock.monotonic_ms() + trigger.overtakes_after_ms
        if trigger.checkpoint < self.snapshots.epoch:
            return
        if self.at_end:
            self.take(trigger, 0)
            return
        # What was assigned while an older, now abandoned, checkpoint was due counts for this.
        self.requested = None
        self._assign_late()
        self.requested = trigger

    def ended(self) -> None:
        """The subtask has come to its end, which counts as every later barrier."""
        self.at_end = True
        if self.requested is not None:
            self.take(self.requested, 0)

    def attend(self) -> Barrier | Trigger | None:
        """See to what is under way; the unaligned checkpoint that is to be cut now, room or not."""
        if self._timed is not None and self._clock.monotonic_ms() >= self._deadline_ms:
            self._time_is_up(self._timed)
        in_flight = self._in_flight
        if in_flight is not None and in_flight.whole():
            self._in_flight = None
            self.snapshots.gathered(in_flight)
        requested = self.requested
        hurried = requested is not None and requested.checkpoint == self._unaligned
        if self._gate is None:
            return requested if hurried else None
        if requested is not None and hurried:
            self._gate.demand(Barrier(requested.checkpoint, requested.confirmed, None, 0))
        return self._gate.overtaking

    def next_wakeup_ms(self) -> int | None:
        """When `attend` has something to do by the clock alone."""
        if self._timed is None:
            return None
        return self._clock.now_ms() + max(0, self._deadline_ms - self._clock.monotonic_ms())

    def _time_is_up(self, trigger: Trigger) -> None:
        """From now on the barriers of this checkpoint overtake."""
        self._timed = None
        self._unaligned = trigger.checkpoint
        if self._gate is not None:
            self._gate.may_overtake(trigger.checkpoint)
        if self._in_flight is not None and self._in_flight.checkpoint == trigger.checkpoint:
            self._in_flight.pull(Barrier(trigger.checkpoint, trigger.confirmed, None, 0))

    # --- cuts ---------------------------------------------------------------------------------

    def drain(self, cause: Barrier | Trigger, alignment_ns: int) -> Iterator[None]:
        """Let event time come to its end, then do the part in the savepoint."""
        yield from self._time.end()
        self.take(cause, alignment_ns)

    def take(
        self, cause: Barrier | Trigger, alignment_ns: int, intake: Intake | None = None
    ) -> None:
        """Do the part in a checkpoint here, between two records.

        With an `intake` it is the checkpoint that `attend` gave: what the subtask has read and
        not processed is part of it.
        """
        if cause.checkpoint >= self.snapshots.epoch:
            self._cut(cause, alignment_ns, intake)
        elif intake is not None and self._gate is not None:
            self._gate.abort(cause.checkpoint)
        if self.requested is not None and self.requested.checkpoint <= cause.checkpoint:
            self.requested = None
            if not self.at_end:
                self._assign_late()

    def _assign_late(self) -> None:
        if self._reading is not None:
            self._reading.take_late()

    def _cut(self, cause: Barrier | Trigger, alignment_ns: int, intake: Intake | None) -> None:
        checkpoint, confirmed, savepoint = cause.checkpoint, cause.confirmed, cause.savepoint
        for writer in self._writers:
            writer.flush()
        self._in_flight = None
        if cause.overtakes_after_ms is not None:
            self._in_flight = InFlight(checkpoint, alignment_ns)
        if self._in_flight is not None and (intake is not None or self._overtakes(cause)):
            self._overtake(Barrier(checkpoint, confirmed, None, 0), self._in_flight, intake)
        else:
            after_ms = cause.overtakes_after_ms
            self._send(Barrier(checkpoint, confirmed, savepoint, after_ms, cause.holds))
        part = list(self._operators)
        if self.at_end:
            note_ends(self._operators, checkpoint)
            part = [operator for operator in self._operators if outlives_its_input(operator)]
        cut = SubtaskSnapshot(
            self.at_end,
            self._time.watermark,
            alignment_ns=alignment_ns,
            clocks=self._time.snapshot(),
        )
        gathers = self._in_flight is not None
        report = report_of(self._operators, self._clock.now_ms()) if cause.holds else None
        self.snapshots.take(checkpoint, confirmed, part, cut, savepoint, gathers, report)
        stops = cause.holds or (savepoint is not None and savepoint.stop)
        if stops and checkpoint > self._given_up:
            self.suspended = checkpoint

    def _overtakes(self, cause: Barrier | Trigger) -> bool:
        return cause.overtakes_after_ms == 0 or cause.checkpoint == self._unaligned

    def _send(self, barrier: Barrier) -> None:
        """The barrier goes where everything else goes; it may have to overtake later on."""
        if not self.at_end:
            for output in self._outputs:
                output.control(barrier)
        if self._in_flight is not None:
            overtaken = [output for output in self._outputs if output.overtaken]
            self._in_flight.leaves_by(channel for o in overtaken for channel in o.channels)

    def _overtake(self, barrier: Barrier, in_flight: InFlight, intake: Intake | None) -> None:
        """The barrier goes ahead of all that waits, which is recorded as all else under way."""
        for output in self._outputs:
            if output.overtaken:
                waiting = output.waiting()
                for channel in output.channels:
                    # Where nothing waits behind it, an end of input has left and is enough.
                    if not self.at_end or channel in waiting:
                        channel.overtake(barrier)
                        in_flight.add(channel.id, waiting.get(channel, ()))
            elif not self.at_end:
                output.control(barrier)
        if intake is None:
            return
        rest = intake.rest()
        if intake.channel is None and rest:
            head = self._operators[0]
            in_flight.add_own(head.node.uid, head.info.subtask, rest, intake.split)
        if self._gate is not None:
            self._gate.cut(in_flight, rest if intake.channel is not None else [])

    # --- endings ------------------------------------------------------------------------------

    def abort(self, checkpoint: int) -> None:
        """The checkpoint was given up."""
        if self._gate is not None:
            self._gate.abort(checkpoint)
        self._given_up = max(self._given_up, checkpoint)
        if self.suspended is not None and self.suspended <= checkpoint:
            self.suspended = None
        if self._timed is not None and self._timed.checkpoint <= checkpoint:
            self._timed = None
        if self._in_flight is not None and self._in_flight.checkpoint <= checkpoint:
            self._in_flight = None
        self.snapshots.abort(checkpoint)


def drains(cause: Barrier | Trigger) -> bool:
    """Whether event time comes to its end before the cut."""
    return cause.savepoint is not None and cause.savepoint.drain
