"""A savepoint made by the first version that has them: every later one restores it.

It lies in `kept/savepoint-1`, taken at parallelism 2 after all of the numbers below 1000 were read.
`python tests/unit/test_kept_savepoint.py DIR` made it, and makes one of another version.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Types, WatermarkStrategy
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
)
from penstock.datastream import KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from penstock.testing import local_environment
from penstock.testing.local_environment import LocalEnvironment

KEPT = Path(__file__).parent / "kept" / "savepoint-1"
BEFORE, AFTER = 1000, 1500


class Numbers(Source):
    """All numbers up to a bound in two splits; it waits there, or ends."""

    def __init__(self, bound: int, ends: bool) -> None:
        self.bound = bound
        self.ends = ends

    def create_enumerator(self, context: EnumeratorContext, restored: Any) -> QueueEnumerator:
        return QueueEnumerator([0, 1] if restored is None else restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return NumbersReader(self.bound, self.ends)


class NumbersReader(SourceReader):
    def __init__(self, bound: int, ends: bool) -> None:
        self.bound = bound
        self.ends = ends
        self.next: list[int] = []

    def add_splits(self, splits: list[Any]) -> None:
        self.next += splits

    def poll(self, limit: int) -> list[int] | None:
        for place, number in enumerate(self.next):
            if number < self.bound:
                self.next[place] += 2
                return [number]
        return None if self.ends or not self.next else []

    def snapshot(self) -> list[Any]:
        return list(self.next)


class Remember(KeyedProcessFunction):
    """Keeps what it saw in state of several kinds, and tells all of it when event time ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        any_type: TypeInformation = Types.PICKLED_BYTE_ARRAY()
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", any_type))
        descriptor = MapStateDescriptor("by tens", Types.LONG(), Types.LONG())
        self.tens = runtime_context.get_map_state(descriptor)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        self.count.update((self.count.value() or 0) + 1)
        self.last.update(sorted([*(self.last.get() or ()), value])[-3:])
        tens = value // 10 % 10
        self.tens.put(tens, (self.tens.get(tens) or 0) + 1)
        ctx.timer_service().register_event_time_timer((1 << 63) - 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield (
            ctx.get_current_key(),
            self.count.value(),
            tuple(self.last.get() or ()),
            tuple(sorted(self.tens.items())),
        )


def remembered(env: LocalEnvironment, bound: int, ends: bool) -> Any:
    source = Numbers(bound, ends)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    return stream.key_by(lambda n: n % 7).process(Remember()).uid("remember")


def expected(bound: int) -> list[Any]:
    found = []
    for key in range(7):
        numbers = range(key, bound, 7)
        tens: dict[int, int] = {}
        for number in numbers:
            tens[number // 10 % 10] = tens.get(number // 10 % 10, 0) + 1
        found.append((key, len(numbers), tuple(numbers[-3:]), tuple(sorted(tens.items()))))
    return found


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_the_kept_savepoint_is_restored(parallelism: int) -> None:
    with local_environment(seed=parallelism) as env:
        env._configuration.set_string("execution.state-recovery.path", str(KEPT))
        env.set_parallelism(parallelism)
        results = list(remembered(env, AFTER, ends=True).execute_and_collect())
        assert env.simulation.restored
    assert sorted(results) == expected(AFTER)


def make(directory: str) -> str:
    """Take the savepoint."""
    with local_environment() as env:
        env.set_parallelism(2)
        remembered(env, BEFORE, ends=False).print()
        job = env.execute_async("kept")
        while sum(m.records_in for m in job.progress().metrics.values()) < 2 * BEFORE:
            pass
        path: str = job.trigger_savepoint(directory).result(60)
        job.cancel().result(60)
        return path


if __name__ == "__main__":
    print(make(sys.argv[1]))
