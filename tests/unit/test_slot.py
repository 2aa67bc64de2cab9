"""Slots: a whole program in one thread, without a JobMaster and without a network."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.checkpoint.handles import OperatorSnapshot
from penstock.checkpoint.store import MEMORY, CheckpointStore
from penstock.common import WatermarkStrategy
from penstock.common.filesystem import _SCHEMES, MemoryFileSystem
from penstock.common.settings import StateSettings
from penstock.common.typeinfo import Types
from penstock.connectors.client_sinks import CollectSink
from penstock.connectors.sink import Sink, SinkWriter
from penstock.connectors.source import QueueEnumerator, Source, SourceReader
from penstock.datastream import CheckpointedFunction, KeyedProcessFunction, MapFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import ChannelBrokenError, StorageError
from penstock.network.frames import FrameKind
from penstock.network.messages import Abort, Acknowledge, AtEnd, Complete, Decline, Failed
from penstock.runtime.segment_chain import MAX_SEGMENT_CHAIN
from penstock.state.entries import decode_entries
from penstock.state.schema import PICKLED
from penstock.state.segments import decode_segment

NOTHING = OperatorSnapshot()


def one(value):
    return value


def counting(values):
    """A program that counts values by key, from one subtask."""

    def build(env):
        keyed = env.from_collection(values, Types.STRING()).key_by(one)
        keyed.process(Count()).uid("count").sink_to(CollectSink())

    return build


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.seen.value() or 0) + 1
        self.seen.update(count)
        yield (value, count)


# --- running ----------------------------------------------------------------------------------


def test_a_bounded_program_runs_to_its_end(cluster):
    running = cluster(counting(["a", "b", "a"])).run()
    assert running.collected() == [("a", 1), ("b", 1), ("a", 2)]
    assert running.ended() and not running.failures()


@pytest.mark.parametrize("parallelism", [2, 3])
def test_slots_exchange_buffers(cluster, parallelism):
    values = [f"k{n % 11}" for n in range(500)]
    running = cluster(counting(values), parallelism=parallelism).run()
    expected = [(f"k{k}", n) for k in range(11) for n in range(1, values.count(f"k{k}") + 1)]
    assert sorted(running.collected()) == sorted(expected)
    assert running.ended()


def test_partial_buffers_leave_when_there_is_nothing_else_to_do(cluster):
    running = cluster(counting(["a"]), parallelism=2)
    running.run()
    assert running.collected() == [("a", 1)]


def test_never_more_buffers_are_under_way_than_credits(cluster):
    running = cluster(counting([str(n) for n in range(2000)]), parallelism=2, credits=3)
    under_way, most = {}, 0

    def count(sender, receiver, frame):
        nonlocal most
        channel = (frame.edge, frame.sender, frame.receiver)
        if frame.kind == FrameKind.DATA:
            under_way[channel] = under_way.get(channel, 0) + 1
            most = max(most, under_way[channel] - granted.get(channel, 0))
        elif frame.kind == FrameKind.CREDIT:
            granted[channel] = frame.sequence
        return [frame]

    granted = {}
    running.tamper = count
    running.run()
    assert 0 < most <= 3
    assert len(running.collected()) == 2000


class Numbers(Source):
    """Endless, and knows how far each reader has come."""

    def __init__(self, progress, name):
        self.progress = progress
        self.name = name

    def create_enumerator(self, context, restored):
        return QueueEnumerator([0])

    def create_reader(self, context):
        return NumbersReader(self.progress, self.name)


class NumbersReader(SourceReader):
    def __init__(self, progress, name):
        self.progress, self.name = progress, name
        self.at = None

    def add_splits(self, splits):
        [self.at] = splits

    def poll(self, limit):
        if self.at is None:
            return None
        start, self.at = self.at, self.at + limit
        self.progress[self.name] = self.at
        return list(range(start, self.at))

    def snapshot(self):
        return [self.at]


class Full(Sink):
    """Takes nothing more after the first few."""

    def __init__(self, most):
        self.most = most

    def create_writer(self, context):
        return FullWriter(self.most)


class FullWriter(SinkWriter):
    def __init__(self, most):
        self.left = most

    def write(self, value):
        self.left -= 1

    def has_room(self):
        return self.left > 0


NONE = WatermarkStrategy.no_watermarks()


def test_a_sink_without_room_stops_the_source(cluster):
    progress = {}

    def build(env):
        env.from_source(Numbers(progress, "n"), NONE, "n").rebalance().sink_to(Full(10))

    running = cluster(build, credits=2, buffer_records=16)
    for _ in range(500):
        running.turn()
    stopped = progress["n"]
    assert stopped < 500
    for _ in range(200):
        running.turn()
    assert progress["n"] == stopped
    source = running.subtask(0)
    assert source.pressed() and not source.ready(running.clock.now)


def test_ready_subtasks_take_turns(cluster):
    progress = {}

    def build(env):
        left = env.from_source(Numbers(progress, "left"), NONE, "left")
        right = env.from_source(Numbers(progress, "right"), NONE, "right")
        left.union(right).map(one).sink_to(Full(10**9))

    running = cluster(build)
    for _ in range(300):
        running.turn()
    assert min(progress.values()) > 0.5 * max(progress.values()) > 0


# --- time -------------------------------------------------------------------------------------


class Later(KeyedProcessFunction):
    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + value)

    def on_timer(self, timestamp, ctx):
        yield (ctx.get_current_key(), timestamp, ctx.time_domain().value)


class Once(Source):
    """Some records, and then silence."""

    def __init__(self, *values):
        self.values = list(values)

    def create_enumerator(self, context, restored):
        return QueueEnumerator([0])

    def create_reader(self, context):
        return OnceReader(self.values)


class OnceReader(SourceReader):
    def __init__(self, values):
        self.values, self.begun = values, False

    def add_splits(self, splits):
        self.begun = True

    def poll(self, limit):
        if not self.begun:
            return None
        values, self.values = self.values, []
        return values

    def snapshot(self):
        return [0]


def test_processing_time_timers_fire_when_the_clock_says_so(cluster):
    def build(env):
        stream = env.from_source(Once(50, 20), NONE, "once").key_by(one)
        stream.process(Later()).sink_to(CollectSink())

    running = cluster(build).run()
    start = running.clock.now
    assert running.collected() == []
    assert running.slots[0].next_wakeup_ms() == start + 20
    running.clock.now = start + 19
    assert running.run().collected() == []
    running.clock.now = start + 60
    assert running.run().collected() == [
        (20, start + 20, "processing"),
        (50, start + 50, "processing"),
    ]
    assert running.slots[0].next_wakeup_ms() is None


class AtTheEnd(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value)

    def on_timer(self, timestamp, ctx):
        yield timestamp


def test_all_event_time_has_passed_at_the_end_of_the_input(cluster):
    def build(env):
        stream = env.from_collection([30, 10, 20]).key_by(lambda v: "k")
        stream.process(AtTheEnd()).sink_to(CollectSink())

    assert cluster(build).run().collected() == [10, 20, 30]


# --- the network ------------------------------------------------------------------------------


def test_a_lost_frame_fails_the_attempt_and_names_the_channel(cluster):
    running = cluster(counting([str(n) for n in range(1000)]), parallelism=2)
    data = []

    def lose_the_second(sender, receiver, frame):
        if frame.kind == FrameKind.DATA:
            data.append(frame)
            return [] if len(data) == 2 else [frame]
        return [frame]

    running.tamper = lose_the_second
    running.run()
    [error] = running.failures()
    assert isinstance(error, ChannelBrokenError)
    assert str(error) == (
        "channel from 'Source: Collection Source' subtask 1 to 'KeyedProcess -> Sink' subtask 2: "
        "element 2 was expected and 3 came; what lies between was lost on the way"
    )


def test_a_repeated_frame_fails_the_attempt(cluster):
    running = cluster(counting([str(n) for n in range(100)]), parallelism=2)
    running.tamper = lambda sender, receiver, frame: (
        [frame] * (2 if frame.kind == FrameKind.DATA else 1)
    )
    running.run()
    assert isinstance(running.failures()[0], ChannelBrokenError)


def test_a_frame_of_another_attempt_is_ignored(cluster):
    running = cluster(counting([str(n) for n in range(100)]), parallelism=2)
    running.tamper = lambda sender, receiver, frame: [
        frame._replace(attempt=99, payload=b"junk"),
        frame,
    ]
    running.run()
    assert not running.failures()
    assert len(running.collected()) == 100


def test_heartbeats_tell_how_the_subtasks_are_doing(cluster):
    running = cluster(counting([str(n) for n in range(300)]), parallelism=2).run()
    sender, receiver = (slot.heartbeat() for slot in running.slots)
    assert sender.metrics[0, 0].records_in == 300
    total = sum(beat.metrics[1, beat.slot].records_in for beat in (sender, receiver))
    assert total == sender.metrics[0, 0].records_out == 300


# --- failure ----------------------------------------------------------------------------------


def test_a_failed_slot_says_so_once_and_does_nothing_more(cluster):
    running = cluster(lambda env: env.from_collection([1, 0, 2]).map(lambda v: 1 / v).print()).run()
    assert len(running.of(Failed)) == 1
    assert not running.slots[0].turn()
    assert len(running.of(Failed)) == 1
    assert running.of(AtEnd) == []


class Closing(MapFunction):
    closed = 0

    def open(self, runtime_context):
        self.name = runtime_context.get_task_name()

    def map(self, value):
        return 1 / value

    def close(self):
        Closing.closed += 1


@pytest.mark.parametrize("values", [[1], [0]], ids=["at the end", "after a failure"])
def test_functions_are_closed_once(cluster, monkeypatch, values):
    monkeypatch.setattr(Closing, "closed", 0)
    running = cluster(lambda env: env.from_collection(values).map(Closing()).print()).run()
    assert Closing.closed == 0
    assert running.slots[0].close() == []
    running.slots[0].close()
    assert Closing.closed == 1


class Ends(Source, Sink):
    """A source of one record and a sink; its reader and its writer say that they are closed."""

    def __init__(self):
        self.closed = []

    def create_enumerator(self, context, restored):
        return QueueEnumerator(["split"])

    def create_reader(self, context):
        return ClosingReader(self.closed)

    def create_writer(self, context):
        return ClosingWriter(self.closed)


class ClosingReader(SourceReader):
    def __init__(self, closed):
        self.closed, self.splits = closed, []

    def add_splits(self, splits):
        self.splits += splits

    def poll(self, limit):
        return [self.splits.pop()] if self.splits else None

    def snapshot(self):
        return list(self.splits)

    def close(self):
        self.closed.append("reader")


class ClosingWriter(SinkWriter):
    def __init__(self, closed):
        self.closed = closed

    def write(self, value):
        pass

    def close(self):
        self.closed.append("writer")


@pytest.mark.parametrize("function", [str, int], ids=["at the end", "after a failure"])
def test_readers_and_writers_are_closed(cluster, function):
    ends = Ends()
    running = cluster(lambda env: env.from_source(ends, NONE, "ends").map(function).sink_to(ends))
    assert len(running.run().failures()) == (function is int)
    assert ends.closed == []
    assert running.slots[0].close() == []
    assert sorted(ends.closed) == ["reader", "writer"]


def test_a_function_that_fails_to_close_does_not_keep_others_open(cluster, monkeypatch):
    class Sticks(Closing):
        def close(self):
            raise RuntimeError("stuck")

    monkeypatch.setattr(Closing, "closed", 0)
    running = cluster(
        lambda env: env.from_collection([1]).map(Sticks()).map(Closing()).print()
    ).run()
    [error] = running.slots[0].close()
    assert str(error) == "stuck"
    assert Closing.closed == 1


# --- checkpoints ------------------------------------------------------------------------------


@pytest.fixture
def store(monkeypatch):
    """A store in a memory of its own."""
    memory = MemoryFileSystem()
    monkeypatch.setitem(_SCHEMES, "slot-test", lambda authority: memory)
    return CheckpointStore("slot-test:///checkpoints", "job")


def steps(running, turns):
    for _ in range(turns):
        running.turn()


@pytest.mark.parametrize("before", [1, 3, 6, 10, 20])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_restored_job_goes_on_where_the_cut_was(cluster, store, before, parallelism):
    """What was written before the cut and what a restored job writes are together one run."""
    values = [f"k{n % 7}" for n in range(1000)]
    first = cluster(counting(values), parallelism=parallelism, store=store)
    steps(first, before)
    first.trigger(1)
    first.run()
    snapshots = first.snapshots(1)
    assert snapshots.keys() == set(first.graph.subtasks())
    restored = {tuple(subtask): snapshot for subtask, snapshot in snapshots.items()}
    second = cluster(counting(values), parallelism=parallelism, store=store, restored=restored)
    second.run()
    expected = sorted((f"k{k}", n) for k in range(7) for n in range(1, values.count(f"k{k}") + 1))
    assert sorted(first.collected()) == expected
    assert sorted(first.collected(upto=1) + second.collected()) == expected


@pytest.mark.parametrize(("last_group", "built_upon"), [(127, True), (200, False)])
def test_a_restored_segment_is_built_upon_if_it_holds_the_own_key_groups_only(
    cluster, store, last_group, built_upon
):
    values = [f"k{n % 7}" for n in range(1000)]
    first = cluster(counting(values), store=store)
    steps(first, 3)
    first.trigger(1)
    snapshots = first.run().snapshots(1)
    restored = {}
    for subtask, snapshot in snapshots.items():
        operators = {
            uid: replace(
                operator,
                segments=tuple(replace(h, last_group=last_group) for h in operator.segments),
            )
            for uid, operator in snapshot.operators.items()
        }
        restored[tuple(subtask)] = replace(snapshot, operators=operators)
    before = paths_of(restored.values())
    assert before
    second = cluster(counting(values), store=store, restored=restored)
    second.trigger(2, 1)
    after = paths_of(second.run().snapshots(2).values())
    assert (before <= after) is built_upon


def paths_of(snapshots):
    return {h.path for s in snapshots for h in s.operators.get("count", NOTHING).segments}


def test_an_ended_subtask_acknowledges_as_finished(cluster, store):
    running = cluster(counting(["a"]), store=store).run()
    running.trigger(1)
    running.run()
    assert all(snapshot.finished for snapshot in running.snapshots(1).values())


def test_a_subtask_restored_as_finished_only_says_so(cluster, store):
    first = cluster(counting(["a"]), store=store).run()
    first.trigger(1)
    restored = {tuple(s): snapshot for s, snapshot in first.run().snapshots(1).items()}
    second = cluster(counting(["a"]), store=store, restored=restored).run()
    assert second.collected() == []
    assert second.ended() and not second.failures()


def test_only_what_changed_is_written_again(cluster, store):
    def build(env):
        stream = env.from_source(Once("a", "b", "c"), NONE, "once").key_by(one)
        stream.process(Count()).uid("count").sink_to(CollectSink())

    running = cluster(build, store=store).run()
    for checkpoint in (1, 2):
        running.trigger(checkpoint, checkpoint - 1)
        running.run()
        running.tell(Complete(running.ATTEMPT, checkpoint))
    first, second = (running.snapshots(c)[1, 0].operators["count"].segments for c in (1, 2))
    assert len(first) == 1 and second == first
    assert running.snapshots(1)[1, 0].size > 0 and running.snapshots(2)[1, 0].size == 0


class Fed(Source):
    """Emits what a test puts into its list."""

    def __init__(self):
        self.values = []

    def create_enumerator(self, context, restored):
        return QueueEnumerator([0])

    def create_reader(self, context):
        return FedReader(self.values)


class FedReader(OnceReader):
    def poll(self, limit):
        if not self.begun:
            return None
        taken = list(self.values)
        self.values.clear()
        return taken


class Keeps(KeyedProcessFunction):
    """Keeps what cannot be written, until the next record comes."""

    def open(self, runtime_context):
        self.held = runtime_context.get_state(ValueStateDescriptor("held", PICKLED))

    def process_element(self, value, ctx):
        self.held.update((lambda: 1) if value == "bad" else value)
        yield value


def test_a_job_goes_on_after_a_checkpoint_that_could_not_be_written(cluster, store):
    source = Fed()

    def build(env):
        stream = env.from_source(source, NONE, "fed").key_by(len)
        stream.process(Keeps()).name("keeper").uid("keeper").sink_to(CollectSink())

    running = cluster(build, store=store).run()
    for checkpoint, value in enumerate(["one", "bad", "two"], 1):
        source.values.append(value)
        running.subtask(0).source_woken()
        running.run().trigger(checkpoint, confirmed=min(1, checkpoint - 1))
        running.run()
    [declined] = running.of(Decline)
    assert declined.checkpoint == 2
    assert declined.reason.startswith("operator 'keeper': state 'held' of key 3 cannot be written")
    assert running.collected() == ["one", "bad", "two"] and not running.failures()
    [first], [first_again, delta] = (
        running.snapshots(checkpoint)[1, 0].operators["keeper"].segments for checkpoint in (1, 3)
    )
    assert first == first_again, "the declined one is not built upon"
    [block] = decode_segment(store.read_segment(delta.path), range(128))
    assert decode_entries(block.payload, block.schema)[:2] == ([3], ["two"])


def chain_lengths(cluster, store, **settings):
    """Checkpoint by checkpoint, each confirmed: how many segments the state is in."""
    source = Fed()

    def build(env):
        stream = env.from_source(source, NONE, "fed").key_by(one)
        stream.process(Count()).uid("count").sink_to(CollectSink())

    running, lengths = cluster(build, store=store, **settings).run(), []
    for checkpoint in range(1, 41):
        source.values += ["always", f"once-{checkpoint}"]
        running.subtask(0).source_woken()
        running.run().trigger(checkpoint, checkpoint - 1)
        snapshots = running.run().snapshots(checkpoint)
        lengths.append(len(snapshots[1, 0].operators["count"].segments))
    restored = {tuple(subtask): snapshot for subtask, snapshot in snapshots.items()}
    carried = {p: d for ack in running.of(Acknowledge) for p, d in ack.segments.items()}
    again = cluster(build, store=store, restored=restored, segments=carried).run()
    source.values += ["always", "once-1", "once-40", "new"]
    again.subtask(0).source_woken()
    assert again.run().collected() == [("always", 41), ("once-1", 2), ("once-40", 2), ("new", 1)]
    return lengths


def test_a_chain_of_deltas_is_compacted_before_it_grows_long(cluster, store):
    lengths = chain_lengths(cluster, store)
    assert lengths[:8] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert min(lengths[8:]) == 3, "eight were merged into one"
    assert 1 not in lengths[1:], "nothing is written in full again"
    assert max(lengths) < 16


def test_a_chain_that_lies_in_memory_is_written_anew_before_it_grows_long(cluster):
    lengths = chain_lengths(cluster, CheckpointStore(MEMORY, "job"))
    assert lengths[:9] == [1, 2, 3, 4, 5, 6, 7, 8, 1]
    assert max(lengths) == MAX_SEGMENT_CHAIN


def test_checkpoints_that_are_not_incremental_are_full(cluster, store):
    assert set(chain_lengths(cluster, store, incremental=False)) == {1}


@pytest.mark.parametrize("parallelism", [1, 2])
def test_without_a_directory_the_state_travels_with_the_acknowledgements(cluster, parallelism):
    values = [f"k{n % 7}" for n in range(1000)]
    store = CheckpointStore(MEMORY, "job")
    first = cluster(counting(values), parallelism=parallelism, store=store)
    steps(first, 6)
    first.trigger(1)
    first.run()
    acknowledged = [ack for ack in first.of(Acknowledge) if ack.checkpoint == 1]
    segments = {path: data for ack in acknowledged for path, data in ack.segments.items()}
    named = {
        handle.path
        for ack in acknowledged
        for operator in ack.snapshot.operators.values()
        for handle in operator.segments
    }
    assert segments.keys() == named and named
    restored = {tuple(ack.subtask): ack.snapshot for ack in acknowledged}
    second = cluster(
        counting(values),
        parallelism=parallelism,
        store=store,
        restored=restored,
        segments=segments,
    ).run()
    assert sorted(first.collected(upto=1) + second.collected()) == sorted(first.collected())


@pytest.mark.parametrize("uid", ["a/b", "../../up", "ü *?", "x" * 500])
def test_a_uid_may_hold_any_character(cluster, tmp_path, uid):
    def build(env):
        stream = env.from_source(Once("a", "b"), NONE, "once").key_by(one)
        stream.process(Count()).uid(uid).sink_to(CollectSink())

    store = CheckpointStore(str(tmp_path / "checkpoints"), "job")
    running = cluster(build, store=store).run()
    running.trigger(1)
    snapshots = running.run().snapshots(1)
    restored = {tuple(subtask): snapshot for subtask, snapshot in snapshots.items()}
    again = cluster(build, store=store, restored=restored)
    assert not again.run().failures()
    store.discard_all()
    assert list(tmp_path.rglob("*")) == [tmp_path / "checkpoints"]


def test_storage_that_fails_declines_the_checkpoint_and_not_the_job(cluster, store, monkeypatch):
    running = cluster(counting(["a", "b"] * 200), store=store, buffer_records=4)
    steps(running, 4)

    def refuse(self, name, *parts):
        raise StorageError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "write_segment", refuse)
        running.trigger(1)
        running.run()
    [declined] = running.of(Decline)
    assert (declined.checkpoint, declined.reason) == (1, "no space left")
    assert not running.failures()


class Refuses(MapFunction, CheckpointedFunction):
    """Passes records on; its checkpoints fail."""

    def map(self, value):
        return value

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        raise RuntimeError("not now")


def test_a_refused_checkpoint_leaves_no_links_to_the_files_of_a_database(cluster, store, tmp_path):
    def build(env):
        stream = env.from_source(Once("a", "b"), NONE, "once").key_by(one).process(Count())
        stream.map(Refuses()).print()

    state = StateSettings("rocksdb", str(tmp_path), managed=0, files_from=0)
    running = cluster(build, store=store, state=state).run()
    running.trigger(1)
    running.run()
    assert ["not now" in declined.reason for declined in running.of(Decline)] == [True]
    assert list(tmp_path.glob("*")) and not list(tmp_path.glob("*/cut-*"))


def test_a_checkpoint_is_taken_once(cluster, store):
    running = cluster(counting(["a"] * 100), store=store)
    for checkpoint in (2, 2, 2, 1):
        running.trigger(checkpoint)
        running.turn()
    running.trigger(1)
    running.run()
    assert {ack.checkpoint for ack in running.of(Acknowledge)} == {2}
    assert len(running.of(Acknowledge)) == len(running.graph.subtasks())


def test_an_aborted_checkpoint_does_not_hold_the_next(cluster, store):
    values = [f"k{n % 7}" for n in range(2000)]
    running = cluster(counting(values), parallelism=2, store=store, buffer_records=8)
    steps(running, 3)
    running.trigger(1)
    running.tell(Abort(running.ATTEMPT, 1))
    steps(running, 3)
    running.trigger(2)
    running.run()
    assert running.snapshots(2).keys() == set(running.graph.subtasks())
    assert len(running.collected()) == 2000


class Prepares(SinkWriter):
    """Its committable is what was written since the last cut; counts how often one is made."""

    def __init__(self, made):
        self.made, self.values = made, []

    def write(self, value):
        self.values.append(value)

    def prepare_commit(self):
        values, self.values = self.values, []

        def finish():
            self.made.append(values)
            return [values]

        return finish


class PreparingSink(Sink):
    def __init__(self):
        self.made = []

    def create_writer(self, context):
        return Prepares(self.made)


def test_output_is_prepared_once_however_many_checkpoints_carry_it(cluster, store):
    """Until a checkpoint is confirmed, those after it carry its output too."""
    source, sink = Fed(), PreparingSink()
    running = cluster(
        lambda env: env.from_source(source, NONE, "fed").sink_to(sink).uid("sink"), store=store
    ).run()
    carried = {}
    for checkpoint, confirmed in ((1, 0), (2, 0), (3, 2)):
        source.values.append(f"for {checkpoint}")
        running.subtask(0).source_woken()
        running.run().trigger(checkpoint, confirmed)
        operators = running.run().snapshots(checkpoint)[0, 0].operators
        carried[checkpoint] = operators["sink"].committables
    first, second, third = (["for 1"], ["for 2"], ["for 3"])
    assert carried == {1: (first,), 2: (first, second), 3: (third,)}
    assert sink.made == [first, second, third]


class Breaks(SinkWriter):
    def write(self, value):
        pass

    def prepare_commit(self):
        def finish():
            raise StorageError("disk gone")

        return finish


class BreakingSink(Sink):
    def create_writer(self, context):
        return Breaks()


def test_a_sink_that_cannot_prepare_fails_the_attempt(cluster, store):
    running = cluster(
        lambda env: env.from_source(Once(1), NONE, "once").sink_to(BreakingSink()), store=store
    ).run()
    running.trigger(1)
    running.run()
    [error] = running.failures()
    assert error.code == "SINK" and "disk gone" in str(error)
