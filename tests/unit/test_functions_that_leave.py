"""A user's function that ends in an odd way: the author sees the place as after any error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from patience import PATIENCE

from penstock.common import Time, Types
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    KeyedProcessFunction,
    MapFunction,
)
from penstock.errors import JobFailedError, UserFunctionError
from penstock.testing import local_environment


def leaves() -> None:
    sys.exit("enough")


def gives_up() -> None:
    raise GeneratorExit


def stops() -> None:
    next(iter([]))


ENDS = [(leaves, "SystemExit"), (gives_up, "GeneratorExit"), (stops, "StopIteration")]


class Opens(MapFunction):
    def __init__(self, end: Callable[[], None]) -> None:
        self.end = end

    def open(self, runtime_context: Any) -> None:
        self.end()

    def map(self, value: Any) -> Any:
        return value


class Timed(KeyedProcessFunction):
    def __init__(self, end: Callable[[], None]) -> None:
        self.end = end

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(1)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        self.end()
        return []


class Asks(AsyncFunction):
    def __init__(self, end: Callable[[], None]) -> None:
        self.end = end

    async def async_invoke(self, value: Any) -> Any:
        self.end()
        return [value]


def mapped(stream: Any, end: Callable[[], None]) -> Any:
    def call(value: int) -> int:
        if value == 3:
            end()
        return value

    return stream.map(call).name("Odd")


def flat_mapped(stream: Any, end: Callable[[], None]) -> Any:
    def call(value: int) -> list[int]:
        if value == 3:
            end()
        return [value]

    return stream.flat_map(call).name("Odd")


def keyed(stream: Any, end: Callable[[], None]) -> Any:
    return stream.key_by(lambda value: end() if value == 3 else value).process(Timed(int)).name("K")


def opened(stream: Any, end: Callable[[], None]) -> Any:
    return stream.map(Opens(end)).name("Odd")


def timed(stream: Any, end: Callable[[], None]) -> Any:
    return stream.key_by(lambda value: 0).process(Timed(end)).name("Odd")


def asked(stream: Any, end: Callable[[], None]) -> Any:
    calls = AsyncDataStream.unordered_wait(stream, Asks(end), Time.seconds(600), 2, Types.INT())
    return calls.name("Odd")


@pytest.mark.parametrize(("end", "name"), ENDS, ids=[name for _, name in ENDS])
@pytest.mark.parametrize("build", [mapped, flat_mapped, keyed, opened, timed, asked])
def test_the_operator_is_named(build: Any, end: Callable[[], None], name: str) -> None:
    with local_environment() as env:
        build(env.from_collection([1, 2, 3], Types.INT()), end).print()
        job = env.execute_async()
        with pytest.raises(JobFailedError) as caught:
            job.get_job_execution_result().result(PATIENCE)
    error = caught.value.__cause__
    assert isinstance(error, UserFunctionError), error
    assert error.message.startswith(name)
    assert f"in {end.__name__}" in error.user_traceback, error.user_traceback
    assert "penstock/runtime" not in error.user_traceback, error.user_traceback
    if build is not keyed:
        assert error.origin.operator == "Odd"
    if build in (mapped, flat_mapped):
        assert error.origin.record == "3"


def test_who_runs_a_test_can_interrupt_it() -> None:
    def interrupt(value: int) -> int:
        raise KeyboardInterrupt

    with local_environment() as env:
        env.from_collection([1]).map(interrupt).print()
        with pytest.raises(KeyboardInterrupt):
            env.execute()
