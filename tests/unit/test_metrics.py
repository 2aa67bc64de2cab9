"""Metrics and accumulators of user functions, from the function to the JobMaster."""

from __future__ import annotations

import logging

import pytest

from penstock.common import DistributionValue, IntCounter, MeterValue
from penstock.common.accumulators import Accumulator
from penstock.datastream import FlatMapFunction, KeySelector, MapFunction
from penstock.errors import ProgramError
from penstock.graph.execution_graph import SubtaskId
from penstock.jobmanager.reports import accumulator_results, readings_of
from penstock.metrics import MetricGroup
from penstock.network.messages import AtEnd, Heartbeat, SubtaskReport
from penstock.testing import local_environment


def values(group: MetricGroup, now_ms: int = 0) -> dict:
    return dict(group.read(now_ms))


def test_a_counter_goes_up_and_down() -> None:
    group = MetricGroup()
    counter = group.counter("n")
    counter.inc()
    counter.inc(5)
    counter.dec(2)
    counter.dec()
    assert counter.get_count() == 3 and values(group) == {"n": 3}


def test_a_meter_tells_the_rate_of_its_time_span() -> None:
    group = MetricGroup()
    meter = group.meter("events", time_span_in_seconds=10)
    group.begin(0)
    meter.mark_event(100)
    assert values(group, 5_000) == {"events": MeterValue(100, 20.0)}
    assert values(group, 20_000)["events"].count == 100
    meter.mark_event()
    assert values(group, 25_000) == {"events": MeterValue(101, 0.2)}
    assert meter.get_count() == 101


def test_a_meter_keeps_few_readings() -> None:
    meter = MetricGroup().meter("events", 1)
    for now in range(0, 100_000, 100):
        meter.read(now)
    assert len(meter._samples) <= 12


def test_a_distribution_knows_how_its_values_lie() -> None:
    group = MetricGroup()
    distribution = group.distribution("size")
    assert values(group) == {"size": DistributionValue(0, None, None, None)}
    assert values(group)["size"].mean is None
    for value in (4, -1, 9):
        distribution.update(value)
    assert values(group) == {"size": DistributionValue(3, 12, -1, 9)}
    assert values(group)["size"].mean == 4


def test_groups_are_in_the_name() -> None:
    group = MetricGroup()
    group.add_group("rules").add_group("kind", "fraud").counter("hits").inc()
    assert values(group) == {"rules.kind.fraud.hits": 1}


def test_a_name_is_one_metric() -> None:
    group = MetricGroup()
    assert group.counter("n") is group.counter("n")
    with pytest.raises(ProgramError, match=r"'n' is registered twice: as counter and as gauge"):
        group.gauge("n", lambda: 1)
    with pytest.raises(ProgramError, match="needs a function"):
        group.gauge("g", 5)  # type: ignore[arg-type]


def test_a_gauge_that_raises_is_absent_and_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group, answers = MetricGroup(), [1, "x", 2.5, True]
    group.gauge("bad", lambda: 1 / 0)
    group.gauge("odd", lambda: object())
    group.gauge("good", lambda: answers.pop(0))
    with caplog.at_level(logging.WARNING):
        assert [values(group) for _ in range(4)] == [
            {"good": 1},
            {"good": "x"},
            {"good": 2.5},
            {"good": True},
        ]
    assert [record.getMessage() for record in caplog.records] == [
        "gauge 'bad' has no value: ZeroDivisionError: division by zero",
        "gauge 'odd' has no value: TypeError: it returned a object, not a number, a bool or a str",
    ]


# --- in a slot --------------------------------------------------------------------------------


class Longest(Accumulator):
    """A user's own."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, value: str) -> None:
        self.text = max(self.text, value, key=len)

    def get_local_value(self) -> str:
        return self.text

    def reset_local(self) -> None:
        self.text = ""

    def merge(self, other: Longest) -> None:
        self.add(other.text)


class Watched(MapFunction):
    def open(self, runtime_context) -> None:
        self.context = runtime_context
        group = runtime_context.get_metrics_group()
        self.seen = group.counter("seen")
        group.gauge("half", lambda: self.seen.get_count() / 2)
        group.gauge("broken", lambda: self.nothing)
        runtime_context.add_accumulator("sum", IntCounter())
        runtime_context.add_accumulator("longest", Longest())

    def map(self, value):
        self.seen.inc()
        self.context.get_accumulator("sum").add(value)
        self.context.get_accumulator("longest").add("x" * value)
        return value


def test_the_end_of_input_carries_the_last_values(cluster) -> None:
    def build(env):
        env.from_collection(range(10)).rebalance().map(Watched()).name("watched").print()

    run = cluster(build, parallelism=2).run()
    reports = {SubtaskId(*m.subtask): m.report for m in run.of(AtEnd) if m.report is not None}
    readings = {(r.operator, r.subtask, r.name): r.value for r in readings_of(reports)}
    assert readings == {
        ("watched", 0, "seen"): 5,
        ("watched", 0, "half"): 2.5,
        ("watched", 1, "seen"): 5,
        ("watched", 1, "half"): 2.5,
    }
    assert accumulator_results(reports) == {"sum": 45, "longest": "x" * 9}


def test_heartbeats_carry_what_the_loop_has_read(cluster) -> None:
    def build(env):
        env.from_collection(range(10)).map(Watched()).name("watched").print()

    run = cluster(build)
    [slot] = run.slots
    assert slot.heartbeat().reports == {}
    run.turn()
    [report] = slot.heartbeat().reports.values()
    assert [r.name for r in report.metrics] == ["seen", "half"]


def test_without_metrics_a_heartbeat_asks_for_nothing(cluster) -> None:
    run = cluster(lambda env: env.from_collection([1]).map(lambda v: v).print())
    [slot] = run.slots
    slot.heartbeat()
    assert not slot._report_wanted
    run.run()
    assert slot.heartbeat().reports == {}
    assert all(message.report is None for message in run.of(AtEnd))


class CountingSelector(KeySelector):
    def open(self, runtime_context) -> None:
        runtime_context.get_metrics_group()

    def get_key(self, value):
        return value


def test_what_serves_several_subtasks_has_no_metrics(cluster) -> None:
    def build(env):
        env.from_collection([1]).key_by(CountingSelector()).reduce(max).print()

    with pytest.raises(ProgramError, match="has no metrics or accumulators"):
        cluster(build)


class Careless(FlatMapFunction):
    def __init__(self, name: str) -> None:
        self.name = name

    def open(self, runtime_context) -> None:
        if self.name == "twice":
            runtime_context.add_accumulator("n", IntCounter())
            runtime_context.add_accumulator("n", IntCounter())
        elif self.name == "missing":
            runtime_context.get_accumulator("n")
        else:
            runtime_context.add_accumulator("n", 5)

    def flat_map(self, value):
        return None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("twice", "'n' was added already"),
        ("missing", "'n' was not added"),
        ("wrong", "needs an Accumulator, not a int"),
    ],
)
def test_mistakes_with_accumulators_are_told(cluster, name: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        cluster(lambda env: env.from_collection([1]).flat_map(Careless(name)).print())


def test_a_heartbeat_that_comes_late_does_not_undo_the_last_word() -> None:
    with local_environment() as env:
        env.from_collection(range(10)).map(Watched()).print()
        env.execute()
        master = env.simulation.master
        reports = master.progress().reports
        old = {subtask: SubtaskReport((), None) for subtask in reports}
        master.handle(1, Heartbeat(master.number, 0, reports=old))
        assert master.progress().reports == reports != old
