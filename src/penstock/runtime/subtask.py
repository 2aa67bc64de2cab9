"""A subtask: one chain with its gate or reader, its outputs, its operators and its part in time.

It does one bounded piece of work per step and is otherwise passive: the slot decides when it is
its turn. It is *ready* when there is input, a due timer or suspended work, and room on its
outputs. For an unaligned checkpoint it need not wait for room: it ends the record that it is at,
and is cut there.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from typing import Any

from penstock.checkpoint.channel_state import OwnBatch
from penstock.common.plain import Plain
from penstock.network.elements import (
    END_OF_INPUT,
    Barrier,
    EndOfInput,
    Watermark,
    WatermarkStatus,
)
from penstock.network.frames import load_element
from penstock.network.messages import AtEnd, SubtaskMetrics, SubtaskReport, Trigger
from penstock.runtime.accounting import Accounting, Activity
from penstock.runtime.async_operator import RuntimeAsync
from penstock.runtime.barriers import Barriers, drains
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.event_progress import EventProgress
from penstock.runtime.functions import TimeDomain
from penstock.runtime.intake import Intake
from penstock.runtime.operators import RuntimeKeyedFunction, RuntimeSink, RuntimeSource
from penstock.runtime.reporting import report_of
from penstock.runtime.split_reading import SplitReading
from penstock.runtime.subtask_parts import SubtaskParts

STEP_NS = 2_000_000
"""How long a step should take; the number of records per step follows from it, from 1 on."""
OVERDRAFT = 8
"""How many buffers may wait beyond what there is room for, to end a record at a barrier."""


class Subtask:
    """One parallel instance of a vertex, in one attempt."""

    def __init__(
        self, parts: SubtaskParts, environment: SlotEnvironment, fail: Callable[[Any], None]
    ) -> None:
        self.id = parts.id
        self.chain = parts.chain
        self.operators = parts.operators
        self.outputs = parts.outputs
        self.room = parts.room
        self.gate = parts.gate
        self._parts = parts
        self._environment = environment
        self._clock = environment.clock
        self._fail = fail
        source = next((o for o in self.operators if isinstance(o, RuntimeSource)), None)
        self._writers = [o.writer for o in self.operators if isinstance(o, RuntimeSink)]
        self._keyed = [o for o in self.operators if isinstance(o, RuntimeKeyedFunction)]
        self._async = next((o for o in self.operators if isinstance(o, RuntimeAsync)), None)
        self._work: Iterator[None] | None = None
        self._emitting: Iterator[None] | None = None
        self._intake = Intake()
        self._cutting = 0
        self._most = parts.step_records
        self._quota = 1
        self.accounting = Accounting(self._clock.monotonic_ns())
        self.time = EventProgress(parts, self._clock, self.accounting)
        self._reading: SplitReading | None = None
        if source is not None:
            self._reading = SplitReading(source, parts.id, parts.attempt, environment)
        self.barriers = Barriers(parts, environment, fail, self.time, self._reading)
        self.at_end = False
        self.records_in = 0
        self._flushed_ms = self._clock.now_ms()
        for operator in self.operators:
            operator.report.metrics.begin(self._clock.now_ms())
        if parts.finished:
            self._work = self._finish()
        if self._async is not None:
            timed, restored = parts.timed, self._async.restored
            self._intake.put(list(restored) if timed else [value for value, _ in restored])
        if parts.own_batch is not None:
            self._restore_own(parts.own_batch)

    def _restore_own(self, own: OwnBatch) -> None:
        """Go on with what was read, and not processed, when the checkpoint was made."""
        self._intake.put(self._intake.rest() + load_element(own.batch), split=own.split)
        if self._reading is not None and self.time.clock is not None:
            self.time.clock.select(own.split)

    # --- the slot's questions -----------------------------------------------------------------

    def ready(self, now_ms: int) -> bool:
        cause = self.barriers.attend()
        if cause is not None:
            return self._may_cut(cause.checkpoint)
        if self.at_end or self.room.blocked or self.barriers.suspended is not None:
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
            or (self.gate is not None and self.gate.has_input())
            or self._timer_due(now_ms)
            or self.time.tick_due(now_ms)
        )

    def pressed(self) -> bool:
        """Whether it waits for room, of its outputs or of its sink."""
        return bool(self.room.blocked) or any(not w.has_room() for w in self._writers)

    def calling(self) -> bool:
        """Whether it waits for asynchronous calls to end before it takes more input."""
        return self._async is not None and self._async.full()

    def _source_has_work(self, reading: SplitReading, now_ms: int) -> bool:
        if self.barriers.requested is not None or reading.ask_due(now_ms):
            return True
        return reading.worth_a_poll(now_ms) and not self.time.aligned()

    def _timer_due(self, now_ms: int) -> bool:
        for operator in self._keyed:
            due = operator.timers.processing.next_timestamp()
            if due is not None and due <= now_ms:
                return True
        return False

    def next_wakeup_ms(self) -> int | None:
        """When it becomes ready by the clock alone."""
        overtakes_ms = self.barriers.next_wakeup_ms()
        if self.at_end or self.room.blocked or self.barriers.suspended is not None:
            return overtakes_ms
        times = [operator.timers.processing.next_timestamp() for operator in self._keyed]
        times += [self.time.tick_at_ms, overtakes_ms]
        if self._reading is not None:
            times.append(self._reading.ask_at_ms)
            if not self.time.aligned():
                times.append(self._reading.next_poll_ms())
        return min((time for time in times if time is not None), default=None)

    # --- steps --------------------------------------------------------------------------------

    def step(self, now_ms: int) -> None:
        """Do one bounded piece of work. Call only when ready."""
        started = self._clock.monotonic_ns()
        cause = self.barriers.attend()
        if cause is not None:
            self._cut(cause, started)
            return
        if self._async is not None and (self._emitting or self._async.queue.has_ready()):
            emitting = self._emitting or self._go_on(self._async.queue.take())
            self._emitting = None if self._run(emitting, started) else emitting
            return
        work = self._work
        records = 0
        if work is None:
            work, records = self._next_work(now_ms)
            if work is None:
                return
        self._work = None if self._run(work, started) else work
        if records and self._work is None:
            self._adapt_quota(self._clock.monotonic_ns() - started, records)

    def _run(self, work: Iterator[None], started: int) -> bool:
        """Go on with `work` for as long as a step may take; whether it is done."""
        for _ in work:
            if (
                self.room.blocked
                or self._clock.monotonic_ns() - started > STEP_NS
                or self.calling()
            ):
                return False
        return True

    def _go_on(self, element: Any) -> Iterator[None]:
        """What waited for asynchronous calls goes on: their results, or a control element."""
        if isinstance(element, list):
            return self.chain.completed(element)
        if isinstance(element, Watermark):
            return self.time.advance(element.timestamp)
        if isinstance(element, EndOfInput):
            return self._finish()
        if isinstance(element, Barrier):
            return self.barriers.drain(element, 0)
        assert isinstance(element, WatermarkStatus)
        self.time.set_idle(element.idle)
        return iter(())

    def _adapt_quota(self, took: int, records: int) -> None:
        if took > 2 * STEP_NS:
            self._quota = max(1, self._quota // 2)
        elif took < STEP_NS // 2 and records >= self._quota:
            self._quota = min(self._most, self._quota * 2)

    def _next_work(self, now_ms: int) -> tuple[Iterator[None] | None, int]:
        self.barriers.snapshots.log_changes(now_ms)
        if self._intake:
            return self._take()
        if self._timer_due(now_ms):
            return self.chain.fire[TimeDomain.PROCESSING_TIME](now_ms), 0
        if self.time.tick_due(now_ms):
            return self.time.tick(now_ms), 0
        if self._reading is not None:
            return self._read(self._reading, now_ms)
        assert self.gate is not None
        element = self.gate.poll()
        if element is None:
            return None, 0
        if isinstance(element, list):
            self._intake.put(element, self.gate.channel)
            return self._take()
        if self._async is not None and (not isinstance(element, Barrier) or drains(element)):
            self._async.queue.control(element)
        elif isinstance(element, Watermark):
            if element.timestamp > self.time.watermark and self.time.clock is None:
                return self.time.advance(element.timestamp), 0
        elif isinstance(element, WatermarkStatus):
            if self.time.clock is None:
                self.time.set_idle(element.idle)
        elif isinstance(element, Barrier):
            if drains(element):
                return self.barriers.drain(element, self.gate.alignment_ns), 0
            self.barriers.take(element, self.gate.alignment_ns)
        elif isinstance(element, EndOfInput):
            return self._finish(), 0
        return None, 0

    def _take(self) -> tuple[Iterator[None], int]:
        """The next slice of the batch at hand, as large as a step allows."""
        values, records = self._intake.take(self._quota)
        self.records_in += records
        self.time.wake_up()
        return self.chain.process[self._intake.input](values), records

    def _read(self, reading: SplitReading, now_ms: int) -> tuple[Iterator[None] | None, int]:
        requested = self.barriers.requested
        if requested is not None:
            if drains(requested):
                return self.barriers.drain(requested, 0), 0
            self.barriers.take(requested, 0)
            return None, 0
        if reading.ask_due(now_ms):
            reading.ask()
        if reading.out_of_splits or self.time.aligned():
            return None, 0
        values = reading.poll(self._quota)
        if values:
            split: Plain = None
            if self.time.clock is not None:
                split = reading.reader.split_of_last_poll()
                self.time.clock.select(split)
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
        return checkpoint != self._cutting or self._is_between() or not self.room.blocked

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
            self.room.overdraw(OVERDRAFT)
            if self._async is None:
                self.records_in -= self._intake.take_back()
        if not self._is_between():
            if self._emitting is not None:
                self._emitting = None if self._run(self._emitting, started) else self._emitting
            elif self._work is not None:
                self._work = None if self._run(self._work, started) else self._work
        if self._is_between():
            self.room.overdraw(0)
            if not self.at_end:
                self.barriers.take(cause, 0, self._intake)

    # --- the end ------------------------------------------------------------------------------

    def _finish(self) -> Iterator[None]:
        yield from self.time.end()
        for writer in self._writers:
            writer.flush()
        for output in self.outputs:
            output.control(END_OF_INPUT)
        self.at_end = True
        self.barriers.ended()
        self._report_end()

    def _report_end(self) -> None:
        tell, attempt = self._environment.tell, self._parts.attempt
        if self._parts.store is not None or self._parts.finished:
            tell(AtEnd(attempt, self.id, {}, self.report()))
            return
        cuts = [operator.cut(0) for operator in self.operators if isinstance(operator, RuntimeSink)]

        def prepare() -> dict[str, tuple[Plain, ...]]:
            return {cut.uid: cut.committables() for cut in cuts}

        def done(result: dict[str, tuple[Plain, ...]] | None, error: Exception | None) -> None:
            if result is None:
                self._fail(error)
            else:
                tell(AtEnd(attempt, self.id, result, self.report()))

        self._environment.io.submit(prepare, done)

    # --- the JobMaster's messages ---------------------------------------------------------------

    def assign(self, splits: list[Plain] | None, ask_again_ms: int | None) -> None:
        """The answer to a request for splits."""
        assert self._reading is not None
        if self.barriers.requested is not None:
            # The enumerator's part of that checkpoint was taken before it handed these out and
            # holds them still: the reader's part must not.
            self._reading.assign_later(splits, ask_again_ms)
        else:
            self._reading.assign(splits, ask_again_ms)

    def align(self, limit: int) -> None:
        """Read no further than to this watermark."""
        self.time.align(limit)

    def trigger(self, trigger: Trigger) -> None:
        self.barriers.trigger(trigger)

    def confirm(self, checkpoint: int) -> None:
        self.barriers.snapshots.confirm(checkpoint)

    def abort(self, checkpoint: int) -> None:
        self.barriers.abort(checkpoint)
        if self._cutting <= checkpoint:
            self.room.overdraw(0)

    def source_woken(self) -> None:
        """A reader's thread has something: worth a poll. Called from any thread."""
        if self._reading is not None:
            self._reading.woken()

    # --- the slot's housekeeping --------------------------------------------------------------

    def flush_due(self, now_ms: int) -> bool:
        """Whether buffers have gathered for as long as they may."""
        return now_ms - self._flushed_ms >= self._parts.buffer_timeout_ms

    def flush(self, now_ms: int) -> bool:
        """Send partial buffers and let writers hand on what they gathered."""
        flushed = False
        self._flushed_ms = now_ms
        if self._work is None and self._emitting is None:
            self.barriers.snapshots.log_changes(now_ms)
        for output in self.outputs:
            flushed = output.flush() or flushed
        for writer in self._writers:
            writer.flush()
        return flushed

    def metrics(self) -> SubtaskMetrics:
        totals = self.accounting.upto(self._clock.monotonic_ns())
        return SubtaskMetrics(
            self.records_in,
            sum(output.records for output in self.outputs),
            totals[Activity.BUSY.value],
            totals[Activity.BACKPRESSURED.value],
            totals[Activity.IDLE.value],
            self.gate.queued() if self.gate is not None else 0,
            self.time.watermark,
            self.time.idle,
            self.time.holder(),
            self.time.advanced_ms,
            self.time.aligned() and not self.at_end,
        )

    def reports(self) -> bool:
        """Whether user functions registered something; another thread may ask."""
        return any(operator.report for operator in self.operators)

    def report(self) -> SubtaskReport | None:
        """What user functions registered, now; asked by the loop only, for gauges call them."""
        return report_of(self.operators, self._clock.now_ms())

    def close(self) -> list[Exception]:
        """Close every operator; what went wrong while closing."""
        if self._work is not None and hasattr(self._work, "close"):
            self._work.close()
        linecache.cache.pop(self.chain.filename, None)
        errors = []
        for operator in self.operators:
            try:
                operator.close()
            except Exception as error:
                errors.append(error)
        return errors
