"""A subtask: one chain with its gate or reader, its outputs, its operators and its part in time.

It does one bounded piece of work per step and is otherwise passive: the slot decides when it is
its turn. It is *ready* when there is input, a due timer or suspended work, and room on its
outputs.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.checkpoint.handles import (
    MAX_WATERMARK,
    SubtaskSnapshot,
)
from penstock.checkpoint.store import SegmentStore
from penstock.common.clock import Clock
from penstock.common.plain import Plain
from penstock.graph.execution_graph import SubtaskId
from penstock.network.elements import (
    END_OF_INPUT,
    Barrier,
    EndOfInput,
    Watermark,
    WatermarkStatus,
)
from penstock.network.messages import (
    AtEnd,
    SplitRequest,
    SubtaskMetrics,
    SubtaskReport,
    Trigger,
)
from penstock.runtime.accounting import Accounting, Activity
from penstock.runtime.async_operator import RuntimeAsync
from penstock.runtime.chain import CompiledChain
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.event_time import EventClock
from penstock.runtime.functions import TimeDomain
from penstock.runtime.gate import InputGate
from penstock.runtime.operators import (
    RuntimeFunction,
    RuntimeKeyedFunction,
    RuntimeOperator,
    RuntimeSink,
    RuntimeSource,
)
from penstock.runtime.output import Output, Room
from penstock.runtime.reporting import report_of
from penstock.runtime.snapshots import Snapshots

STEP_NS = 2_000_000
"""How long a step should take; the number of records per step follows from it, from 1 on."""
ASK_AGAIN_MS = 1000
"""When a reader without splits asks again, unless the enumerator says."""


@dataclass(frozen=True)
class SubtaskParts:
    """What a subtask is built from."""

    id: SubtaskId
    operators: list[RuntimeOperator]
    gate: InputGate | None
    outputs: list[Output]
    room: Room
    chain: CompiledChain
    store: SegmentStore | None
    attempt: int
    finished: bool
    """Restored as finished: it has nothing to do but say so downstream."""
    watermark: int
    step_records: int
    buffer_timeout_ms: int
    timed: bool = False
    """Whether input records come with their timestamps."""
    clock: EventClock | None = None
    """Where event time begins in this subtask."""
    watermark_interval_ms: int = 200


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
        self._gate_channels = [] if parts.gate is None else parts.gate.channels
        self._parts = parts
        self._environment = environment
        self._clock: Clock = environment.clock
        self._fail = fail
        self._source = next((o for o in self.operators if isinstance(o, RuntimeSource)), None)
        self._writers = [o.writer for o in self.operators if isinstance(o, RuntimeSink)]
        self._keyed = [o for o in self.operators if isinstance(o, RuntimeKeyedFunction)]
        self._async = next((o for o in self.operators if isinstance(o, RuntimeAsync)), None)
        self._work: Iterator[None] | None = None
        self._emitting: Iterator[None] | None = None
        self._batch: list[Any] = []
        self._position = 0
        self._input = 0
        self._most = parts.step_records
        self._quota = 1
        self._out_of_splits = False
        self._asked_for_split = False
        self._ask_at_ms: int | None = None
        self._ask_after_ms = ASK_AGAIN_MS
        self._assigned_late: list[tuple[list[Plain] | None, int | None]] = []
        self._no_more_splits = False
        self._wakes = 0
        self._idle_at_wakes: int | None = None
        self._requested: Trigger | None = None
        self._suspended: int | None = None
        self._given_up = 0
        self.snapshots = Snapshots(
            parts.id, parts.attempt, parts.operators, parts.store, environment, fail
        )
        self._watermark = parts.watermark
        self._idle = False
        self._event_clock = parts.clock
        self._tick_at_ms: int | None = None
        self._held_up_ns = 0
        self._limit = MAX_WATERMARK
        self._advanced_ms: int | None = None
        self._begin_time()
        self.at_end = False
        self.records_in = 0
        self._flushed_ms = self._clock.now_ms()
        self.accounting = Accounting(self._clock.monotonic_ns())
        for operator in self.operators:
            operator.report.metrics.begin(self._clock.now_ms())
        if parts.finished:
            self._work = self._finish()
        if self._async is not None:
            timed, restored = parts.timed, self._async.restored
            self._batch = list(restored) if timed else [value for value, _ in restored]

    def _begin_time(self) -> None:
        if self._event_clock is not None and not self._parts.finished:
            self._event_clock.pass_on = self._announce
            if self._parts.watermark_interval_ms > 0:
                self._tick_at_ms = self._clock.now_ms() + self._parts.watermark_interval_ms

    # --- the slot's questions -----------------------------------------------------------------

    def ready(self, now_ms: int) -> bool:
        if self.at_end or self.room.blocked or self._suspended is not None:
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
            or self._position < len(self._batch)
            or (self._source is not None and self._source_has_work(now_ms))
            or (self.gate is not None and self.gate.has_input())
            or self._timer_due(now_ms)
            or self._tick_due(now_ms)
        )

    def pressed(self) -> bool:
        """Whether it waits for room, of its outputs or of its sink."""
        return bool(self.room.blocked) or any(not w.has_room() for w in self._writers)

    def calling(self) -> bool:
        """Whether it waits for asynchronous calls to end before it takes more input."""
        return self._async is not None and self._async.full()

    def _source_has_work(self, now_ms: int) -> bool:
        if self._requested is not None or self._ask_due(now_ms):
            return True
        if self._out_of_splits or self._aligned():
            return False
        if not self._source_idle():
            return True
        assert self._source is not None
        due = self._source.reader.next_poll_ms()
        return due is not None and due <= now_ms

    def _source_idle(self) -> bool:
        """Whether the last poll had nothing and the reader has not said since that it has."""
        return self._idle_at_wakes == self._wakes

    def _ask_due(self, now_ms: int) -> bool:
        return _has_come(self._ask_at_ms, self._ask_after_ms, now_ms)

    def _timer_due(self, now_ms: int) -> bool:
        for operator in self._keyed:
            due = operator.timers.processing.next_timestamp()
            if due is not None and due <= now_ms:
                return True
        return False

    def _tick_due(self, now_ms: int) -> bool:
        return _has_come(self._tick_at_ms, self._parts.watermark_interval_ms, now_ms)

    def next_wakeup_ms(self) -> int | None:
        """When it becomes ready by the clock alone."""
        if self.at_end or self.room.blocked or self._suspended is not None:
            return None
        times = [operator.timers.processing.next_timestamp() for operator in self._keyed]
        times += [self._ask_at_ms, self._tick_at_ms]
        waits = self._source_idle() and not self._out_of_splits and not self._aligned()
        if self._source is not None and waits:
            times.append(self._source.reader.next_poll_ms())
        return min((time for time in times if time is not None), default=None)

    # --- steps --------------------------------------------------------------------------------

    def step(self, now_ms: int) -> None:
        """Do one bounded piece of work. Call only when ready."""
        started = self._clock.monotonic_ns()
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
            return self._advance(element.timestamp)
        if isinstance(element, EndOfInput):
            return self._finish()
        if isinstance(element, Barrier):
            return self._drain(element, 0)
        assert isinstance(element, WatermarkStatus)
        self._set_idle(element.idle)
        return iter(())

    def _adapt_quota(self, took: int, records: int) -> None:
        if took > 2 * STEP_NS:
            self._quota = max(1, self._quota // 2)
        elif took < STEP_NS // 2 and records >= self._quota:
            self._quota = min(self._most, self._quota * 2)

    def _next_work(self, now_ms: int) -> tuple[Iterator[None] | None, int]:
        if self._position < len(self._batch):
            return self._take()
        if self._timer_due(now_ms):
            return self.chain.fire[TimeDomain.PROCESSING_TIME](now_ms), 0
        if self._tick_due(now_ms):
            return self._tick(now_ms), 0
        if self._source is not None:
            return self._read(self._source, now_ms)
        assert self.gate is not None
        element = self.gate.poll()
        if element is None:
            return None, 0
        if isinstance(element, list):
            self._batch, self._position, self._input = element, 0, self.gate.input
            return self._take()
        if self._async is not None and (not isinstance(element, Barrier) or _drains(element)):
            self._async.queue.control(element)
        elif isinstance(element, Watermark):
            if element.timestamp > self._watermark and self._event_clock is None:
                return self._advance(element.timestamp), 0
        elif isinstance(element, WatermarkStatus):
            if self._event_clock is None:
                self._set_idle(element.idle)
        elif isinstance(element, Barrier):
            if _drains(element):
                return self._drain(element, self.gate.alignment_ns), 0
            self._snapshot(element, self.gate.alignment_ns)
        elif isinstance(element, EndOfInput):
            return self._finish(), 0
        return None, 0

    def _take(self) -> tuple[Iterator[None], int]:
        """The next slice of the batch at hand, as large as a step allows."""
        batch, start = self._batch, self._position
        if start == 0 and len(batch) <= self._quota:
            values = batch
        else:
            values = batch[start : start + self._quota]
        self._position = start + len(values)
        if self._position >= len(batch):
            self._batch, self._position = [], 0
        self.records_in += len(values)
        self._wake_up()
        return self.chain.process[self._input](values), len(values)

    def _read(self, source: RuntimeSource, now_ms: int) -> tuple[Iterator[None] | None, int]:
        requested = self._requested
        if requested is not None:
            if _drains(requested):
                return self._drain(requested, 0), 0
            self._snapshot(requested, 0)
            return None, 0
        if self._ask_due(now_ms):
            self._ask_for_splits()
        if self._out_of_splits or self._aligned():
            return None, 0
        self._idle_at_wakes = None
        self._align_splits()
        wakes = self._wakes
        values = source.reader.poll(self._quota)
        if values:
            self.records_in += len(values)
            if self._event_clock is not None:
                self._event_clock.select(source.reader.split_of_last_poll())
                self._wake_up()
            return self.chain.process[0](values), len(values)
        if values is not None:
            # As it was before the poll: what the reader got since then is worth another one.
            self._idle_at_wakes = wakes
        elif self._no_more_splits:
            return self._finish(), 0
        else:
            self._out_of_splits = True
            self._ask_for_splits()
        return None, 0

    def _ask_for_splits(self) -> None:
        self._ask_at_ms = None
        if not self._asked_for_split:
            self._asked_for_split = True
            self._environment.tell(SplitRequest(self._parts.attempt, self.id))

    # --- event time ---------------------------------------------------------------------------

    def _tick(self, now_ms: int) -> Iterator[None]:
        """The time for watermarks has come."""
        assert self._event_clock is not None
        self._tick_at_ms = now_ms + self._parts.watermark_interval_ms
        totals = self.accounting.upto(self._clock.monotonic_ns())
        held_up_ns = totals[Activity.BACKPRESSURED.value]
        held_up_ms = (held_up_ns - self._held_up_ns) // 1_000_000
        # Whom alignment keeps from reading is not silent.
        passed_ms = self._clock.monotonic_ms()
        self._event_clock.tick(passed_ms, passed_ms if self._aligned() else held_up_ms)
        self._held_up_ns = held_up_ns
        self._align_splits()
        return self._announce()

    def align(self, limit: int) -> None:
        """Read no further than to this watermark."""
        self._limit = limit
        self._align_splits()

    def _aligned(self) -> bool:
        """Whether it must wait for the slowest source of its group."""
        clock = self._event_clock
        return (
            clock is not None and self._limit != MAX_WATERMARK and clock.watermark() > self._limit
        )

    def _align_splits(self) -> None:
        """Let those splits wait that are ahead of others, where the reader can do that."""
        clock, source = self._event_clock, self._source
        if clock is None or not clock.aligned or source is None or self.at_end:
            return
        if not source.reader.pauses_splits:
            return
        self._retain_splits()
        pause, resume = clock.align(self._limit)
        if pause or resume:
            source.reader.pause_or_resume_splits(pause, resume)
        if resume:
            # What waited is worth a poll.
            self._idle_at_wakes = None

    def _retain_splits(self) -> None:
        assert self._event_clock is not None
        if self._source is not None:
            splits = self._source.reader.active_splits()
            if splits is not None:
                self._event_clock.retain(splits)

    def _announce(self) -> Iterator[None]:
        """Say how far event time has come, if that is news."""
        clock = self._event_clock
        assert clock is not None
        clock.due = False
        self._retain_splits()
        self._set_idle(clock.idle())
        watermark = clock.watermark()
        if watermark > self._watermark:
            yield from self._advance(watermark)

    def _set_idle(self, idle: bool) -> None:
        if idle != self._idle:
            self._idle = idle
            for output in self.outputs:
                output.control(WatermarkStatus(idle))

    def _wake_up(self) -> None:
        """There are records: whoever waits no longer for this subtask must do so again."""
        if self._idle and self._event_clock is not None:
            self._event_clock.current.mark_active()
            self._set_idle(False)

    def _advance(self, timestamp: int) -> Iterator[None]:
        """Let time pass: timers first, then the watermark goes downstream."""
        self._watermark = timestamp
        self._advanced_ms = self._clock.now_ms()
        for operator in self.operators:
            if isinstance(operator, RuntimeFunction):
                operator.times.watermark = timestamp
        yield from self.chain.fire[TimeDomain.EVENT_TIME](timestamp)
        for output in self.outputs:
            output.control(Watermark(timestamp))

    def _finish(self) -> Iterator[None]:
        if self._watermark < MAX_WATERMARK:
            yield from self._advance(MAX_WATERMARK)
        for writer in self._writers:
            writer.flush()
        for output in self.outputs:
            output.control(END_OF_INPUT)
        self.at_end = True
        requested = self._requested
        if requested is not None:
            self._snapshot(requested, 0)
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

    # --- splits -------------------------------------------------------------------------------

    def assign(self, splits: list[Plain] | None, ask_again_ms: int | None) -> None:
        """The answer to a request for splits."""
        assert self._source is not None
        if self._requested is not None:
            # The enumerator's part of that checkpoint was taken before it handed these out and
            # holds them still: the reader's part must not.
            self._assigned_late.append((splits, ask_again_ms))
            return
        self._asked_for_split = False
        if splits is None:
            self._no_more_splits = True
        elif splits:
            self._source.reader.add_splits(splits)
        elif ask_again_ms is None:
            ask_again_ms = ASK_AGAIN_MS
        if splits is None or splits:
            self._out_of_splits = False
            self._idle_at_wakes = None
        if ask_again_ms is not None and splits is not None:
            self._ask_at_ms = self._clock.now_ms() + ask_again_ms
            self._ask_after_ms = ask_again_ms

    def _assign_late(self) -> None:
        late, self._assigned_late = self._assigned_late, []
        for splits, ask_again_ms in late:
            self.assign(splits, ask_again_ms)

    def source_woken(self) -> None:
        """A reader's thread has something: worth a poll. Called from any thread."""
        self._wakes += 1

    # --- checkpoints --------------------------------------------------------------------------

    def trigger(self, trigger: Trigger) -> None:
        """A checkpoint begins. Barriers bring it to all but sources and ended subtasks."""
        if trigger.checkpoint < self.snapshots.epoch:
            return
        if self.at_end:
            self._snapshot(trigger, 0)
        else:
            # What was assigned while an older, now abandoned, checkpoint was due counts for this.
            self._requested = None
            self._assign_late()
            self._requested = trigger

    def _drain(self, cause: Barrier | Trigger, alignment_ns: int) -> Iterator[None]:
        """Let event time come to its end, then do the part in the savepoint."""
        if self._watermark < MAX_WATERMARK:
            yield from self._advance(MAX_WATERMARK)
        self._snapshot(cause, alignment_ns)

    def _snapshot(self, cause: Barrier | Trigger, alignment_ns: int) -> None:
        if cause.checkpoint >= self.snapshots.epoch:
            self._take_snapshot(cause, alignment_ns)
        if self._requested is not None and self._requested.checkpoint <= cause.checkpoint:
            self._requested = None
            if not self.at_end:
                self._assign_late()

    def _take_snapshot(self, cause: Barrier | Trigger, alignment_ns: int) -> None:
        checkpoint, confirmed, savepoint = cause.checkpoint, cause.confirmed, cause.savepoint
        for writer in self._writers:
            writer.flush()
        if not self.at_end:
            for output in self.outputs:
                output.control(Barrier(checkpoint, confirmed, savepoint))
        # What has ended has no state any more, only output that is not committed yet.
        part = [o for o in self.operators if not self.at_end or isinstance(o, RuntimeSink)]
        clocks = () if self._event_clock is None else self._event_clock.snapshot()
        cut = SubtaskSnapshot(
            self.at_end, self._watermark, alignment_ns=alignment_ns, clocks=clocks
        )
        self.snapshots.take(checkpoint, confirmed, part, cut, savepoint)
        if savepoint is not None and savepoint.stop and checkpoint > self._given_up:
            self._suspended = checkpoint

    def confirm(self, checkpoint: int) -> None:
        self.snapshots.confirm(checkpoint)

    def abort(self, checkpoint: int) -> None:
        if self.gate is not None:
            self.gate.abort(checkpoint)
        self._given_up = max(self._given_up, checkpoint)
        if self._suspended is not None and self._suspended <= checkpoint:
            self._suspended = None
        self.snapshots.abort(checkpoint)

    # --- the slot's housekeeping --------------------------------------------------------------

    def flush_due(self, now_ms: int) -> bool:
        """Whether buffers have gathered for as long as they may."""
        return not 0 <= now_ms - self._flushed_ms < self._parts.buffer_timeout_ms

    def flush(self, now_ms: int) -> bool:
        """Send partial buffers and let writers hand on what they gathered."""
        flushed = False
        self._flushed_ms = now_ms
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
            self._watermark,
            self._idle,
            self._holder(),
            self._advanced_ms,
            self._aligned() and not self.at_end,
        )

    def _holder(self) -> int | str | None:
        """What holds the watermark back."""
        if self._event_clock is not None:
            split = self._event_clock.holding()
            return None if split is None else str(split.split)
        channel = None if self.gate is None else self.gate.holding()
        return None if channel is None else self._gate_channels.index(channel)

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


def _has_come(at_ms: int | None, wait_ms: int, now_ms: int) -> bool:
    """Whether the time has come for which it waits, at most for `wait_ms`.

    If it is further away than that, somebody has set the machine's clock back: then it has too.
    """
    return at_ms is not None and not now_ms < at_ms <= now_ms + wait_ms


def _drains(cause: Barrier | Trigger) -> bool:
    return cause.savepoint is not None and cause.savepoint.drain
