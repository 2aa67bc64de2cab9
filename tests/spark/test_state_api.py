"""State as DataFrames on a real Spark: bootstrap a job, look into one, repair it."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.checkpoint.savepoints import open_snapshot
from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, Encoder, Row, Time, Types, WatermarkStrategy
from penstock.datastream import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    KeyedProcessFunction,
    MapFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.errors import ProgramError, StateError, TypeMismatchError
from penstock.state_api import SavepointReader, SavepointWriter

COUNT = ValueStateDescriptor("count", Types.LONG())
RECENT = ListStateDescriptor("recent", Types.LONG())
KEYS = 5


class Count(KeyedProcessFunction):
    """Counts per key, and remembers the last two numbers."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(COUNT)
        self.recent = runtime_context.get_list_state(RECENT)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.recent.update([*(self.recent.get() or ()), value][-2:])
        yield f"{ctx.get_current_key()} {count} {value}"


class Limits(MapFunction, CheckpointedFunction):
    """Lets pass what all subtasks were told to, by state that has no key."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.own = store.get_list_state(ListStateDescriptor("own", Types.STRING()))
        self.all = store.get_union_list_state(ListStateDescriptor("all", Types.STRING()))

    def snapshot_state(self, context: Any) -> None:
        pass

    def map(self, value: Any) -> Any:
        return value, sorted(self.own.get() or ()), sorted(self.all.get() or ())


def environment(restore: str | None = None, parallelism: int = 2) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("parallelism.default", str(parallelism))
    if restore is not None:
        configuration.set_string("execution.state-recovery.path", restore)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def counted(env: StreamExecutionEnvironment, first: int, last: int) -> Any:
    source = NumberSequenceSource(first, last)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "n").uid("numbers")
    return numbers.key_by(lambda n: f"k{n % KEYS}").process(Count(), Types.STRING()).uid("count")


def values(frame: DataFrame) -> dict[Any, Any]:
    return {row.key: row.value for row in frame.collect()}


def test_a_job_begins_with_state_from_a_data_frame(session: SparkSession, tmp_path: Path) -> None:
    history = session.range(0, KEYS, 1, 1).selectExpr("concat('k', id) as key", "100 * id as value")
    last = session.createDataFrame([("k0", [1, 2]), ("k1", None)], "key string, value array<long>")
    writer = SavepointWriter.new_savepoint(parallelism=3)
    writer.with_keyed_state("count", COUNT, history).with_keyed_state("count", RECENT, last)
    path = writer.write(str(tmp_path))
    assert Path(path).parent == tmp_path
    env = environment(path)
    lines = [line.split() for line in counted(env, 0, KEYS - 1).execute_and_collect()]
    # k3's history is 300, so its first number is the 301st.
    assert {(key, int(count)) for key, count, _ in lines} == {
        (f"k{n}", 100 * n + 1) for n in range(KEYS)
    }


def test_a_savepoint_says_what_the_output_said_and_is_repaired(
    session: SparkSession, tmp_path: Path
) -> None:
    env = environment()
    env.enable_checkpointing(200)
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    counted(env, 0, 10**9).sink_to(sink).uid("files")
    job = env.execute_async("counting")
    while not any((tmp_path / "out").rglob("part-*")):
        assert not job.get_job_execution_result().done()
    path = job.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(PATIENCE)
    job.get_job_execution_result().result(PATIENCE)
    said: dict[str, tuple[int, int]] = {}
    for file in (tmp_path / "out").rglob("part-*"):
        for key, count, number in map(str.split, file.read_text().splitlines()):
            said[key] = max(said.get(key, (0, 0)), (int(count), int(number)))
    reader = SavepointReader(path)
    [operator] = [operator for operator in reader.operators() if operator.uid == "count"]
    assert [(s.name, s.kind) for s in operator.states if s.name[0] != "_"] == [
        ("count", "value"),
        ("recent", "list"),
    ]
    counts = reader.state("count", "count")
    assert counts.rdd.getNumPartitions() == 2, "a task for each subtask"
    assert values(counts) == {key: count for key, (count, _) in said.items()}
    recent = values(reader.state("count", "recent"))
    assert {key: numbers[-1] for key, numbers in recent.items()} == {
        key: number for key, (_, number) in said.items()
    }
    # One value is repaired, one key goes, all else stays: the positions of the source too.
    repaired = counts.where("key <> 'k4'").withColumn(
        "value", F.expr("if(key = 'k2', 1000000000, value)")
    )
    writer = SavepointWriter.from_existing_savepoint(path)
    # What the sink has was committed when the job stopped; the next job has no such sink.
    writer.with_keyed_state("count", COUNT, repaired).remove_operator("files")
    copy = writer.write(str(tmp_path / "repaired"))
    assert values(SavepointReader(copy).state("count", "recent")) == recent
    before, after = (open_snapshot(p).metadata for p in (path, copy))
    assert after.enumerators == before.enumerators
    beyond = max(number for _, number in said.values()) + 5 * KEYS
    env = environment(copy, parallelism=3)
    lines = [line.split() for line in counted(env, 0, beyond).execute_and_collect()]
    first = {key: min(int(c) for k, c, _ in lines if k == key) for key, _, _ in lines}
    assert first == {
        "k0": said["k0"][0] + 1,
        "k1": said["k1"][0] + 1,
        "k2": 1_000_000_001,
        "k3": said["k3"][0] + 1,
        "k4": 1,
    }


def test_operator_and_broadcast_state_from_data_frames(
    session: SparkSession, tmp_path: Path
) -> None:
    names = session.createDataFrame([("a",), ("b",), ("c",)], "value string")
    rules = session.createDataFrame([("limit", 3)], "key string, value long")
    rule = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
    path = (
        SavepointWriter.new_savepoint(parallelism=2)
        .with_list_state("limits", ListStateDescriptor("own", Types.STRING()), names)
        .with_union_list_state("limits", ListStateDescriptor("all", Types.STRING()), names)
        .with_broadcast_state("ruled", rule, rules)
        .write(str(tmp_path))
    )

    class Ruled(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            if value[0] < ctx.get_broadcast_state(rule).get("limit"):
                yield value

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            raise AssertionError("nobody broadcasts")

    for parallelism in (2, 3):
        env = environment(path, parallelism)
        source = NumberSequenceSource(0, 9)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "n").uid("numbers")
        limited = numbers.map(Limits()).uid("limits")
        side = env.from_collection([0]).filter(lambda _: False).broadcast(rule)
        results = list(limited.connect(side).process(Ruled()).uid("ruled").execute_and_collect())
        assert sorted(number for number, _, _ in results) == [0, 1, 2]
        assert all(everything == ["a", "b", "c"] for _, _, everything in results)
        parts = {tuple(own) for _, own, _ in results}
        assert all(set(part) < {"a", "b", "c"} for part in parts)
    reader = SavepointReader(path)
    rows = reader.state("limits", "own").collect()
    assert sorted((row.subtask, row.position, row.value) for row in rows) == [
        (0, 0, "a"),
        (0, 1, "c"),
        (1, 0, "b"),
    ]
    assert [row.value for row in reader.state("limits", "all").orderBy("position").collect()] == [
        *("a", "b", "c")
    ]
    assert values(reader.state("ruled", "rules")) == {"limit": 3}


MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 6000)
PAYMENT = Types.ROW_NAMED(
    ["amount", "at", "tags", "by", "raw", "pair"],
    [
        Types.BIG_DEC(),
        Types.SQL_TIMESTAMP(),
        Types.LIST(Types.STRING()),
        Types.MAP(Types.STRING(), Types.DOUBLE()),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.TUPLE([Types.INT(), Types.SQL_DATE()]),
    ],
)


def test_every_type_there_and_back(session: SparkSession, tmp_path: Path) -> None:
    """Read, written as it was read, read again: the same, as DataFrames and as Python's values."""
    row = Row(
        amount=decimal.Decimal("12.5"),
        at=MOMENT,
        tags=["x", None],
        by={"a": 0.5},
        raw=b"\x00\xff",
        pair=(7, MOMENT.date()),
    )
    tuple_row = tuple(row)
    keyed = MapStateDescriptor("payments", Types.STRING(), PAYMENT)
    lives = ValueStateDescriptor("lives", Types.STRING())
    lives.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
    anything = ValueStateDescriptor("anything", Types.PICKLED_BYTE_ARRAY())
    payment = (
        "struct<amount: decimal(38,18), at: timestamp_ntz, tags: array<string>,"
        " by: map<string,double>, raw: binary, pair: struct<f0: long, f1: date>>"
    )
    payments = session.createDataFrame(
        [(("m", 1), {"p": tuple_row})],
        f"key struct<f0: string, f1: long>, value map<string, {payment}>",
    )
    expiring = session.createDataFrame(
        [("k", ("x", 5))], "key string, value struct<value: string, updated: long>"
    )
    timers = session.createDataFrame([("k", [9, 8])], "key string, value array<long>")
    plain = session.createDataFrame([("k", 7)], "key string, value long")
    path = (
        SavepointWriter.new_savepoint(max_parallelism=16, parallelism=2)
        .with_keyed_state("all", keyed, payments)
        .with_keyed_state("all", lives, expiring)
        .with_keyed_state("all", anything, plain)
        .with_timers("all", timers)
        .write(str(tmp_path / "one"))
    )
    reader = SavepointReader(path)
    frames = {s.name: reader.state("all", s.name) for s in reader.operators()[0].states}
    assert frames["payments"].schema["value"].dataType.simpleString() == (
        f"map<string,{payment.replace(': ', ':').replace(', ', ',').replace('long', 'bigint')}>"
    )
    assert values(frames["__event_timers"]) == {"k": [8, 9]}
    assert [tuple(r.value) for r in frames["lives"].collect()] == [("x", 5)]
    assert [r.value.repr for r in frames["anything"].collect()] == ["7"]
    typed = reader.state("all", "anything", value_type=Types.LONG())
    assert values(typed) == {"k": 7}
    again = SavepointWriter.new_savepoint(max_parallelism=16, parallelism=3)
    again.with_keyed_state("all", keyed, frames["payments"])
    again.with_keyed_state("all", lives, frames["lives"])
    again.with_keyed_state("all", anything, frames["anything"])
    again.with_timers("all", frames["__event_timers"])
    second = SavepointReader(again.write(str(tmp_path / "two")))
    for name, frame in frames.items():
        assert second.state("all", name).collect() == frame.collect(), name
    from penstock.inspection.catalog import Catalog
    from penstock.inspection.lookup import Lookup

    catalog = Catalog.open(second.path)
    info = catalog.operator("all").state("payments")
    assert Lookup(catalog, "all", info, trust=True).find('["m", 1]') == {"p": row}


def test_mistakes_are_said_in_one_line(session: SparkSession, tmp_path: Path) -> None:
    twice = session.createDataFrame([("a", 1), ("a", 2)], "key string, value long")
    writer = SavepointWriter.new_savepoint().with_keyed_state("count", COUNT, twice)
    with pytest.raises(StateError, match="'count' of key 'a' is in the DataFrame twice"):
        writer.write(str(tmp_path))
    text = session.createDataFrame([("a", "x")], "key string, value string")
    writer = SavepointWriter.new_savepoint().with_keyed_state("count", COUNT, text)
    with pytest.raises(TypeMismatchError, match="expected BIG_INT, got str"):
        writer.write(str(tmp_path))
    assert not any(tmp_path.rglob("shared/*")), "nothing is left of it"
    with pytest.raises(ProgramError, match=r"needs the columns key, value, and .* has id"):
        SavepointWriter.new_savepoint().with_keyed_state("count", COUNT, session.range(3))
    with pytest.raises(ProgramError, match="'count' of 'count' is given twice"):
        writer.with_keyed_state("count", COUNT, text)
    with pytest.raises(ProgramError, match=r"'__windows' .* cannot be written"):
        writer.with_keyed_state("w", ValueStateDescriptor("__windows", Types.LONG()), text)
    with pytest.raises(ProgramError, match="nothing that could be removed"):
        writer.remove_operator("count")


def test_operators_and_states_are_removed_and_added(session: SparkSession, tmp_path: Path) -> None:
    frame = session.createDataFrame([("a", 1)], "key string, value long")
    other = ValueStateDescriptor("other", Types.LONG())
    path = (
        SavepointWriter.new_savepoint(parallelism=2)
        .with_keyed_state("one", COUNT, frame)
        .with_keyed_state("one", other, frame)
        .with_keyed_state("two", COUNT, frame)
        .write(str(tmp_path))
    )
    writer = SavepointWriter.from_existing_savepoint(path, parallelism=1)
    with pytest.raises(StateError, match="no operator with uid 'three'; it has 'one'"):
        writer.remove_operator("three")
    with pytest.raises(StateError, match="'one' has no state 'x'; it has 'count'"):
        writer.remove_state("one", "x")
    writer.remove_state("one", "other").remove_operator("two")
    changed = SavepointReader(
        writer.with_keyed_state(
            "three", other, frame.selectExpr("key", "value + 1 as value")
        ).write(str(tmp_path))
    )
    found = {o.uid: [state.name for state in o.states] for o in changed.operators()}
    assert found == {"one": ["count"], "three": ["other"]}
    assert values(changed.state("one", "count")) == {"a": 1}
    assert values(changed.state("three", "other")) == {"a": 2}
    assert {o.uid: o.parallelism for o in changed.operators()} == {"one": 2, "three": 1}


@pytest.mark.parametrize("files_from", ["8 mb", "0"], ids=["entries", "files"])
def test_a_retained_checkpoint_becomes_a_savepoint_for_any_backend(
    session: SparkSession, tmp_path: Path, files_from: str
) -> None:
    env = environment()
    configuration = env._configuration
    below = "execution.checkpointing."
    configuration.set_string(below + "interval", "50 ms")
    configuration.set_string(below + "dir", str(tmp_path / "checkpoints"))
    configuration.set_string(below + "externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION")
    configuration.set_string("state.backend.type", "rocksdb")
    configuration.set_string("state.backend.rocksdb.checkpoint.files-from", files_from)
    counted(env, 0, 10**9).filter(lambda _: False).print()
    job = env.execute_async("counting")
    while job.progress().completed_checkpoints < 4:
        assert not job.get_job_execution_result().done()
    job.cancel().result(PATIENCE)
    [folder] = (tmp_path / "checkpoints").iterdir()
    store = CheckpointStore(str(tmp_path / "checkpoints"), folder.name)
    checkpoint = folder / f"chk-{store.whole()[-1]}"
    before = values(SavepointReader(str(checkpoint)).state("count", "count"))
    assert len(before) == KEYS
    writer = SavepointWriter.from_existing_savepoint(str(checkpoint))
    path = writer.write(str(tmp_path / "savepoints"))
    reader = SavepointReader(path)
    assert {operator.backend for operator in reader.operators()} == {""}
    assert values(reader.state("count", "count")) == before
    handles = open_snapshot(path).metadata.segments()
    assert len(handles) == 2, "one for each subtask, whatever the checkpoint was built upon"
    # Each of the two readers takes every second number: none is beyond twice what was counted.
    each = 2 * sum(before.values()) // KEYS + 2
    lines = counted(environment(path, 1), 0, each * KEYS - 1).execute_and_collect()
    last: dict[str, int] = {}
    for key, count, _ in map(str.split, lines):
        last[key] = max(int(count), last.get(key, 0))
    assert last == {f"k{n}": each for n in range(KEYS)}, "each number is counted once"
