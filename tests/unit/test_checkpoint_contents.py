"""What a checkpoint holds, piece by piece; and that all pieces describe the same moment.

A job counts upwards and keeps what it has seen in every kind of state. When some checkpoints are
complete it is stopped in mid-air, and the newest one is read as a restart would read it. The
source's position says how many records lie before the cut: everything else must agree with it.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from penstock.checkpoint.coordinator import CheckpointSettings
from penstock.checkpoint.handles import MIN_WATERMARK
from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, Types, WatermarkStrategy
from penstock.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    KeyedProcessFunction,
    MapFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.invocation import Invocation, invoked
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.state.entries import decode_entries
from penstock.state.segments import decode_segment, describe_segment
from penstock.testing import OperatorHarness
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.simulator import Simulation

LONG, ANY = Types.LONG(), Types.PICKLED_BYTE_ARRAY()
KEYS, FAR = 5, 10**15


class Sum(AggregateFunction):
    def create_accumulator(self):
        return [0]

    def add(self, value, accumulator):
        accumulator[0] += value
        return accumulator

    def get_result(self, accumulator):
        return accumulator[0]

    def merge(self, acc_a, acc_b):
        return [acc_a[0] + acc_b[0]]


class Everything(KeyedProcessFunction):
    def open(self, context):
        self.value = context.get_state(ValueStateDescriptor("value", LONG))
        self.list = context.get_list_state(ListStateDescriptor("list", LONG))
        self.map = context.get_map_state(MapStateDescriptor("map", LONG, Types.BOOLEAN()))
        self.reducing = context.get_reducing_state(ReducingStateDescriptor("reducing", max, LONG))
        self.aggregating = context.get_aggregating_state(
            AggregatingStateDescriptor("aggregating", Sum(), ANY)
        )

    def process_element(self, value, ctx):
        self.value.update(value)
        self.list.add(value)
        self.map.put(value, True)
        self.reducing.add(value)
        self.aggregating.add(value)
        ctx.timer_service().register_event_time_timer(FAR + value)
        ctx.timer_service().register_processing_time_timer(FAR + value)
        yield value


class Counted(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.lists = [
            store.get_list_state(ListStateDescriptor("own", LONG)),
            store.get_union_list_state(ListStateDescriptor("union", LONG)),
        ]
        self.everywhere = store.get_broadcast_state(
            MapStateDescriptor("everywhere", Types.STRING(), LONG)
        )
        self.count = 0

    def snapshot_state(self, context):
        for state in self.lists:
            state.update([self.count])
        self.everywhere.put("count", self.count)

    def map(self, value):
        self.count += 1
        return value


class Checkpoint:
    """The newest checkpoint of a job that was stopped in mid-air."""

    def __init__(self):
        filesystem = FaultyFileSystem(random.Random(1), FaultRates())
        with invoked(Invocation(file={})):
            env = StreamExecutionEnvironment()
        env.set_parallelism(1)
        source = DataGeneratorSource(lambda n: n, 10**6, 1000.0)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", LONG)
        numbers = numbers.uid("numbers").map(Counted()).uid("counted")
        kept = numbers.key_by(lambda n: n % KEYS).process(Everything(), LONG).uid("everything")
        files = FileSink.for_row_format(f"{filesystem.uri}/out", lambda n: f"{n}\n".encode())
        kept.sink_to(files.build()).uid("files")
        store = CheckpointStore(f"{filesystem.uri}/checkpoints", "job")
        job = replace(
            env._assemble("contents"),
            id="job",
            store=store,
            checkpoints=CheckpointSettings(interval_ms=20),
        )
        simulation = Simulation(5, job, filesystem=filesystem)
        simulation.master.start()
        while simulation.master.progress().completed_checkpoints < 6:
            simulation.tick()
        self.files = {path: bytes(data) for path, data in filesystem.files.items()}
        self.metadata, notes = store.newest()
        assert notes == []
        self.segments = {}
        self.blocks = {}
        for uid, snapshot in self._operators().items():
            for handle in snapshot.segments:
                data = store.read_segment(handle.path)
                handle.verify(data)
                self.segments.setdefault(uid, []).append(data)
                for block in decode_segment(data, range(128)):
                    self.blocks.setdefault((uid, block.state), []).append(block)
        filesystem.forget()

    def _operators(self):
        return {
            uid: operator
            for vertex in self.metadata.vertices.values()
            for subtask in vertex.subtasks
            for uid, operator in subtask.operators.items()
        }

    @property
    def position(self):
        """How many records lie before the cut."""
        [split] = self._operators()["numbers"].splits
        assert split["step"] == 1
        return split["next"]

    def state(self, uid, name):
        found = {}
        for block in self.blocks.get((uid, name), []):
            keys, values, removed = decode_entries(block.payload, block.schema)
            found.update(zip(keys, values, strict=True))
            for key in removed:
                del found[key]
        return found

    def by_key(self):
        return {key: list(range(key, self.position, KEYS)) for key in range(KEYS)}


@pytest.fixture(scope="module")
def checkpoint():
    return Checkpoint()


def test_the_position_of_a_source(checkpoint):
    assert 0 < checkpoint.position < 10**6


def test_the_position_of_an_enumerator(checkpoint):
    assert checkpoint.metadata.enumerators == {"numbers": []}, "its one split is handed out"


@pytest.mark.parametrize(
    ("name", "amounts_to"),
    [
        ("value", lambda numbers: numbers[-1]),
        ("list", lambda numbers: numbers),
        ("map", lambda numbers: dict.fromkeys(numbers, True)),
        ("reducing", max),
        ("aggregating", lambda numbers: [sum(numbers)]),
        ("__event_timers", lambda numbers: {FAR + n for n in numbers}),
        ("__processing_timers", lambda numbers: {FAR + n for n in numbers}),
    ],
)
def test_keyed_state_of_every_kind_and_timers(checkpoint, name, amounts_to):
    expected = {key: amounts_to(numbers) for key, numbers in checkpoint.by_key().items()}
    assert checkpoint.state("everything", name) == expected


@pytest.mark.parametrize("name", ["own", "union"])
def test_operator_state(checkpoint, name):
    assert checkpoint.state("counted", name) == {0: checkpoint.position}


def test_broadcast_state(checkpoint):
    assert checkpoint.state("counted", "everywhere") == {"count": checkpoint.position}


def test_committables(checkpoint):
    """With what is committed already they are all the output of the records before the cut."""
    parts = checkpoint.metadata.committables["files"]
    assert parts
    pending = {part["from"] for part in parts} | {part["to"] for part in parts}
    covered = Counter()
    for path, data in checkpoint.files.items():
        visible = path.startswith("/out/") and not path.rsplit("/", 1)[1].startswith(".")
        if visible or any(name.endswith(path) or path.endswith(name) for name in pending):
            covered.update(int(line) for line in data.splitlines())
    assert covered == Counter(range(checkpoint.position))


def test_watermarks(checkpoint):
    marks = {s.watermark for v in checkpoint.metadata.vertices.values() for s in v.subtasks}
    assert marks == {MIN_WATERMARK}, "this source has none"
    with OperatorHarness(lambda s: s.key_by(lambda n: n).process(TellsTime())) as harness:
        harness.advance_watermark(1234)
        snapshot = harness.snapshot()
        harness.advance_watermark(9999)
        harness.restore(snapshot)
        harness.process(1)
        assert harness.output == [1234]


class TellsTime(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.timer_service().current_watermark()


def test_a_segment_says_which_state_is_pickled(checkpoint):
    forms = {
        state["name"]: (state["kind"], state["form"])
        for data in checkpoint.segments["everything"]
        for state in describe_segment(data)
    }
    assert forms == {
        "value": ("value", "binary"),
        "list": ("list", "binary"),
        "map": ("map", "binary"),
        "reducing": ("reducing", "binary"),
        "aggregating": ("aggregating", "pickle"),
        "__event_timers": ("timers", "pickle"),
        "__processing_timers": ("timers", "pickle"),
    }


@pytest.mark.parametrize(
    "key", ["execution.checkpointing.incremental", "state.backend.incremental"]
)
def test_a_key_of_the_configuration_makes_checkpoints_full(key):
    def incremental(values):
        with invoked(Invocation(file={})):
            env = StreamExecutionEnvironment(Configuration.from_dict(values))
        env.from_collection([1]).print()
        return env._assemble("job").settings.incremental

    assert incremental({}) and not incremental({key: "false"})
