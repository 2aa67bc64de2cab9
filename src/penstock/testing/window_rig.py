"""The window rig: one window operator alone, with time in the test's hands.

    rig = WindowRig(lambda stream: stream.key_by(len).window(assigner).reduce(max))
    rig.process("abc", timestamp=7)
    rig.advance_watermark(10_000)
    assert rig.output == [(None, "abc", 9_999)]

It has the operator's state, timers and contexts as a subtask has, and no subtask around them, so
that thousands of cases run in a second. `OperatorHarness` runs the same operators in slots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloudpickle

from penstock.checkpoint.handles import MIN_WATERMARK
from penstock.datastream.invocation import Invocation, invoked
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.datastream.streams import DataStream
from penstock.errors import ProgramError
from penstock.graph.operators import WindowOperator
from penstock.runtime.context import (
    ElementContext,
    KeyedTimerService,
    OperatorContext,
    SubtaskInfo,
    TimerContext,
)
from penstock.runtime.functions import TimeDomain
from penstock.runtime.reporting import OperatorReport
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.segments import GroupBlock
from penstock.state.timers import TimerQueue
from penstock.testing.local_slots import ManualClock

_MAX_PARALLELISM = 128

Deltas = tuple[tuple[GroupBlock, ...], ...]


class _RecordContext(ElementContext):
    """The context of a record whose timestamp the test gives."""

    record_timestamp: int | None = None

    def timestamp(self) -> int | None:
        return self.record_timestamp


class WindowRig:
    """Runs the window operator that `build` adds to a stream."""

    def __init__(
        self,
        build: Callable[[DataStream], DataStream],
        fail_on_late_records: bool = False,
        processing_time: int = 0,
    ) -> None:
        # A test must not depend on a configuration file nearby.
        with invoked(Invocation(file={})):
            env = StreamExecutionEnvironment()
        built = build(env.from_collection([0]))
        operator = env._program.nodes[built._upstreams[0].node].operator
        if not isinstance(operator, WindowOperator):
            raise ProgramError("the rig runs a window operator: the last one that is built")
        self._operator = cloudpickle.dumps(operator)
        self._info = SubtaskInfo("rig", 1, 0, 1, _MAX_PARALLELISM, fail_on_late_records)
        self._clock = ManualClock(processing_time)
        self._checkpoint = 0
        self._deltas: Deltas = ()
        self.output: list[tuple[str | None, Any, int | None]] = []
        """Side output (None: the main one), record and timestamp of all results so far."""
        self._start(MIN_WATERMARK)

    def _start(self, watermark: int) -> None:
        operator = cloudpickle.loads(self._operator)
        self._keys = KeyContext()
        self._key_of = operator.key_selector
        self.function = operator.function
        self.backend = HashMapBackend(self._keys, _MAX_PARALLELISM)
        for blocks in self._deltas:
            self.backend.restore(blocks)
        self._timers = KeyedTimerService(
            self._keys,
            self._clock,
            TimerQueue(self.backend.table("__processing_timers", "timers")),
            TimerQueue(self.backend.table("__event_timers", "timers")),
        )
        self._timers.watermark = watermark
        self._context = _RecordContext(self._keys, self._timers)
        self._report = OperatorReport()
        self.function.open(OperatorContext("window", self._info, self.backend, self._report))

    def process(self, value: Any, timestamp: int | None = None) -> None:
        """Let a record come."""
        self._keys.key = self._key_of(value)
        self._context.record_timestamp = timestamp
        self.output.extend(self.function.process_element(value, self._context) or ())

    def advance_watermark(self, timestamp: int) -> None:
        """Let event time come to `timestamp`: timers up to it fire."""
        self._timers.watermark = timestamp
        self._fire(TimeDomain.EVENT_TIME, self._timers.event, timestamp)

    def advance_processing_time(self, ms: int) -> None:
        """Let `ms` milliseconds pass; timers fire in order, each when the clock shows its time."""
        target = self._clock.now + ms
        queue = self._timers.processing
        while (due := queue.next_timestamp()) is not None and due <= target:
            self._clock.now = max(self._clock.now, due)
            self._fire(TimeDomain.PROCESSING_TIME, queue, self._clock.now)
        self._clock.now = target

    def _fire(self, domain: TimeDomain, queue: TimerQueue, until: int) -> None:
        context = TimerContext(self._keys, self._timers, domain)
        while (due := queue.pop_due(until)) is not None:
            context.fired_at, self._keys.key = due
            self.output.extend(self.function.on_timer(due[0], context) or ())

    def take(self) -> list[Any]:
        """The records of the main output since the last call."""
        values = [value for tag, value, _ in self.output if tag is None]
        self.output.clear()
        return values

    def dropped(self) -> int:
        """How many late records were dropped."""
        return dict(self._report.metrics.read(0))["numLateRecordsDropped"]  # type: ignore[no-any-return]

    def entries(self) -> int:
        """How many keys hold anything, in all tables together."""
        return sum(len(table.entries) for table in self.backend._tables.values())

    def restart(self) -> None:
        """Take a checkpoint and begin again from it: what was not in it is gone."""
        self._checkpoint += 1
        blocks = self.backend.cut(self._checkpoint, full=False)
        self.backend.confirm(self._checkpoint)
        self._deltas += (tuple(blocks),)
        self.function.close()
        self._start(self._timers.watermark)
