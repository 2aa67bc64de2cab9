"""Operator state: lists, union lists and maps of a subtask, through functions of any operator."""

from __future__ import annotations

import pytest

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle
from penstock.checkpoint.store import MEMORY, CheckpointStore
from penstock.checkpoint.union_state import union_handles, with_union
from penstock.common.keys import NO_GROUP, UNION_GROUP
from penstock.common.typeinfo import Types
from penstock.connectors.client_sinks import CollectSink
from penstock.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    ValueStateDescriptor,
)
from penstock.errors import ProgramError, StateError
from penstock.network.messages import Abort, Complete
from penstock.state.operator_state import OperatorStateBackend
from penstock.state.segments import Origin, describe_segment, encode_segment
from penstock.testing import OperatorHarness

SEEN = ListStateDescriptor("seen", Types.LONG())
LAST = MapStateDescriptor("last", Types.STRING(), Types.LONG())

# --- the backend ------------------------------------------------------------------------------


def backends(parallelism, fill):
    """One per subtask, each filled, and what they write."""
    segments = []
    for subtask in range(parallelism):
        backend = OperatorStateBackend()
        fill(backend, subtask)
        segments.append(encode_segment(backend.blocks(), Origin(subtask, parallelism)))
    return segments


def restored(segments, subtask, parallelism):
    backend = OperatorStateBackend()
    backend.restore(segments, Origin(subtask, parallelism))
    return backend


def test_a_list_is_added_to_replaced_and_cleared():
    state = OperatorStateBackend().get_list_state(SEEN)
    assert list(state.get()) == []
    state.add(1)
    state.add_all([2, 3])
    assert list(state.get()) == [1, 2, 3]
    given = [4]
    state.update(given)
    given.append(5)
    assert list(state.get()) == [4]
    state.clear()
    assert list(state.get()) == []


def test_lists_are_split_and_unions_are_not():
    def fill(backend, subtask):
        backend.get_list_state(SEEN).add_all([10 * subtask, 10 * subtask + 1])
        union = backend.get_union_list_state(ListStateDescriptor("all", Types.LONG()))
        union.add(subtask)
        backend.get_broadcast_state(LAST).put("n", 7)

    segments = backends(3, fill)
    found = [restored(segments, subtask, 2) for subtask in range(2)]
    assert [list(b.get_list_state(SEEN).get()) for b in found] == [[0, 10, 20], [1, 11, 21]]
    for backend in found:
        union = backend.get_union_list_state(ListStateDescriptor("all", Types.LONG()))
        assert list(union.get()) == [0, 1, 2]
        assert backend.get_broadcast_state(LAST).get("n") == 7


def test_what_is_not_asked_for_is_written_again():
    segments = backends(1, lambda backend, _: backend.get_list_state(SEEN).add(1))
    again = encode_segment(restored(segments, 0, 1).blocks(), Origin())
    assert list(restored([again], 0, 1).get_list_state(SEEN).get()) == [1]


def test_a_cleared_state_does_not_come_back():
    segments = backends(1, lambda backend, _: backend.get_list_state(SEEN).clear())
    assert list(restored(segments, 0, 1).get_list_state(SEEN).get()) == []


def test_a_subtask_that_had_finished_left_nothing_and_is_not_missed():
    segments = backends(3, lambda backend, subtask: backend.get_list_state(SEEN).add(subtask))
    assert list(restored([segments[2]], 2, 3).get_list_state(SEEN).get()) == [2]
    assert list(restored([segments[0], segments[2]], 0, 2).get_list_state(SEEN).get()) == [0]


def test_one_name_is_one_kind_of_list():
    backend = OperatorStateBackend()
    backend.get_list_state(SEEN)
    with pytest.raises(StateError, match=r"'seen' is operator-list .* as operator-union"):
        backend.get_union_list_state(SEEN)


def test_a_segment_says_what_is_in_it():
    def fill(backend, _):
        backend.get_list_state(SEEN)
        backend.get_union_list_state(ListStateDescriptor("any", Types.PICKLED_BYTE_ARRAY()))

    [data] = backends(1, fill)
    assert describe_segment(data) == [
        {"name": "seen", "kind": "operator-list", "form": "binary", "schema": {"type": "LONG"}},
        {
            "name": "any",
            "kind": "operator-union",
            "form": "pickle",
            "schema": {"type": "PICKLED_BYTE_ARRAY"},
        },
    ]


def test_every_subtask_is_given_the_union_state_of_all():
    def part(index):
        own = SegmentHandle.of(f"own{index}", b"", range(NO_GROUP, NO_GROUP + 1))
        union = SegmentHandle.of(f"union{index}", b"", range(UNION_GROUP, UNION_GROUP + 1))
        return OperatorSnapshot((own, union))

    parts = [part(0), OperatorSnapshot(), part(2)]
    shared = [with_union(part, union_handles(parts)) for part in parts]
    paths = [[handle.path for handle in part.segments] for part in shared]
    union = ["union0", "union2"]
    assert paths == [["own0", *union], union, ["own2", *union]]


# --- functions of every operator --------------------------------------------------------------


class Remembers(CheckpointedFunction):
    """Keeps all numbers that it sees, in a plain list between checkpoints."""

    UNION = False

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        assert isinstance(store, OperatorStateStore)
        get = store.get_union_list_state if self.UNION else store.get_list_state
        self.saved = get(SEEN)
        self.numbers = list(self.saved.get())
        self.is_restored = context.is_restored()

    def snapshot_state(self, context):
        assert context.get_checkpoint_id() > 0 and context.get_checkpoint_timestamp() >= 0
        self.saved.update(self.numbers)

    def see(self, value):
        self.numbers.append(value)
        return sorted(self.numbers)


class InMap(Remembers, MapFunction):
    def map(self, value):
        return self.see(value)


class InUnion(InMap):
    UNION = True


class InFlatMap(Remembers, FlatMapFunction):
    def flat_map(self, value):
        yield self.see(value)


class InFilter(Remembers, FilterFunction):
    def filter(self, value):
        return self.see(value) == [1, 2, 3]


class InProcess(Remembers, ProcessFunction):
    def process_element(self, value, ctx):
        yield self.see(value)


class InKeyed(Remembers, KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield self.see(value)


class InReduce(Remembers, ReduceFunction):
    def reduce(self, value1, value2):
        self.see(value2)
        return max(value1, value2) if len(self.numbers) == 2 else -1


class InCoMap(Remembers, CoMapFunction):
    def map1(self, value):
        return self.see(value)

    map2 = map1


def zero(value):
    return 0


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda s: s.map(InMap()), [1, 2, 3]),
        (lambda s: s.map(InUnion()), [1, 2, 3]),
        (lambda s: s.flat_map(InFlatMap()), [1, 2, 3]),
        (lambda s: s.filter(InFilter()), 3),
        (lambda s: s.process(InProcess()), [1, 2, 3]),
        (lambda s: s.key_by(zero).process(InKeyed()), [1, 2, 3]),
        (lambda s: s.key_by(zero).reduce(InReduce()), 3),
        (lambda s: s.connect(s).map(InCoMap()), [1, 1, 2, 2, 3, 3]),
    ],
    ids=["map", "union", "flat_map", "filter", "process", "keyed", "reduce", "co-map"],
)
def test_a_function_of_any_operator_has_operator_state(build, expected):
    with OperatorHarness(build) as harness:
        harness.process(1, 2)
        snapshot = harness.snapshot()
        harness.process(77)
        harness.restore(snapshot)
        harness.output.clear()
        harness.process(3)
        assert harness.output[-1] == expected


class Tells(Remembers, MapFunction):
    def map(self, value):
        if value == "?":
            return self.is_restored, sorted(self.numbers)
        self.numbers.append(value)
        return None


class TellsUnion(Tells):
    UNION = True


def asked(harness, parallelism):
    """What each subtask remembers."""
    harness.output.clear()
    harness.process(*["?"] * parallelism)
    return harness.output


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_lists_are_dealt_out_at_another_parallelism(parallelism):
    with OperatorHarness(lambda s: s.map(Tells()).uid("t"), parallelism=2) as harness:
        assert asked(harness, 2) == [(False, []), (False, [])]
        harness.process(*range(10))
        harness.restore(harness.snapshot(), parallelism)
        answers = asked(harness, parallelism)
        assert sorted(n for _, numbers in answers for n in numbers) == list(range(10))
        sizes = [len(numbers) for _, numbers in answers]
        assert max(sizes) - min(sizes) <= 1
        assert all(restored for restored, _ in answers)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_union_lists_go_to_all_at_any_parallelism(parallelism):
    with OperatorHarness(lambda s: s.map(TellsUnion()).uid("t"), parallelism=2) as harness:
        harness.process(*range(10))
        harness.restore(harness.snapshot(), parallelism)
        assert asked(harness, parallelism) == [(True, list(range(10)))] * parallelism


class Both(Remembers, KeyedProcessFunction):
    """Declares keyed state in `initialize_state`, too."""

    def initialize_state(self, context):
        super().initialize_state(context)
        store = context.get_keyed_state_store()
        self.count = store.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield self.count.value(), len(self.see(value))


def test_keyed_and_operator_state_side_by_side():
    with OperatorHarness(lambda s: s.key_by(lambda v: v).process(Both())) as harness:
        harness.process(1, 2)
        snapshot = harness.snapshot()
        harness.process(1)
        harness.restore(snapshot)
        harness.output.clear()
        harness.process(1)
        assert harness.output == [(2, 3)]


# --- what became of checkpoints ---------------------------------------------------------------


class Listens(MapFunction, CheckpointListener):
    def open(self, runtime_context):
        self.heard = []

    def map(self, value):
        return list(self.heard)

    def notify_checkpoint_complete(self, checkpoint_id):
        self.heard.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id):
        self.heard.append(("aborted", checkpoint_id))


def listening(env):
    stream = env.from_collection(["x"] * 1000, Types.STRING())
    stream.rebalance().map(Listens()).sink_to(CollectSink())


def test_functions_hear_once_what_became_of_their_checkpoints(cluster):
    running = cluster(
        listening,
        store=CheckpointStore(MEMORY, "job"),
        share_functions=False,
        step_records=1,
        buffer_records=1,
    )

    def turns():
        for _ in range(30):
            running.turn()

    turns()
    for checkpoint in (1, 2, 3):
        running.trigger(checkpoint, confirmed=0)
        turns()
    running.tell(Abort(running.ATTEMPT, 1))
    running.tell(Complete(running.ATTEMPT, 2))
    running.tell(Complete(running.ATTEMPT, 2))
    running.tell(Abort(running.ATTEMPT, 9))
    turns()
    running.trigger(4, confirmed=2)
    running.run()
    assert running.collected()[-1] == [("aborted", 1), ("complete", 2)]


class BadListener(Listens):
    def notify_checkpoint_complete(self, checkpoint_id):
        raise OSError("cannot commit")


def test_a_listener_that_fails_fails_the_attempt():
    with OperatorHarness(lambda s: s.map(BadListener())) as harness:
        harness.snapshot()
        with pytest.raises(Exception, match="cannot commit"):
            harness.process(1)


# --- what cannot be written -------------------------------------------------------------------


class Refuses(Remembers, MapFunction):
    def map(self, value):
        return value

    def snapshot_state(self, context):
        raise OSError("no snapshot today")


LONGS = Types.LIST(Types.LONG())


class Unwritable(KeyedProcessFunction):
    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("held", LONGS))
        self.any = runtime_context.get_state(
            ValueStateDescriptor("any", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value, ctx):
        if value == "mistyped":
            self.state.update(["not a number"])
        elif value == "lambda":
            self.any.update(lambda: 1)
        else:
            self.state.update([1])
            self.any.clear()
        yield value


def by_length(value):
    return len(value)


@pytest.mark.parametrize(
    ("build", "value", "reason"),
    [
        (
            lambda s: s.map(Refuses()).name("refuser"),
            "x",
            "operator 'refuser': snapshot_state raised OSError: no snapshot today",
        ),
        (
            lambda s: s.key_by(by_length).process(Unwritable()).name("keeper"),
            "mistyped",
            r"operator 'keeper': state 'held' of key 8 cannot be written: .*expected LONG, got str",
        ),
        (
            lambda s: s.key_by(by_length).process(Unwritable()).name("keeper"),
            "lambda",
            r"operator 'keeper': state 'any' of key 6 cannot be written: .*lambda",
        ),
    ],
    ids=["function", "declared", "pickled"],
)
def test_what_cannot_be_written_declines_the_checkpoint(build, value, reason):
    with OperatorHarness(build) as harness:
        harness.process(value)
        with pytest.raises(ProgramError, match=reason):
            harness.snapshot()
