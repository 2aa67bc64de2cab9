"""Unaligned checkpoints, piece by piece: what a barrier overtakes is recorded, and only that."""

from __future__ import annotations

import pickle

import pytest

from penstock.checkpoint.channel_state import (
    ChannelState,
    InFlightData,
    OwnBatch,
    decode_in_flight,
    encode_in_flight,
)
from penstock.checkpoint.coordinator import CheckpointCoordinator, CheckpointSettings
from penstock.checkpoint.handles import SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.history import SubtaskCheckpoint
from penstock.checkpoint.metadata import (
    CheckpointMetadata,
    VertexSnapshot,
    decode_metadata,
    encode_metadata,
)
from penstock.checkpoint.store import MEMORY
from penstock.common import Configuration, Duration, WatermarkStrategy
from penstock.datastream import CheckpointConfig, CheckpointingMode, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.errors import ConfigurationError, CorruptCheckpointError, ProgramError
from penstock.graph.edge_names import edge_names
from penstock.graph.execution_graph import ChannelId
from penstock.jobmanager.checkpoint_options import checkpoint_settings
from penstock.jobmanager.matching import check_fits
from penstock.network.elements import END_OF_INPUT, Barrier, Watermark, WatermarkStatus
from penstock.runtime.gate import InputGate
from penstock.runtime.in_flight import InFlight
from penstock.runtime.input_channel import InputChannel
from penstock.runtime.intake import Intake
from penstock.runtime.output import Output, OutputChannel, Room
from penstock.testing import FaultRates, local_environment

EDGES = {0: "a", 1: "b"}


def overtaking(checkpoint):
    return Barrier(checkpoint, checkpoint - 1, None, 0)


def patient(checkpoint):
    """A barrier that keeps its place until its time is up."""
    return Barrier(checkpoint, checkpoint - 1, None, 1000)


class Clock:
    def __init__(self):
        self.now = 0

    def monotonic_ns(self):
        self.now += 1
        return self.now


class Gate:
    """A gate with two channels of edge 0; the one numbered `aligned` is never overtaken."""

    def __init__(self, aligned=None):
        self.channels = [
            InputChannel(lambda: None, 0, ChannelId(0, sender, 0), sender != aligned)
            for sender in range(2)
        ]
        self.gate = InputGate(self.channels, True, Clock())
        self.in_flight = InFlight(1, 0)

    def push(self, channel, *elements):
        for element in elements:
            self.gate.push(self.channels[channel], element)

    def cut(self, batch=()):
        self.gate.cut(self.in_flight, list(batch))

    def recorded(self):
        """What was recorded, by sender; batches as lists."""
        return {
            state.sender: [e if isinstance(e, int) else pickle.loads(e) for e in state.elements]
            for state in self.in_flight.data(EDGES).channels
        }

    def drain(self):
        found = []
        while (element := self.gate.poll()) is not None:
            found.append(element)
        return found


# --- the gate ---------------------------------------------------------------------------------


def test_the_first_barrier_asks_for_the_cut_whatever_is_queued_before_it():
    gate = Gate()
    gate.push(0, [1], [2], overtaking(1), [3])
    assert gate.gate.overtaking == overtaking(1)


def test_what_is_before_the_barrier_is_recorded_and_still_processed():
    gate = Gate()
    gate.push(0, [1], [2], overtaking(1), [3])
    gate.push(1, [10])
    gate.cut()
    gate.push(1, [11], overtaking(1), [12])
    assert gate.in_flight.whole()
    assert gate.recorded() == {0: [[1], [2]], 1: [[10], [11]]}
    assert sorted(gate.drain()) == [[1], [2], [3], [10], [11], [12]]


def test_a_half_consumed_batch_comes_first_in_its_channel():
    gate = Gate()
    gate.push(0, [1, 2, 3], [4])
    assert gate.gate.poll() == [1, 2, 3]
    gate.push(0, overtaking(1))
    gate.push(1, overtaking(1))
    gate.cut([3])
    assert gate.recorded() == {0: [[3], [4]]}


def test_an_end_of_input_is_as_good_as_a_barrier():
    gate = Gate()
    gate.push(0, overtaking(1))
    gate.push(1, [10])
    gate.cut()
    assert not gate.in_flight.whole()
    gate.push(1, [11], END_OF_INPUT)
    assert gate.in_flight.whole()
    assert gate.recorded() == {1: [[10], [11]]}


def test_an_end_of_input_that_is_queued_is_as_good_as_a_barrier():
    gate = Gate()
    gate.push(1, [10], END_OF_INPUT)
    gate.push(0, overtaking(1))
    gate.cut()
    assert gate.in_flight.whole()
    assert gate.recorded() == {1: [[10]]}


def test_watermarks_that_were_read_are_recorded_and_idleness_is_not():
    gate = Gate()
    gate.push(0, Watermark(5), WatermarkStatus(True))
    gate.drain()
    gate.push(1, Watermark(7), [10], WatermarkStatus(True), Watermark(8))
    gate.push(0, overtaking(1))
    gate.cut()
    assert gate.recorded() == {0: [5], 1: [7, [10], 8]}


def test_an_edge_that_is_not_overtaken_is_aligned_first():
    gate = Gate(aligned=1)
    gate.push(0, [1], overtaking(1))
    gate.push(1, [10], overtaking(1), [11])
    assert gate.gate.overtaking is None
    assert sorted(gate.drain()) == [[1], [10]]
    assert gate.gate.overtaking == overtaking(1)
    gate.cut()
    assert gate.recorded() == {}
    assert gate.drain() == [[11]]


def test_a_barrier_keeps_its_place_until_its_time_is_up():
    gate = Gate()
    gate.push(0, [1], patient(1))
    gate.push(1, [10])
    assert gate.gate.overtaking is None
    gate.gate.may_overtake(1)
    assert gate.gate.overtaking == patient(1)
    gate.cut()
    gate.push(1, patient(1))
    assert gate.recorded() == {0: [[1]], 1: [[10]]}


def test_time_is_up_for_a_channel_that_waits_for_the_others():
    gate = Gate()
    gate.push(0, Watermark(3), patient(1), [2])
    gate.push(1, Watermark(4), [10])
    assert gate.drain() == [Watermark(3), [10]]
    gate.gate.may_overtake(1)
    gate.cut()
    gate.push(1, [11], patient(1))
    assert gate.in_flight.whole()
    assert gate.recorded() == {0: [3], 1: [4, [11]]}
    assert sorted(gate.drain()) == [[2], [11]]


def test_a_checkpoint_that_is_given_up_is_recorded_no_longer():
    gate = Gate()
    gate.push(0, overtaking(1))
    gate.gate.abort(1)
    assert gate.gate.overtaking is None
    gate.push(0, overtaking(2))
    gate.in_flight = InFlight(2, 0)
    gate.cut()
    gate.push(1, [10])
    gate.gate.abort(2)
    gate.push(1, [11])
    assert gate.recorded() == {1: [[10]]}


def test_the_next_checkpoint_is_asked_for_when_this_one_is_over():
    gate = Gate()
    gate.push(0, overtaking(1))
    gate.push(1, [10], overtaking(2))
    assert gate.gate.overtaking == overtaking(1)
    gate.gate.abort(1)
    assert gate.gate.overtaking == overtaking(2)
    gate.push(1, overtaking(3))
    gate.in_flight = InFlight(2, 0)
    gate.cut()
    assert gate.gate.overtaking == overtaking(3)


def test_what_was_under_way_comes_before_all_that_is_new():
    gate = Gate()
    gate.push(0, ["new"])
    gate.push(1, ["new too"])
    channels = [channel.id for channel in gate.channels]
    old = [pickle.dumps([name]) for name in ("a", "b", "c")]
    gate.gate.restore({channels[0]: [4, old[0], old[1]], channels[1]: [old[2]]})
    assert gate.gate.has_input()
    assert sorted(gate.gate.poll()[0] for _ in range(3)) == ["a", "b", "c"]
    assert sorted(batch[0] for batch in gate.drain()) == ["new", "new too"]
    assert gate.channels[0].watermark == 4


def test_what_was_restored_and_not_read_is_part_of_the_next_checkpoint():
    gate = Gate()
    gate.gate.restore({gate.channels[1].id: [pickle.dumps(["old"])]})
    gate.push(1, ["new"], overtaking(1))
    gate.push(0, overtaking(1))
    gate.cut()
    assert gate.recorded() == {1: [["old"], ["new"]]}


# --- outputs ----------------------------------------------------------------------------------


class Wire:
    def __init__(self):
        self.sent = []

    def encode(self, batch, flat):
        return list(batch), None

    def send_batch(self, encoded, sequence):
        self.sent.append(encoded)

    def send_control(self, element, sequence):
        self.sent.append(element)


def sender(credits=1, most=1):
    room, wire = Room(), Wire()
    channel = OutputChannel(wire, credits, room, ChannelId(1, 0, 0))
    return room, wire, channel, Output([channel], room, most)


def write(output, *values):
    for value in values:
        output.buffers[0].append(value)
        if len(output.buffers[0]) >= output.limit:
            output.full(0)


def test_a_barrier_goes_ahead_of_what_waits():
    _, wire, channel, output = sender()
    write(output, 1, 2, 3)
    channel.overtake(overtaking(1))
    assert wire.sent == [[1], overtaking(1)]
    assert output.waiting() == {channel: [[2], [3]]}
    channel.grant(2)
    assert wire.sent == [[1], overtaking(1), [2], [3]]


def test_what_gathers_has_not_left_either():
    _, _, channel, output = sender(credits=1, most=2)
    write(output, 1, 2, 3, 4, 5)
    assert output.waiting() == {channel: [[3, 4], [5]]}


def test_a_barrier_that_waits_is_pulled_ahead():
    _, wire, channel, output = sender()
    write(output, 1, 2)
    output.control(patient(1))
    write(output, 3)
    in_flight = InFlight(1, 0)
    in_flight.leaves_by([channel])
    assert not in_flight.whole()
    in_flight.pull(overtaking(1))
    assert in_flight.whole()
    assert wire.sent == [[1], overtaking(1)]
    (state,) = in_flight.data(EDGES).channels
    assert (state.edge, [pickle.loads(e) for e in state.elements]) == ("b", [[2]])
    channel.grant(2)
    assert wire.sent[2:] == [[2], [3]]


def test_a_barrier_that_left_in_time_took_nothing_with_it():
    _, wire, channel, output = sender()
    write(output, 1, 2)
    output.control(patient(1))
    in_flight = InFlight(1, 0)
    in_flight.leaves_by([channel])
    channel.grant(1)
    assert in_flight.whole() and not in_flight.data(EDGES)
    assert wire.sent == [[1], [2], patient(1)]


def test_an_end_of_input_that_waits_stays_where_it_is():
    _, wire, channel, output = sender()
    write(output, 1, 2)
    output.control(END_OF_INPUT)
    assert channel.pull(overtaking(1)) == [[2]]
    channel.grant(1)
    assert wire.sent == [[1], overtaking(1), [2], END_OF_INPUT]


def test_an_overdraft_is_room_for_so_many_buffers():
    room, _, channel, output = sender(credits=0)
    write(output, 1)
    assert room.blocked
    room.overdraw(2)
    assert not room.blocked
    write(output, 2)
    assert not room.blocked
    write(output, 3)
    assert room.blocked
    channel.grant(3)
    assert not room.blocked


# --- the batch at hand ------------------------------------------------------------------------


def test_records_that_were_not_begun_are_taken_back():
    intake = Intake()
    intake.put([1, 2, 3, 4, 5])
    values, count = intake.take(3)
    assert (next(values), count) == (1, 3)
    assert intake.rest() == [2, 3, 4, 5]
    assert intake.take_back() == 2
    assert list(values) == []
    assert intake and intake.rest() == [2, 3, 4, 5]
    assert list(intake.take(9)[0]) == [2, 3, 4, 5]
    assert not intake and intake.rest() == [] and intake.take_back() == 0


def test_a_record_that_cannot_be_pickled_is_a_problem_of_the_checkpoint():
    in_flight = InFlight(1, 0)
    in_flight.add(ChannelId(0, 0, 0), [[lambda: None]])
    assert "unaligned.enabled" in str(in_flight.problem)


# --- the format -------------------------------------------------------------------------------

DATA = InFlightData(
    (
        ChannelState("a --HASH--> b[0]", 1, 0, (-5, b"batch", 1 << 62, b"")),
        ChannelState("c", 0, 2, ()),
    ),
    OwnBatch("uid", 3, b"rest", ["file", 7]),
)


@pytest.mark.parametrize("data", [DATA, InFlightData(), InFlightData(DATA.channels)])
def test_what_was_recorded_comes_back(data):
    assert decode_in_flight(encode_in_flight(data)) == data


@pytest.mark.parametrize("damage", [b"", b"PSEG" + encode_in_flight(DATA)[4:], b"PCHN\x01\x00\xff"])
def test_what_is_no_channel_state_is_refused(damage):
    with pytest.raises(CorruptCheckpointError):
        decode_in_flight(damage)


def test_the_manifest_names_the_segments_and_holds_no_records():
    handle = SegmentHandle.of(
        "shared/x", encode_in_flight(DATA), range(-1, 0), [("a", "in flight")]
    )
    snapshot = SubtaskSnapshot(False, in_flight=(handle,))
    assert SubtaskSnapshot.from_json(snapshot.to_json()) == snapshot
    assert snapshot.segments() == [handle]
    assert SubtaskCheckpoint.of(snapshot).in_flight_size == handle.size
    assert "in_flight" not in SubtaskSnapshot(False).to_json()


# --- settings ---------------------------------------------------------------------------------

BELOW = "execution.checkpointing."


@pytest.mark.parametrize(
    ("values", "after_ms"),
    [
        ({}, None),
        ({"aligned-checkpoint-timeout": "5 s"}, None),
        ({"unaligned.enabled": "true"}, 0),
        ({"unaligned": "true"}, 0),
        ({"unaligned.enabled": "true", "aligned-checkpoint-timeout": "5 s"}, 5000),
        ({"unaligned.enabled": "true", "alignment-timeout": "5 s"}, 5000),
    ],
)
def test_when_barriers_overtake(values, after_ms):
    settings = checkpoint_settings({BELOW + key: value for key, value in values.items()})
    assert settings.overtakes_after_ms == after_ms


def test_nothing_is_overtaken_where_nothing_is_aligned():
    values = {f"{BELOW}unaligned.enabled": "true", f"{BELOW}mode": "AT_LEAST_ONCE"}
    with pytest.raises(ConfigurationError, match=r"unaligned\.enabled"):
        checkpoint_settings(values)


def test_one_unaligned_checkpoint_at_a_time():
    settings = CheckpointSettings(10, max_concurrent=4, overtakes_after_ms=0)
    coordinator = CheckpointCoordinator(settings, [0], 1)
    coordinator.attempt_started(0, 0)
    coordinator.trigger(0)
    assert not coordinator.has_room()


def test_the_config_is_a_view_on_the_keys():
    configuration = Configuration()
    config = CheckpointConfig(configuration)
    assert not config.is_unaligned_checkpoints_enabled()
    config.enable_unaligned_checkpoints().set_aligned_checkpoint_timeout(Duration.of_seconds(3))
    assert config.is_unaligned_checkpoints_enabled()
    assert config.get_aligned_checkpoint_timeout() == Duration.of_seconds(3)
    assert checkpoint_settings(configuration.to_dict()).overtakes_after_ms == 3000
    with pytest.warns(DeprecationWarning, match="set_aligned_checkpoint_timeout"):
        config.set_alignment_timeout(Duration.of_millis(4))
    with pytest.warns(DeprecationWarning, match="get_aligned_checkpoint_timeout"):
        assert config.get_alignment_timeout() == Duration.of_millis(4)
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    assert not config.set_force_unaligned_checkpoints(False).is_force_unaligned_checkpoints()
    with pytest.raises(ProgramError, match="loops"):
        config.set_force_unaligned_checkpoints()


def test_the_environment_says_what_its_configuration_says():
    env = StreamExecutionEnvironment()
    assert not env.is_unaligned_checkpoints_enabled()
    env.get_checkpoint_config().enable_unaligned_checkpoints()
    assert env.is_unaligned_checkpoints_enabled()
    assert not env.is_force_unaligned_checkpoints()
    env.enable_checkpointing(1000, CheckpointingMode.EXACTLY_ONCE)


# --- which program it fits --------------------------------------------------------------------


def program(parallelism=2, keyed=True, more=False):
    env = StreamExecutionEnvironment()
    env.set_parallelism(parallelism)
    source = DataGeneratorSource(lambda n: n, 10, None)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    spread = stream.key_by(lambda n: n) if keyed else stream.rebalance()
    mapped = spread.map(lambda n: n).uid("mapped")
    if more:
        mapped = mapped.rebalance().map(lambda n: n).uid("more")
    mapped.print().uid("printed")
    return env._assemble("job").graph


def checkpoint_of(graph, in_flight):
    """A checkpoint of the program, with records under way or not."""
    names = [(name, "in flight") for name in edge_names(graph.job).values()]
    handle = SegmentHandle.of("shared/x", b"", range(-1, 0), names)
    vertices = {
        vertex.uid: VertexSnapshot(
            vertex.name,
            vertex.parallelism,
            vertex.max_parallelism,
            tuple(
                SubtaskSnapshot(False, in_flight=(handle,) if in_flight else ())
                for _ in range(vertex.parallelism)
            ),
            {node.uid: node.name for node in vertex.nodes},
        )
        for vertex in graph.job.vertices
    }
    metadata = CheckpointMetadata("job", 3, 1, 0, vertices, {}, {})
    decoded = decode_metadata(encode_metadata(metadata), "x")
    assert decoded == metadata
    return decoded


def test_an_unaligned_checkpoint_fits_the_program_that_made_it():
    saved = checkpoint_of(program(), in_flight=True)
    assert check_fits(program().job, saved, ignore_unclaimed=False) == []
    moved = saved.with_paths({"shared/x": "elsewhere/x"})
    assert {handle.path for handle in moved.segments()} == {"elsewhere/x"}


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (program(parallelism=3), "had parallelism 2, and has 3"),
        (program(keyed=False), "no exchange numbers --HASH--> mapped"),
        (program(more=True), "the program has a chain that it does not know|is now"),
    ],
)
@pytest.mark.parametrize("ignore", [False, True])
def test_an_unaligned_checkpoint_fits_no_other_program(changed, what, ignore):
    with pytest.raises(ProgramError, match=what) as refused:
        check_fits(changed.job, checkpoint_of(program(), in_flight=True), ignore)
    assert "take a savepoint" in str(refused.value)
    assert "unaligned.enabled off" in str(refused.value)
    check_fits(changed.job, checkpoint_of(program(), in_flight=False), ignore)


# --- whole jobs -------------------------------------------------------------------------------


def run(settings, faults=False, seed=3):
    values = {f"{BELOW}interval": "10", **{BELOW + k: v for k, v in settings.items()}}
    with local_environment(seed, faults, Configuration.from_dict(values)) as env:
        env.set_parallelism(2)
        numbers = env.from_source(
            DataGeneratorSource(lambda n: n, 300, None),
            WatermarkStrategy.no_watermarks(),
            "numbers",
        )
        doubled = numbers.rebalance().map(lambda n: n).key_by(lambda n: n % 7).map(lambda n: 2 * n)
        found = sorted(doubled.execute_and_collect())
        return found, env.simulation


@pytest.mark.parametrize("directory", [{}, {"dir": MEMORY}])
def test_a_job_restores_what_was_under_way(directory):
    faults = FaultRates(crash_soon=1.0, budget=3)
    restored = 0
    for seed in range(5):
        found, simulation = run({"unaligned.enabled": "true", **directory}, faults, seed)
        assert found == [2 * n for n in range(300)]
        restored += len(simulation.restored_in_flight)
    assert restored


def test_the_history_tells_what_was_under_way():
    _, simulation = run({"unaligned.enabled": "true"})
    history = simulation.master._checkpoints.history()
    assert any(record.in_flight_size > 0 for record in history)
    for record in history:
        parts = record.subtasks.values()
        assert record.in_flight_size == sum(part.in_flight_size for part in parts)
        assert all(part.incremental_size >= part.in_flight_size for part in parts)


def test_a_checkpoint_that_stays_in_time_is_aligned():
    _, simulation = run({"unaligned.enabled": "true", "aligned-checkpoint-timeout": "1 h"})
    history = simulation.master._checkpoints.history()
    assert history and not any(record.in_flight_size for record in history)
