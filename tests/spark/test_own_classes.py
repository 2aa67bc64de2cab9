"""Records of classes that the script itself defines, in every place where a record can be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE

BACKENDS = ["hashmap", pytest.param("rocksdb", marks=pytest.mark.full)]

# Run as `python job.py` by some tests, as `python -m` by another.
PROGRAM = """
import collections, dataclasses, enum, sys

from penstock.common import Configuration, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    BroadcastProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows


class Kind(enum.Enum):
    PAY = "pay"
    REFUND = "refund"


@dataclasses.dataclass
class Payment:
    kind: Kind
    cents: int
    at: int

    class Receipt:
        def __init__(self, text):
            self.text = text


Priced = collections.namedtuple("Priced", "kind price at")


class Price:
    def __init__(self, cents):
        self.cents = cents

    def __add__(self, other):
        assert isinstance(other, Price), type(other)
        return Price(self.cents + other.cents)


@dataclasses.dataclass
class Rule:
    factor: int


@dataclasses.dataclass(frozen=True)
class Line:
    what: str
    kind: Kind
    cents: int


class At(TimestampAssigner):
    def extract_timestamp(self, value, previous):
        return value.at


def priced(payment):
    assert isinstance(payment, Payment) and isinstance(payment.kind, Kind)
    return Priced(payment.kind, Price(payment.cents), payment.at)


RECEIPTS = OutputTag("receipts")


class Totals(KeyedProcessFunction):
    def open(self, context):
        self.total = context.get_state(ValueStateDescriptor("total", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, context):
        assert isinstance(value, Priced) and isinstance(context.get_current_key(), Kind)
        before = self.total.value()
        self.total.update(value.price if before is None else before + value.price)
        context.timer_service().register_event_time_timer(1_000)
        yield RECEIPTS, Payment.Receipt(f"{value.kind.value} {value.price.cents}")

    def on_timer(self, timestamp, context):
        total = self.total.value()
        assert isinstance(total, Price)
        yield Line("total", context.get_current_key(), total.cents)


class Sum(ProcessWindowFunction):
    def process(self, key, context, elements):
        assert isinstance(key, Kind) and all(isinstance(e, Priced) for e in elements)
        yield Line("window", key, sum(e.price.cents for e in elements))


class Ruled(BroadcastProcessFunction):
    rules = MapStateDescriptor("rules", Types.STRING(), Types.PICKLED_BYTE_ARRAY())

    def process_broadcast_element(self, rule, context):
        context.get_broadcast_state(self.rules).put("rule", rule)

    def process_element(self, line, context):
        rule = context.get_broadcast_state(self.rules).get("rule")
        assert rule is None or isinstance(rule, Rule)
        yield line


def main(backend):
    settings = {
        "state.backend.type": backend,
        "execution.checkpointing.interval": "100 ms",
        "penstock.progress": "off",
        "spark.master": "local[4]",
        "restart-strategy.type": "none",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    payments = [Payment(kind, cents, cents) for cents in range(1, 6) for kind in Kind]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(At())
    keyed = (
        env.from_collection(payments)
        .rebalance()
        .map(priced)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda each: each.kind)
    )
    totals = keyed.process(Totals())
    receipts = totals.get_side_output(RECEIPTS).map(lambda r: Line(r.text, Kind.PAY, 0))
    windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).process(Sum())
    rules = env.from_collection([Rule(2)]).broadcast(Ruled.rules)
    lines = totals.union(windows, receipts).connect(rules).process(Ruled())
    with lines.execute_and_collect() as results:
        found = list(results)
    assert all(isinstance(line, Line) and isinstance(line.kind, Kind) for line in found)
    for line in sorted(found, key=lambda line: (line.what, line.kind.value)):
        print(line.what, line.kind.value, line.cents)


if __name__ == "__main__":
    main(sys.argv[1])
"""

EXPECTED = sorted(
    [
        *(f"{kind} {cents} pay 0" for kind in ("pay", "refund") for cents in range(1, 6)),
        *(f"{what} {kind} 15" for what in ("total", "window") for kind in ("pay", "refund")),
    ]
)

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs Python as a user would: nothing of this process's settings of Spark."""
    spark = ("SPARK_", "PYSPARK_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(spark)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    return run


@pytest.mark.parametrize("backend", BACKENDS)
def test_in_every_place_where_a_record_can_be(tmp_path: Path, run: Run, backend: str) -> None:
    Path(tmp_path, "job.py").write_text(PROGRAM)
    done = run("job.py", backend)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == EXPECTED


@pytest.mark.parametrize(
    "words", [("-m", "shop.job"), ("-m", "penstock", "run", "shop/job.py")], ids=["-m", "run"]
)
def test_of_a_module_that_is_run(tmp_path: Path, run: Run, words: tuple[str, ...]) -> None:
    Path(tmp_path, "shop").mkdir()
    Path(tmp_path, "shop", "__init__.py").write_text("")
    Path(tmp_path, "shop", "job.py").write_text(PROGRAM)
    done = run(*words, "hashmap")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == EXPECTED


SAVED = """
import dataclasses, sys

from penstock.common import Configuration, Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.state import ValueStateDescriptor


@dataclasses.dataclass
class Tally:
    count: int
    #FIELDS

    def one_more(self):
        return Tally(self.count + 1)


class Count(KeyedProcessFunction):
    def open(self, context):
        self.tally = context.get_state(ValueStateDescriptor("tally", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, context):
        before = self.tally.value()
        #CHANGED
        after = Tally(1) if before is None else before.one_more()
        self.tally.update(after)
        yield value, after


settings = {"penstock.progress": "off", "spark.master": "local[4]"}
settings["state.backend.type"] = sys.argv[1]
settings["execution.checkpointing.interval"] = "200 ms"
if len(sys.argv) > 3:
    settings["execution.state-recovery.path"] = sys.argv[3]
env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
env.set_parallelism(2)
numbers = env.from_source(
    DataGeneratorSource(lambda n: n, rate_per_second=200), WatermarkStrategy.no_watermarks(), "n"
)
counted = numbers.uid("n").key_by(lambda n: n % 2).process(Count()).uid("count")
with counted.execute_and_collect() as results:
    for number, tally in results:
        # Of an even number n there were n / 2 before it, whichever run counted them.
        assert tally.count == number // 2 + 1, (number, tally)
        if tally.count > (20 if len(sys.argv) == 3 else 60):
            break
    print(results.job_client.stop_with_savepoint(False, sys.argv[2]).result())
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_savepoint_of_them_is_restored_by_the_changed_script(
    tmp_path: Path, run: Run, backend: str
) -> None:
    job, savepoints = Path(tmp_path, "job.py"), str(tmp_path / "savepoints")
    job.write_text(SAVED)
    first = run("job.py", backend, savepoints)
    assert first.returncode == 0, first.stderr
    changed = SAVED.replace("#FIELDS", "note: str = 'none'")
    changed = changed.replace("#CHANGED", "assert before is None or before.note == 'none'")
    job.write_text(changed)
    second = run("job.py", backend, savepoints, first.stdout.strip())
    assert second.returncode == 0, second.stderr
    job.write_text(SAVED.replace("Tally", "Renamed"))
    third = run("job.py", backend, savepoints, first.stdout.strip())
    assert third.returncode == 1
    assert "__main__.Tally" in third.stderr and "'tally'" in third.stderr, third.stderr
