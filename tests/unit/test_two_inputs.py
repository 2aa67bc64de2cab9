"""Connected streams, broadcast state, side outputs: two inputs, several outputs, one function."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import pytest

from penstock.checkpoint.store import CheckpointStore
from penstock.common import Types, WatermarkStrategy
from penstock.connectors.client_sinks import CollectSink
from penstock.connectors.collection import CollectionSource
from penstock.connectors.source import QueueEnumerator, Source, SourceReader
from penstock.datastream import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    Partitioner,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.errors import ProgramError
from penstock.network.messages import Abort
from penstock.testing import local_environment

NONE = WatermarkStrategy.no_watermarks()
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
LATE = OutputTag("late")


def collect(stream):
    stream.sink_to(CollectSink())


class Sides(CoMapFunction):
    def map1(self, value):
        return ("left", value)

    def map2(self, value):
        return ("right", value)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_each_record_meets_the_method_of_its_stream(cluster, parallelism):
    def build(env):
        left, right = env.from_collection(range(100)), env.from_collection("abc")
        collect(left.connect(right).map(Sides()))

    running = cluster(build, parallelism=parallelism).run()
    expected = [("left", n) for n in range(100)] + [("right", c) for c in "abc"]
    assert Counter(running.collected()) == Counter(expected)
    assert running.ended()


class Repeat(CoFlatMapFunction):
    def flat_map1(self, value):
        return [value] * 2

    def flat_map2(self, value):
        return None


def test_a_co_flat_map_gives_any_number_of_records(cluster):
    def build(env):
        left, right = env.from_collection([1, 2]), env.from_collection([3])
        collect(left.connect(right).flat_map(Repeat()))

    assert sorted(cluster(build).run().collected()) == [1, 1, 2, 2]


class Join(KeyedCoProcessFunction):
    """Holds the left record until the right one comes, and a timer for those that never meet."""

    def open(self, runtime_context):
        self._left = runtime_context.get_state(ValueStateDescriptor("left", Types.LONG()))
        self._right = runtime_context.get_state(ValueStateDescriptor("right", Types.STRING()))

    def process_element1(self, value, ctx):
        self._left.update(value[1])
        yield from self._met(ctx)

    def process_element2(self, value, ctx):
        self._right.update(value[1])
        yield from self._met(ctx)

    def _met(self, ctx):
        left, right = self._left.value(), self._right.value()
        if left is not None and right is not None:
            yield ctx.get_current_key(), left, right
        else:
            ctx.timer_service().register_processing_time_timer(1_000_100)

    def on_timer(self, timestamp, ctx):
        if self._left.value() is None or self._right.value() is None:
            yield LATE, ctx.get_current_key()


def key(record):
    return record[0]


@pytest.mark.parametrize("parallelism", [1, 4])
def test_both_streams_share_the_state_and_the_timers_of_a_key(cluster, parallelism):
    def build(env):
        left = env.from_source(Waiting(*[(k, n) for n, k in enumerate("abcd")]), NONE, "left")
        right = env.from_source(Waiting(*[(k, k.upper()) for k in "bcde"]), NONE, "right")
        joined = left.connect(right).key_by(key, key).process(Join())
        collect(joined.union(joined.get_side_output(LATE)))

    running = cluster(build, parallelism=parallelism).run()
    met = [("b", 1, "B"), ("c", 2, "C"), ("d", 3, "D")]
    assert sorted(running.collected()) == met
    running.clock.now += 200
    assert Counter(running.run().collected()) == Counter([*met, "a", "e"])
    assert not running.failures()


class Counted(CoProcessFunction):
    def process_element1(self, value, ctx):
        assert ctx.timestamp() is None
        assert ctx.timer_service().current_processing_time() > 0
        yield "one", value

    def process_element2(self, value, ctx):
        yield LATE, ("two", value)


def test_a_co_process_function_has_side_outputs(cluster):
    def build(env):
        both = env.from_collection([1]).connect(env.from_collection([2])).process(Counted())
        collect(both.get_side_output(LATE))

    assert cluster(build).run().collected() == [("two", 2)]


# --- side outputs -----------------------------------------------------------------------------


class Sort(ProcessFunction):
    def process_element(self, value, ctx):
        if value < 0:
            yield OutputTag("negative"), value
        elif value == 0:
            yield OutputTag("nobody reads this"), value
        else:
            yield value


@pytest.mark.parametrize("parallelism", [1, 3])
def test_records_go_where_their_tag_says(cluster, parallelism):
    def build(env):
        sorted_out = env.from_collection([3, -1, 0, 4, -2]).process(Sort())
        negative = sorted_out.get_side_output(OutputTag("negative"))
        collect(sorted_out.map(lambda n: ("main", n)))
        collect(negative.map(lambda n: ("side", n)))
        collect(negative.rebalance().map(lambda n: ("again", n)))

    collected = cluster(build, parallelism=parallelism).run().collected()
    assert Counter(collected) == Counter(
        [("main", 3), ("main", 4)] + [(w, n) for w in ("side", "again") for n in (-1, -2)]
    )


def test_a_side_output_of_something_else_is_refused():
    env = StreamExecutionEnvironment()
    with pytest.raises(ProgramError, match="'Map' has no side outputs"):
        env.from_collection([1]).map(str).get_side_output(LATE)
    with pytest.raises(ProgramError, match="needs an OutputTag, not a str"):
        env.from_collection([1]).process(Sort()).get_side_output("late")


def test_side_outputs_have_the_type_of_their_tag(cluster):
    def build(env):
        sorted_out = env.from_collection([3, -4]).process(Sort())
        collect(sorted_out.get_side_output(OutputTag("negative", Types.DOUBLE())))

    [found] = cluster(build).run().collected()
    assert found == -4.0 and type(found) is float


def test_a_side_output_that_does_not_fit_its_type_is_shown(cluster):
    def build(env):
        sorted_out = env.from_collection([-1]).process(Sort())
        collect(sorted_out.get_side_output(OutputTag("negative", Types.STRING())))

    [error] = cluster(build).run().failures()
    assert error.code == "TYPE_MISMATCH" and "expected STRING, got int" in str(error)


def test_a_side_output_has_one_type():
    sorted_out = StreamExecutionEnvironment().from_collection([1]).process(Sort())
    read = sorted_out.get_side_output(OutputTag("negative", Types.LONG()))
    assert read.get_type() == Types.LONG()
    sorted_out.get_side_output(OutputTag("negative"))
    with pytest.raises(ProgramError, match="is read as LONG and as STRING"):
        sorted_out.get_side_output(OutputTag("negative", Types.STRING()))


def test_a_side_output_that_is_read_by_a_wrong_name_is_noted():
    def notes(name, numbers):
        with local_environment() as env:
            sorted_out = env.from_collection(numbers).process(Sort()).name("Sort")
            sorted_out.get_side_output(OutputTag(name)).print()
            return env.execute().notes

    [note] = notes("negativ", [1, -1])
    assert note.startswith("side output 'negativ' of operator 'Sort' is read and got no records")
    assert "'negative'" in note
    # Nothing is wrong with a side output that had no reason to get records.
    assert notes("negative", [1]) == notes("negative", [0, -1]) == ()


def test_timers_without_a_key_are_refused(cluster):
    class Early(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)

    running = cluster(lambda env: collect(env.from_collection([1]).process(Early()))).run()
    [error] = running.failures()
    assert "timers belong to a key: call key_by()" in str(error)


# --- broadcast state --------------------------------------------------------------------------


class Limits(KeyedBroadcastProcessFunction):
    """Counts per key; tells when a rule's limit is reached."""

    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        rules = ctx.get_broadcast_state(RULES)
        yield ctx.get_current_key(), count, sorted(rules.items())

    def process_broadcast_element(self, value, ctx):
        name, limit = value
        rules = ctx.get_broadcast_state(RULES)
        if limit is None:
            rules.remove(name)
        else:
            rules.put(name, limit)


class Waiting(Source):
    """Some records in one subtask, and then silence."""

    def __init__(self, *values):
        self.values = list(values)

    def create_enumerator(self, context, restored):
        return QueueEnumerator([0] if restored is None else [])

    def create_reader(self, context):
        return WaitingReader(self.values)


class WaitingReader(SourceReader):
    def __init__(self, values):
        self.values, self.begun = values, False

    def add_splits(self, splits):
        self.begun = True

    def poll(self, limit):
        if not self.begun:
            return None
        given, self.values = self.values[:limit], self.values[limit:]
        return given

    def snapshot(self):
        return [0] if self.begun else []


def limited(payments, rules):
    def build(env):
        told = env.from_source(rules, NONE, "rules").broadcast(RULES)
        keyed = env.from_source(payments, NONE, "payments").key_by(lambda value: value)
        collect(keyed.connect(told).process(Limits()).uid("limits"))

    return build


@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_subtask_has_the_rules_and_they_survive(cluster, tmp_path, parallelism):
    store = CheckpointStore(str(tmp_path), "job")
    first = limited(Waiting(), Waiting(("a", 1), ("b", 2), ("a", None), ("c", 3)))
    running = cluster(first, parallelism=parallelism, store=store).run()
    running.trigger(1)
    snapshots = running.run().snapshots(1)
    restored = {tuple(subtask): snapshot for subtask, snapshot in snapshots.items()}
    second = limited(Waiting(*"uvwxyz"), Waiting())
    again = cluster(second, parallelism=parallelism, store=store, restored=restored)
    assert not again.run().failures()
    assert sorted(again.collected()) == [(k, 1, [("b", 2), ("c", 3)]) for k in "uvwxyz"]


class Reads(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        rules = ctx.get_broadcast_state(RULES)
        try:
            rules.clear()
        except Exception as error:
            yield str(error)

    def process_broadcast_element(self, value, ctx):
        yield from ()


def test_the_other_side_may_only_read(cluster):
    def build(env):
        told = env.from_collection([1]).broadcast(RULES)
        collect(env.from_collection([1]).connect(told).process(Reads()))

    running = cluster(build).run()
    assert not running.failures()
    [text] = running.collected()
    assert "'rules' can be changed in process_broadcast_element only" in text


class AsksForAnother(Reads):
    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(MapStateDescriptor("other", Types.STRING(), Types.LONG()))


def test_broadcast_states_must_be_declared(cluster):
    def build(env):
        told = env.from_collection([1]).broadcast(RULES)
        collect(env.from_collection([1]).connect(told).process(AsksForAnother()))

    [error] = cluster(build).run().failures()
    assert "broadcast state 'other' is not declared" in str(error)


class Forgets(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        self._count.update(1)


def test_the_broadcast_side_has_no_key(cluster):
    def build(env):
        told = env.from_collection([1]).broadcast(RULES)
        keyed = env.from_collection([1]).key_by(lambda value: value)
        collect(keyed.connect(told).process(Forgets()))

    [error] = cluster(build).run().failures()
    assert "there is no current key here" in str(error)


# --- rich functions on keyed streams ----------------------------------------------------------


class CountingMap(MapFunction):
    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value):
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        return value, count


def test_a_rich_function_on_a_keyed_stream_has_state(cluster):
    def build(env):
        collect(env.from_collection("abaa").key_by(lambda value: value).map(CountingMap()))

    assert sorted(cluster(build).run().collected()) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]


class Opens(KeyedProcessFunction):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("count", Types.LONG())).update(1)

    def process_element(self, value, ctx):
        return None


def test_state_in_open_has_no_key(cluster):
    with pytest.raises(Exception, match="there is no current key here"):
        cluster(lambda env: collect(env.from_collection([1]).key_by(str).process(Opens())))


# --- aggregations -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "records", "expected"),
    [
        ("sum", [("a", 1, "x"), ("a", 2, "y")], [("a", 1, "x"), ("a", 3, "x")]),
        ("min", [("a", 2, "x"), ("a", 1, "y")], [("a", 2, "x"), ("a", 1, "x")]),
        ("max", [("a", 1, "x"), ("a", 2, "y")], [("a", 1, "x"), ("a", 2, "x")]),
        ("min_by", [("a", 2, "x"), ("a", 1, "y"), ("a", 1, "z")], None),
        ("max_by", [("a", 1, "x"), ("a", 2, "y"), ("a", 2, "z")], None),
        ("sum", [["a", 1], ["a", 2]], [["a", 1], ["a", 3]]),
    ],
)
def test_running_aggregations_per_key(cluster, method, records, expected):
    def build(env):
        keyed = env.from_collection(records).key_by(lambda record: record[0])
        collect(getattr(keyed, method)(1))

    if expected is None:
        expected = [records[0], records[1], records[1]]
    assert cluster(build).run().collected() == expected


def test_aggregations_of_dicts_and_of_numbers(cluster):
    def dicts(env):
        keyed = env.from_collection([{"k": 1, "n": 2}, {"k": 1, "n": 3}]).key_by(lambda r: r["k"])
        collect(keyed.sum("n"))

    def numbers(env):
        collect(env.from_collection([1, 2, 3]).key_by(lambda n: 0).sum())

    assert cluster(dicts).run().collected()[-1] == {"k": 1, "n": 5}
    assert cluster(numbers).run().collected() == [1, 3, 6]


def test_a_field_that_is_not_there_is_named(cluster):
    def build(env):
        collect(env.from_collection([("a",), ("a",)]).key_by(key).sum(3))

    [error] = cluster(build).run().failures()
    assert "a tuple has no field 3: ('a',)" in str(error)


def test_a_projection_takes_fields_by_position(cluster):
    build = lambda env: collect(env.from_collection([(1, 2, 3)]).project(2, 0))  # noqa: E731
    assert cluster(build).run().collected() == [(3, 1)]


# --- partitioning -----------------------------------------------------------------------------


@pytest.mark.parametrize("spread", ["rescale", "shuffle", "global_", "rebalance"])
@pytest.mark.parametrize("widths", [(1, 3), (3, 2), (2, 2)])
def test_every_record_arrives_once(cluster, spread, widths):
    def build(env):
        source = env.from_source(CollectionSource(range(200)), NONE, "s").set_parallelism(1)
        wide = source.rebalance().map(lambda n: n).set_parallelism(widths[0])
        there = getattr(wide, spread)().map(lambda n: n).set_parallelism(widths[1])
        collect(there)

    running = cluster(build, parallelism=3).run()
    assert sorted(running.collected()) == list(range(200))
    assert running.ended()


def test_global_means_the_first_subtask(cluster):
    def build(env):
        collect(env.from_collection(range(50)).global_().map(lambda n: n).disable_chaining())

    running = cluster(build, parallelism=3).run()
    [vertex] = {
        s.vertex
        for s in running.graph.subtasks()
        if running.subtask(*s).metrics().records_in == 50 and s.vertex == 1
    }
    assert [running.subtask(vertex, n).metrics().records_in for n in range(3)] == [50, 0, 0]


@pytest.mark.parametrize("method", ["rebalance", "shuffle", "rescale", "forward", "broadcast"])
def test_a_keyed_stream_keeps_its_partitioning(method):
    keyed = StreamExecutionEnvironment().from_collection([1]).key_by(lambda n: n)
    with pytest.raises(ProgramError, match="a keyed stream is partitioned by its key"):
        getattr(keyed, method)()


def test_wrong_functions_and_foreign_streams_are_refused():
    env, other = StreamExecutionEnvironment(), StreamExecutionEnvironment()
    one, two = env.from_collection([1]), env.from_collection([2])
    with pytest.raises(ProgramError, match="needs a CoMapFunction, not a function"):
        one.connect(two).map(lambda n: n)
    with pytest.raises(ProgramError, match="different environments"):
        one.connect(other.from_collection([1]))
    with pytest.raises(ProgramError, match="key both"):
        one.connect(two.key_by(str)).flat_map(Repeat())
    with pytest.raises(ProgramError, match="keyed connected streams needs a KeyedCoProcess"):
        one.connect(two).key_by(str, str).process(Counted())
    with pytest.raises(ProgramError, match="broadcast\\(\\) needs a MapStateDescriptor"):
        one.broadcast(ValueStateDescriptor("rules", Types.LONG()))
    with pytest.raises(ProgramError, match="needs a KeyedBroadcastProcessFunction"):
        one.key_by(str).connect(two.broadcast(RULES)).process(Reads())


def test_a_barrier_waits_for_both_inputs(cluster, tmp_path):
    store = CheckpointStore(str(tmp_path), "job")

    def build(env):
        left, right = env.from_collection(range(500)), env.from_collection(range(500))
        collect(left.connect(right).map(Sides()))

    running = cluster(build, parallelism=2, store=store, buffer_records=8)
    for _ in range(3):
        running.turn()
    running.trigger(1)
    running.tell(Abort(running.ATTEMPT, 1))
    running.trigger(2)
    running.run()
    assert running.snapshots(2).keys() == set(running.graph.subtasks())
    assert len(running.collected()) == 1000


class ByFirst(KeySelector):
    """Needs to be opened, and says when it is closed."""

    calls: ClassVar[list[str]] = []

    def open(self, runtime_context):
        self.position = 0
        self.calls.append("open")

    def get_key(self, value):
        return value[self.position]

    def close(self):
        self.calls.append("close")


def test_a_key_selector_is_opened_and_closed_once_per_slot(cluster):
    def build(env):
        collect(env.from_collection([("a", 1), ("a", 2)]).key_by(ByFirst()).sum(1))

    ByFirst.calls.clear()
    running = cluster(build, share_functions=True).run()
    assert running.collected() == [("a", 1), ("a", 3)]
    running.slots[0].close()
    assert ByFirst.calls == ["open", "close"]


class Parity(Partitioner):
    def open(self, runtime_context):
        self.modulus = 2

    def partition(self, key, num_partitions):
        return key % self.modulus


def test_a_partitioner_is_opened(cluster):
    def build(env):
        collect(env.from_collection(range(10)).partition_custom(Parity(), lambda n: n).map(str))

    running = cluster(build, parallelism=2).run()
    assert sorted(map(int, running.collected())) == list(range(10))
