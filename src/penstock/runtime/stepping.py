"""The steps of a subtask: what it does next, for how long, and where an unaligned cut finds it.

Work is a generator that is suspended where an output has no room or the time of a step is over,
and goes on in a later step. A loop over records is not suspended by the clock: how many it is given
follows from how long others took, and if they take longer a watch ends it (see `step_watch`). What
the subtask takes up next is, in this order: timers, the rest of the batch at hand, watermarks that
are due, and input. For an unaligned checkpoint it does not wait for room: it ends the record that
it is at, and is cut there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.checkpoint.channel_state import OwnBatch
from penstock.checkpoint.handles import MIN_WATERMARK
from penstock.common.clock import Clock
from penstock.common.plain import Plain
from penstock.network.elements import Barrier, EndOfInput, Watermark, WatermarkStatus
from penstock.network.frames import load_element
from penstock.network.messages import Trigger
from penstock.runtime.async_operator import RuntimeAsync
from penstock.runtime.barriers import Barriers, drains
from penstock.runtime.ends import RuntimeSink
from penstock.runtime.event_progress import EventProgress
from penstock.runtime.functions import TimeDomain
from penstock.runtime.intake import Intake
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.runtime.slice import Slice
from penstock.runtime.split_reading import SplitReading
from penstock.runtime.step_watch import StepWatch
from penstock.runtime.subtask_parts import SubtaskParts

STEP_NS = 2_000_000
"""How long a step should take; the number of records per step follows from it, from 1 on."""
OVERDRAFT = 8
"""How many buffers may wait beyond what there is room for, to end a record at a barrier."""


class Stepping:
    """What one subtask does in its steps."""

    def __init__(
        self,
        parts: SubtaskParts,
        clock: Clock,
        time: EventProgress,
        reading: SplitReading | None,
        barriers: Barriers,
        watch: StepWatch,
        finish: Callable[[], Iterator[None]],
    ) -> None:
        """`finish` is the work of a subtask whose input is over."""
        self._chain = parts.chain
        self._room = parts.room
        self._gate = parts.gate
        self._clock = clock
        self._time = time
        self._reading = reading
        self._barriers = barriers
        self._watch = watch
        self._finish = finish
        operators = parts.operators
        self._writers = [o.writer for o in operators if isinstance(o, RuntimeSink)]
        self._keyed = [o for o in operators if isinstance(o, RuntimeKeyedFunction)]
        self._async = next((o for o in operators if isinstance(o, RuntimeAsync)), None)
        self._work: Iterator[None] | None = self._first_work(parts)
        self._emitting: Iterator[None] | None = None
        self._completed = Slice([])
        self._intake = Intake()
        self._cutting = 0
        self._most = parts.step_records
        self._quota = 1
        if self._async is not None:
            timed, restored = parts.timed, self._async.restored
            self._intake.put(list(restored) if timed else [value for value, _ in restored])
        if parts.own_batch is not None:
            self._restore_own(parts.own_batch)

    def _first_work(self, parts: SubtaskParts) -> Iterator[None] | None:
        if parts.finished:
            return self._finish()
        return None if parts.watermark == MIN_WATERMARK else self._time.announce_restored()

    def _restore_own(self, own: OwnBatch) -> None:
        """Go on with what was read, and not processed, when the checkpoint was made."""
        self._intake.put(self._intake.rest() + load_element(own.batch), split=own.split)
        if self._reading is not None and self._time.clock is not None:
            self._time.clock.select(own.split)

    @property
    def records_in(self) -> int:
        """How many records it has taken in."""
        return self._intake.taken

    # --- what there is to do ------------------------------------------------------------------

    def ready(self, now_ms: int) -> bool:
        """Whether a step has something to do."""
        cause = self._barriers.attend()
        if cause is not None:
            return self._may_cut(cause.checkpoint)
        barriers = self._barriers
        if barriers.at_end or self._room.blocked or barriers.suspended is not None:
            return False
        for writer in self._writers:
            if not writer.has_room():
                return False
        if self._async is not None:
            if self._emitting is not None or self._async.queue.has_ready():
                return True
            if self._async.full():
                return False
        return (
            self._work is not None
            or bool(self._intake)
            or (self._reading is not None and self._source_has_work(self._reading, now_ms))
            or (self._gate is not None and self._gate.has_input())
            or self._timer_due(now_ms)
            or self._time.tick_due(now_ms)
        )

    def calling(self) -> bool:
        """Whether asynchronous calls must end before more input is taken."""
        return self._async is not None and self._async.full()

    def _source_has_work(self, reading: SplitReading, now_ms: int) -> bool:
        if self._barriers.requested is not None or reading.ask_due(now_ms):
            return True
        return reading.worth_a_poll(now_ms) and not self._time.aligned()

    def _timer_due(self, now_ms: int) -> bool:
        for operator in self._keyed:
            due = operator.timers.processing.next_timestamp()
            if due is not None and due <= now_ms:
                return True
        return False

    def next_wakeup_ms(self) -> int | None:
        """When it becomes ready by the clock alone."""
        overtakes_ms = self._barriers.next_wakeup_ms()
        if self._barriers.at_end or self._room.blocked or self._barriers.suspended is not None:
            return overtakes_ms
        times = [operator.timers.processing.next_timestamp() for operator in self._keyed]
        times += [self._time.tick_at_ms, overtakes_ms]
        if self._reading is not None:
            times.append(self._reading.ask_at_ms)
            if not self._time.aligned():
                times.append(self._reading.next_poll_ms())
        return min((time for time in times if time is not None), default=None)

    # --- steps --------------------------------------------------------------------------------

    def step(self, now_ms: int) -> None:
        """Do one bounded piece of work. Call only when ready."""
        started = self._clock.monotonic_ns()
        cause = self._barriers.attend()
        if cause is not None:
            self._cut(cause, started)
            return
        if self._async is not None and (self._emitting or self._async.queue.has_ready()):
            if self._emitting is None:
                self._emitting = self._go_on(self._async.queue.take())
            self._emit(started)
            return
        records = 0
        if self._work is None:
            self._work, records = self._next_work(now_ms)
            if self._work is None:
                return
        back = self._process(started)
        if records and self._work is None:
            self._adapt_quota(self._clock.monotonic_ns() - started, records - back)

    def _process(self, started: int) -> int:
        """Go on with the work at hand; how many records of its slice it did not come to."""
        assert self._work is not None
        if not self._run(self._work, started, self._intake.under_way):
            return 0
        self._work = None
        return self._intake.take_back()

    def _emit(self, started: int) -> None:
        """Go on with what asynchronous calls gave."""
        assert self._emitting is not None and self._async is not None
        if self._run(self._emitting, started, self._completed):
            self._emitting = None
            self._async.queue.put_back(self._completed.back)
            self._completed = Slice([])

    def _run(self, work: Iterator[None], started: int, part: Slice) -> bool:
        """Go on with `work` for as long as a step may take; whether it is done.

        If it runs over records, they are those of `part`.
        """
        self._watch.begin(part)
        try:
            for _ in work:
                if (
                    self._room.blocked
                    or self._clock.monotonic_ns() - started > STEP_NS
                    or self.calling()
                ):
                    return False
        finally:
            self._watch.end()
        return True

    def _go_on(self, element: Any) -> Iterator[None]:
        """What waited for asynchronous calls goes on: their results, or a control element."""
        if isinstance(element, list):
            self._completed = Slice(element)
            return self._chain.completed(self._completed.cursor)
        if isinstance(element, Watermark):
            # After a restore the channels begin anew, and may be behind.
            rises = element.timestamp > self._time.watermark
            return self._time.advance(element.timestamp) if rises else iter(())
        if isinstance(element, EndOfInput):
            return self._finish()
        if isinstance(element, Barrier):
            return self._barriers.drain(element, 0)
        assert isinstance(element, WatermarkStatus)
        self._time.set_idle(element.idle)
        return iter(())

    def _adapt_quota(self, took: int, records: int) -> None:
        if took > 2 * STEP_NS:
            self._quota = max(1, min(self._quota, records) // 2)
        elif took < STEP_NS // 2 and records >= self._quota:
            self._quota = min(self._most, self._quota * 2)

    def log_changes(self, now_ms: int) -> None:
        """Write what changed into the changelog, if that is due and no record is half processed."""
        if self._work is None and self._emitting is None:
            self._barriers.snapshots.log_changes(now_ms)

    def _next_work(self, now_ms: int) -> tuple[Iterator[None] | None, int]:
        self.log_changes(now_ms)
        if self._timer_due(now_ms):
            return self._chain.fire[TimeDomain.PROCESSING_TIME](now_ms), 0
        if self._intake:
            return self._take()
        if self._time.tick_due(now_ms):
            return self._time.tick(now_ms), 0
        if self._reading is not None:
            return self._read(self._reading, now_ms)
        assert self._gate is not None
        element = self._gate.poll()
        if element is None:
            return None, 0
        if isinstance(element, list):
            self._intake.put(element, self._gate.channel)
            return self._take()
        if self._async is not None and (not isinstance(element, Barrier) or drains(element)):
            self._async.queue.control(element)
        elif isinstance(element, Watermark):
            if element.timestamp > self._time.watermark and self._time.clock is None:
                return self._time.advance(element.timestamp), 0
        elif isinstance(element, WatermarkStatus):
            if self._time.clock is None:
                self._time.set_idle(element.idle)
        elif isinstance(element, Barrier):
            if drains(element):
                return self._barriers.drain(element, self._gate.alignment_ns), 0
            self._barriers.take(element, self._gate.alignment_ns)
        elif isinstance(element, EndOfInput):
            return self._finish(), 0
        return None, 0

    def _take(self) -> tuple[Iterator[None], int]:
        """The next slice of the batch at hand, as large as a step allows."""
        values, records = self._intake.take(self._quota)
        self._time.wake_up()
        return self._chain.process[self._intake.input](values), records

    def _read(self, reading: SplitReading, now_ms: int) -> tuple[Iterator[None] | None, int]:
        requested = self._barriers.requested
        if requested is not None:
            if drains(requested):
                return self._barriers.drain(requested, 0), 0
            self._barriers.take(requested, 0)
            return None, 0
        if reading.ask_due(now_ms):
            reading.ask()
        if reading.out_of_splits or self._time.aligned():
            return None, 0
        self._time.between_batches()
        values = reading.poll(self._quota)
        if values:
            split: Plain = None
            if self._time.clock is not None:
                split = reading.reader.split_of_last_poll()
                self._time.clock.select(split)
            # A copy: what the reader gave may be its own.
            self._intake.put(list(values), split=split)
            return self._take()
        if values is None and reading.no_more_splits:
            return self._finish(), 0
        if reading.out_of_splits:
            reading.ask()
        return None, 0

    # --- unaligned checkpoints ----------------------------------------------------------------

    def _may_cut(self, checkpoint: int) -> bool:
        """Whether a step would bring the subtask nearer to the cut of an unaligned checkpoint."""
        if not all(writer.has_room() for writer in self._writers):
            return False
        return checkpoint != self._cutting or self._is_between() or not self._room.blocked

    def _is_between(self) -> bool:
        """Whether no record is half processed."""
        if self._emitting is not None:
            return False
        # A record whose asynchronous call has begun is in the state.
        return self._work is None or (self._async is not None and self._async.full())

    def _cut(self, cause: Barrier | Trigger, started: int) -> None:
        """End the record that is under way, though there be no room, and cut behind it.

        A record that needs more than the overdraft is waited for.
        """
        if self._cutting != cause.checkpoint:
            self._cutting = cause.checkpoint
            self._room.overdraw(OVERDRAFT)
            self._intake.take_back()
            self._completed.end()
        if not self._is_between():
            if self._emitting is not None:
                self._emit(started)
            elif self._work is not None:
                self._process(started)
        if self._is_between():
            self._room.overdraw(0)
            if not self._barriers.at_end:
                self._barriers.take(cause, 0, self._intake)

    def begin(self, work: Iterator[None]) -> None:
        """Do `work` next, though nothing came in that asks for it."""
        self._work = work

    def abort(self, checkpoint: int) -> None:
        """An unaligned checkpoint that was to be cut here was given up."""
        if self._cutting <= checkpoint:
            self._room.overdraw(0)

    def close(self) -> None:
        """Nothing is done any more."""
        if self._work is not None and hasattr(self._work, "close"):
            self._work.close()
