"""What editors and type checkers know of a program: mypy's own answers.

One file has a line for each question, and one run of mypy answers them all.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
from collections.abc import Iterator

from penstock.common import Types
from penstock.datastream import DataStream, KeyedProcessFunction, MapFunction, OutputTag
from penstock.datastream import RuntimeContext
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.functions import AggregateFunction


class Words(MapFunction[int, str]):
    def map(self, value: int) -> str:
        return "word " * value


class WrongWords(MapFunction[int, str]):
    def map(self, value: int) -> int:  # wrong: result
        return value


class Mean(AggregateFunction[int, list[int], float]):
    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        return [*accumulator, value]

    def get_result(self, accumulator: list[int]) -> float:
        return sum(accumulator) / len(accumulator)

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


def states(ctx: RuntimeContext) -> None:
    count = ctx.get_state(ValueStateDescriptor("c", Types.LONG()))
    reveal_type(count.value())  # value
    count.update("many")  # wrong: value
    names = ctx.get_list_state(ListStateDescriptor("l", Types.STRING()))
    reveal_type(names.get())  # list
    prices = ctx.get_map_state(MapStateDescriptor("m", Types.STRING(), Types.DOUBLE()))
    reveal_type(prices.get("tea"))  # map
    reveal_type(prices.items())  # map items
    prices.put(1, 1.0)  # wrong: key
    largest = ctx.get_reducing_state(ReducingStateDescriptor("r", max, Types.INT()))
    reveal_type(largest.get())  # reducing
    mean = ctx.get_aggregating_state(
        AggregatingStateDescriptor("a", Mean(), Types.LIST(Types.INT()))
    )
    reveal_type(mean.get())  # aggregating


class Count(KeyedProcessFunction[str, int, float]):
    def process_element(
        self, value: int, ctx: KeyedProcessFunction.Context[str]
    ) -> Iterator[float | tuple[OutputTag[str], str]]:
        reveal_type(ctx.get_current_key())  # current key
        yield value / 2
        yield late, "late"


late = OutputTag("late", Types.STRING())
reveal_type(late)  # tag
reveal_type(Words().map(3))  # function
reveal_type(Types.MAP(Types.STRING(), Types.LIST(Types.INT())))  # container


def collected(stream: DataStream) -> None:
    with stream.execute_and_collect() as records:
        reveal_type(records)  # iterator
    reveal_type(stream.execute_and_collect(limit=3))  # limited
    reveal_type(stream.execute_and_collect("job", 3))  # limited by position


# As PyFlink's programs have it: no types at all.


class Plain(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(
            ValueStateDescriptor("state", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        ctx.timer_service().register_event_time_timer(1)
        yield value[0], self.state.value()

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), timestamp


class PlainWords(MapFunction):
    def map(self, value):
        return str(value)


Plain()
PlainWords().map(1)
"""

REVEALED = {
    "value": "int | None",
    "list": "Iterable[str] | None",
    "map": "float | None",
    "map items": "Iterable[tuple[str, float]]",
    "reducing": "int | None",
    "aggregating": "float | None",
    "current key": "str",
    "tag": "OutputTag[str]",
    "function": "str",
    "container": "TypeInformation[dict[str, list[int]]]",
    "iterator": "CloseableIterator",
    "limited": "list[Any]",
    "limited by position": "list[Any]",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> tuple[dict[str, str], dict[str, str]]:
    """The types that mypy reveals, and its errors, by the comment at the end of the line."""
    folder: Path = tmp_path_factory.mktemp("types")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "mypy.ini").write_text("[mypy]\ncheck_untyped_defs = true\n")
    command = [sys.executable, "-m", "mypy", "--cache-dir", "cache", "program.py"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stdout + run.stderr

    lines = PROGRAM.splitlines()
    revealed, errors = {}, {}
    for line in run.stdout.splitlines():
        found = re.fullmatch(r"program\.py:(\d+): (note|error): (.*)", line)
        if found is None:
            continue
        asked = lines[int(found[1]) - 1].rpartition("# ")[2]
        if found[2] == "error":
            errors[asked] = found[3]
        elif kind := re.fullmatch(r'Revealed type is "(.*)"', found[3]):
            revealed[asked] = plain(kind[1])
    return revealed, errors


def plain(kind: str) -> str:
    """A type as mypy shows it, without modules; older mypys write Union[...]."""
    kind = re.sub(r"\b(\w+\.)+", "", kind)
    kind = re.sub(r"^Union\[(.*), None\]$", r"\1 | None", kind)
    return re.sub(r"\bTuple\[", "tuple[", kind)


@pytest.mark.parametrize("asked", REVEALED)
def test_a_type_checker_knows_the_type(answers, asked):
    revealed, _ = answers
    assert revealed[asked] == REVEALED[asked]


@pytest.mark.parametrize("mistake", ["value", "key", "result"])
def test_a_mistake_is_reported(answers, mistake):
    _, errors = answers
    assert f"wrong: {mistake}" in errors


def test_nothing_else_is_reported(answers):
    """Programs that name no types pass, as they are."""
    _, errors = answers
    assert {line: error for line, error in errors.items() if not line.startswith("wrong: ")} == {}
