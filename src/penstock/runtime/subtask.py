"""A subtask: one chain with its gate or reader, its outputs, its operators and its part in time.

It does one bounded piece of work per step and is otherwise passive: the slot decides when it is
its turn. It is *ready* when there is input, a due timer or suspended work, and room on its
outputs.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from typing import Any

from penstock.common.plain import Plain
from penstock.network.elements import END_OF_INPUT
from penstock.network.messages import END, AtEnd, SubtaskMetrics, SubtaskReport, Trigger
from penstock.runtime.accounting import Accounting, Activity
from penstock.runtime.barriers import Barriers
from penstock.runtime.ends import RuntimeSink, RuntimeSource, note_ends
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.event_progress import EventProgress
from penstock.runtime.reporting import report_of
from penstock.runtime.split_reading import SplitReading
from penstock.runtime.stepping import Stepping
from penstock.runtime.subtask_parts import SubtaskParts


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
        self.accounting = Accounting(self._clock.monotonic_ns())
        self._reading: SplitReading | None = None
        if source is not None:
            self._reading = SplitReading(source, parts.id, parts.attempt, environment)
        self.time = EventProgress(parts, self._clock, self.accounting, self._reading)
        self.barriers = Barriers(parts, environment, fail, self.time, self._reading)
        self.stepping = Stepping(
            parts,
            self._clock,
            self.time,
            self._reading,
            self.barriers,
            environment.watch,
            self._finish,
        )
        self.at_end = False
        self._flushed_ms = self._clock.now_ms()
        for operator in self.operators:
            operator.report.metrics.begin(self._clock.now_ms())

    # --- the slot's questions -----------------------------------------------------------------

    def ready(self, now_ms: int) -> bool:
        return self.stepping.ready(now_ms)

    def step(self, now_ms: int) -> None:
        """Do one bounded piece of work. Call only when ready."""
        self.stepping.step(now_ms)

    @property
    def records_in(self) -> int:
        """How many records it has taken in."""
        return self.stepping.records_in

    def pressed(self) -> bool:
        """Whether it waits for room, of its outputs or of its sink."""
        return bool(self.room.blocked) or any(not w.has_room() for w in self._writers)

    def calling(self) -> bool:
        """Whether it waits for asynchronous calls to end before it takes more input."""
        return self.stepping.calling()

    def next_wakeup_ms(self) -> int | None:
        """When it becomes ready by the clock alone."""
        return self.stepping.next_wakeup_ms()

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
        note_ends(self.operators, END)
        cuts = [o.cut(END) for o in self.operators if isinstance(o, RuntimeSink)]

        def prepare() -> dict[str, tuple[Plain, ...]]:
            return {cut.uid: cut.committables() for cut in cuts}

        def done(result: dict[str, tuple[Plain, ...]] | None, error: Exception | None) -> None:
            if result is None:
                self._fail(error)
            else:
                tell(AtEnd(attempt, self.id, result, self.report()))

        self._environment.io.submit(prepare, done)

    # --- the JobMaster's messages ---------------------------------------------------------------

    def assign(
        self, splits: list[Plain] | None, ask_again_ms: int | None, waited_for: bool
    ) -> None:
        """The answer to a request for splits."""
        assert self._reading is not None
        if self.barriers.requested is not None:
            # The enumerator's part of that checkpoint was taken before it handed these out and
            # holds them still: the reader's part must not.
            self._reading.assign_later(splits, ask_again_ms, waited_for)
        else:
            self._reading.assign(splits, ask_again_ms, waited_for)

    def align(self, limit: int) -> None:
        """Read no further than to this watermark."""
        self.time.align(limit)

    def trigger(self, trigger: Trigger) -> None:
        self.barriers.trigger(trigger)

    def confirm(self, checkpoint: int) -> None:
        if checkpoint != END:
            self.barriers.snapshots.confirm(checkpoint)
            return
        for operator in self.operators:
            if isinstance(operator, RuntimeSource):
                operator.confirm(END)

    def abort(self, checkpoint: int) -> None:
        self.barriers.abort(checkpoint)
        self.stepping.abort(checkpoint)

    def source_woken(self) -> None:
        """A reader's thread has something: worth a poll. Called from any thread."""
        if self._reading is not None:
            self._reading.woken()

    # --- the slot's housekeeping --------------------------------------------------------------

    def flush_due(self, now_ms: int) -> bool:
        """Whether buffers have gathered for as long as they may."""
        # A clock that was set back must not make them wait.
        return not 0 <= now_ms - self._flushed_ms < self._parts.buffer_timeout_ms

    def flush(self, now_ms: int) -> bool:
        """Send partial buffers and let writers hand on what they gathered."""
        flushed = False
        self._flushed_ms = now_ms
        self.stepping.log_changes(now_ms)
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

    def close(self) -> list[BaseException]:
        """Close every operator; what went wrong while closing."""
        self.stepping.close()
        linecache.cache.pop(self.chain.filename, None)
        errors: list[BaseException] = []
        for operator in self.operators:
            try:
                operator.close()
            except self._environment.raised as error:
                errors.append(error)
        return errors
