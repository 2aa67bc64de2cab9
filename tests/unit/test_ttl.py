"""State with a time to live: what expires, when, and what of it reaches a checkpoint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Duration, Time
from penstock.common.typeinfo import Types
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.errors import ProgramError, StateError
from penstock.runtime.windowing.scoped_state import Scope, ScopedStates
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.operator_state import OperatorStateBackend
from penstock.state.segments import decode_segment, encode_segment

TTL = 100


class Hands:
    """A clock that is set by hand."""

    now = 0

    def now_ms(self):
        return self.now


class Total:
    """The sum of what was added, in a list that is changed in place."""

    def create_accumulator(self):
        return [0]

    def add(self, value, accumulator):
        accumulator[0] += value
        return accumulator

    def get_result(self, accumulator):
        return accumulator[0]


def config(ttl=TTL):
    return StateTtlConfig.new_builder(Duration.of_millis(ttl)).disable_cleanup_in_background()


def descriptor(kind, builder=None):
    long = Types.LONG()
    made = {
        "value": lambda: ValueStateDescriptor("s", long),
        "list": lambda: ListStateDescriptor("s", long),
        "map": lambda: MapStateDescriptor("s", Types.STRING(), long),
        "reducing": lambda: ReducingStateDescriptor("s", lambda a, b: a + b, long),
        "aggregating": lambda: AggregatingStateDescriptor("s", Total(), Types.LIST(long)),
    }[kind]()
    if builder is not None:
        made.enable_time_to_live(builder.build())
    return made


class Expiring:
    """A backend with one state, a key and a clock."""

    def __init__(self, declared, *deltas, now=0):
        self.clock = Hands()
        self.clock.now = now
        self.context = KeyContext()
        self.context.key = "k"
        self.backend = self.make(self.context, 128, self.clock)
        for blocks in deltas:
            self.backend.restore(decode_segment(encode_segment(blocks), range(128)))
        self.state = self.backend.get_state(declared)

    def at(self, key, now=None):
        self.context.key = key
        if now is not None:
            self.clock.now = now
        return self.state

    def cut(self, checkpoint, full=False):
        return list(self.backend.cut(checkpoint, full))

    def size(self):
        return len(self.backend.table("s", self.declared_kind()).entries)

    def declared_kind(self):
        return f"expiring {self.backend.bound()['s'][0]}"


@pytest.fixture(scope="module", autouse=True)
def on_every_backend(make_state):
    Expiring.make = staticmethod(make_state)


FILL = {
    "value": lambda state, n: state.update(n),
    "list": lambda state, n: state.add(n),
    "map": lambda state, n: state.put("x", n),
    "reducing": lambda state, n: state.add(n),
    "aggregating": lambda state, n: state.add(n),
}
READ = {
    "value": lambda state: state.value(),
    "list": lambda state: list(state.get()),
    "map": lambda state: dict(state.items()),
    "reducing": lambda state: state.get(),
    "aggregating": lambda state: state.get(),
}
FILLED = {"value": 4, "list": [4], "map": {"x": 4}, "reducing": 4, "aggregating": 4}
EMPTY = {"value": None, "list": [], "map": {}, "reducing": None, "aggregating": None}
kinds = pytest.mark.parametrize("kind", list(FILL))


# --- one suite for all kinds ------------------------------------------------------------------


@kinds
def test_an_entry_lives_for_its_time_and_no_longer(kind):
    expiring = Expiring(descriptor(kind, config()))
    FILL[kind](expiring.state, 4)
    expiring.clock.now = TTL - 1
    assert READ[kind](expiring.state) == FILLED[kind]
    expiring.clock.now = TTL
    assert READ[kind](expiring.state) == EMPTY[kind]
    assert expiring.size() == 0, "what is read after its time is removed"


@kinds
def test_a_write_makes_it_live_anew_and_a_read_does_not(kind):
    expiring = Expiring(descriptor(kind, config()))
    FILL[kind](expiring.at("k", 0), 1)
    FILL[kind](expiring.at("k", 60), 4)
    READ[kind](expiring.at("k", 90))
    assert READ[kind](expiring.at("k", 159)) != EMPTY[kind]
    assert READ[kind](expiring.at("k", 160)) == EMPTY[kind]


@kinds
def test_a_read_makes_it_live_anew_where_that_is_said(kind):
    expiring = Expiring(descriptor(kind, config().update_ttl_on_read_and_write()))
    FILL[kind](expiring.at("k", 0), 4)
    assert READ[kind](expiring.at("k", 90)) == FILLED[kind]
    assert READ[kind](expiring.at("k", 189)) == FILLED[kind]
    assert READ[kind](expiring.at("k", 289)) == EMPTY[kind]


@kinds
def test_an_expired_entry_is_returned_once_where_that_is_said(kind):
    expiring = Expiring(descriptor(kind, config().return_expired_if_not_cleaned_up()))
    FILL[kind](expiring.at("k", 0), 4)
    assert READ[kind](expiring.at("k", 500)) == FILLED[kind]
    assert READ[kind](expiring.state) == EMPTY[kind]


@kinds
def test_times_are_in_the_checkpoint(kind):
    declared = descriptor(kind, config())
    expiring = Expiring(declared)
    FILL[kind](expiring.at("k", 0), 4)
    blocks = expiring.cut(1)
    assert READ[kind](Expiring(declared, blocks, now=TTL - 1).state) == FILLED[kind]
    assert READ[kind](Expiring(declared, blocks, now=TTL).state) == EMPTY[kind]
    longer = descriptor(kind, config(ttl=1000))
    assert READ[kind](Expiring(longer, blocks, now=TTL).state) == FILLED[kind]


@kinds
def test_the_removal_of_what_expired_is_in_the_next_delta(kind):
    declared = descriptor(kind, config())
    expiring = Expiring(declared)
    FILL[kind](expiring.state, 4)
    base = expiring.cut(1)
    expiring.backend.confirm(1)
    READ[kind](expiring.at("k", TTL))
    restored = Expiring(declared, base, expiring.cut(2), now=0)
    assert READ[kind](restored.state) == EMPTY[kind]


@kinds
def test_clear_removes(kind):
    expiring = Expiring(descriptor(kind, config()))
    FILL[kind](expiring.state, 4)
    expiring.state.clear()
    assert READ[kind](expiring.state) == EMPTY[kind]
    assert expiring.size() == 0


@kinds
def test_steps_remove_what_nobody_reads(kind):
    expiring = Expiring(descriptor(kind, config().cleanup_incrementally(3, False)))
    for key in range(10):
        FILL[kind](expiring.at(key, 0), 4)
    for _ in range(6):
        READ[kind](expiring.at("another", TTL))
    assert expiring.size() == 0


@kinds
def test_every_record_takes_a_step_where_that_is_said(kind):
    every = Expiring(descriptor(kind, config().cleanup_incrementally(3, True)))
    only_accesses = Expiring(descriptor(kind, config().cleanup_incrementally(3, False)))
    for expiring in (every, only_accesses):
        for key in range(10):
            FILL[kind](expiring.at(key, 0), 4)
        for _ in range(6):
            expiring.at("another", TTL)
    assert (every.size(), only_accesses.size()) == (0, 10)


@kinds
def test_the_default_removes_in_the_background(kind):
    default = StateTtlConfig.new_builder(Time.milliseconds(TTL))
    expiring = Expiring(descriptor(kind, default))
    for key in range(10):
        FILL[kind](expiring.at(key, 0), 4)
    for _ in range(4):
        READ[kind](expiring.at("another", TTL))
    assert expiring.size() == 0


@kinds
def test_full_snapshots_leave_out_what_expired_where_that_is_said(kind):
    pruned = Expiring(descriptor(kind, config().cleanup_full_snapshot()))
    whole = Expiring(descriptor(kind, config()))
    for expiring in (pruned, whole):
        FILL[kind](expiring.at("old", 0), 4)
        FILL[kind](expiring.at("new", 50), 4)
        expiring.clock.now = TTL
    assert len(pruned.cut(1, full=True)) == 1
    assert len(whole.cut(1, full=True)) == 2


@kinds
def test_turning_it_on_or_off_is_refused(kind):
    without, with_ttl = descriptor(kind), descriptor(kind, config())
    for saved, declared in ((without, with_ttl), (with_ttl, without)):
        expiring = Expiring(saved)
        FILL[kind](expiring.state, 4)
        blocks = expiring.cut(1)
        with pytest.raises(StateError, match=f"'s' was saved as .*{kind} state and is now .*new"):
            Expiring(declared, blocks)
        with pytest.raises(StateError, match=f"declared twice: .*expiring {kind}"):
            expiring.backend.get_state(declared)


@kinds
def test_disabled_is_as_if_it_were_not_there(kind):
    disabled = descriptor(kind, config().set_update_type(StateTtlConfig.UpdateType.Disabled))
    expiring = Expiring(disabled)
    FILL[kind](expiring.state, 4)
    expiring.clock.now = 10 * TTL
    assert READ[kind](expiring.state) == FILLED[kind]
    assert READ[kind](Expiring(descriptor(kind), expiring.cut(1)).state) == FILLED[kind]


# --- what is special about each ---------------------------------------------------------------


def test_elements_of_a_list_expire_one_by_one():
    expiring = Expiring(descriptor("list", config()))
    expiring.at("k", 0).add_all([1, 2])
    expiring.at("k", 50).add(3)
    assert list(expiring.at("k", 99).get()) == [1, 2, 3]
    assert list(expiring.at("k", 100).get()) == [3]
    expiring.state.update([7])
    assert list(expiring.at("k", 199).get()) == [7]
    expiring.state.update([])
    assert expiring.size() == 0


def test_entries_of_a_map_expire_one_by_one():
    expiring = Expiring(descriptor("map", config()))
    expiring.at("k", 0).put_all({"a": 1, "b": 2})
    state = expiring.at("k", 50)
    state["b"] = 3
    expiring.clock.now = 100
    assert ("a" in state, "b" in state) == (False, True)
    assert (state.get("a"), state["b"], list(state)) == (None, 3, ["b"])
    assert (list(state.keys()), list(state.values())) == (["b"], [3])
    state.remove("no such key")
    assert not state.is_empty()
    expiring.clock.now = 150
    assert state.is_empty()


def test_reading_an_entry_of_a_map_leaves_the_others_alone():
    """The others keep their times, and the one read has its new time after a restore."""
    declared = descriptor("map", config().update_ttl_on_read_and_write())
    expiring = Expiring(declared)
    expiring.at("k", 0).put_all({"a": 1, "b": 2})
    base = expiring.cut(1)
    expiring.backend.confirm(1)
    assert expiring.at("k", 90).get("a") == 1
    restored = Expiring(declared, base, expiring.cut(2), now=120)
    assert dict(restored.state.items()) == {"a": 1}
    assert dict(expiring.at("k", 120).items()) == {"a": 1}


@pytest.mark.parametrize("kind", ["reducing", "aggregating"])
def test_nothing_is_added_to_what_expired(kind):
    never = Expiring(descriptor(kind, config()))
    once_more = Expiring(descriptor(kind, config().return_expired_if_not_cleaned_up()))
    for expiring in (never, once_more):
        expiring.at("k", 0).add(1)
        expiring.at("k", TTL).add(2)
    assert (never.state.get(), once_more.state.get()) == (2, 3)


ANY = Types.PICKLED_BYTE_ARRAY()
OF_LISTS = {
    "value": lambda: ValueStateDescriptor("s", ANY),
    "list": lambda: ListStateDescriptor("s", ANY),
    "map": lambda: MapStateDescriptor("s", Types.STRING(), ANY),
}
"""Descriptors of states whose values are lists."""
READ_A_LIST = {
    "value": lambda state: state.value(),
    "list": lambda state: next(iter(state.get())),
    "map": lambda state: state.get("x"),
    "values of a map": lambda state: next(iter(state.values())),
    "items of a map": lambda state: dict(state.items())["x"],
}


@pytest.mark.parametrize("way", list(READ_A_LIST))
def test_a_value_changed_in_place_is_in_the_next_delta(way):
    kind, read = way.split()[-1], READ_A_LIST[way]
    declared = OF_LISTS[kind]()
    declared.enable_time_to_live(config().build())
    expiring = Expiring(declared)
    FILL[kind](expiring.state, [1])
    base = expiring.cut(1)
    expiring.backend.confirm(1)
    read(expiring.state).append(2)
    assert read(Expiring(declared, base, expiring.cut(2)).state) == [1, 2]


@pytest.mark.parametrize("kind", ["value", "list", "map", "reducing"])
def test_a_value_that_cannot_change_in_place_is_not_in_the_next_delta_when_read(kind):
    expiring = Expiring(descriptor(kind, config()))
    FILL[kind](expiring.state, 4)
    expiring.cut(1)
    expiring.backend.confirm(1)
    assert READ[kind](expiring.state) == FILLED[kind]
    if kind == "map":
        assert expiring.state.get("x") == 4
    assert expiring.cut(2) == []


# --- where it is refused, and what it says of itself ------------------------------------------


def test_only_keyed_state_can_have_it():
    store = OperatorStateBackend(())
    with pytest.raises(StateError, match="operator state has no time to live"):
        store.get_list_state(descriptor("list", config()))
    with pytest.raises(StateError, match="broadcast state has no time to live"):
        store.get_broadcast_state(descriptor("map", config()))
    table = HashMapBackend(KeyContext(), 128).table("w", "window")
    with pytest.raises(StateError, match="the state of a window, which goes with it, has no time"):
        ScopedStates("trigger", table, Scope()).get(descriptor("value", config()))


def test_a_configuration_says_what_was_set():
    built = (
        StateTtlConfig.new_builder(Time.seconds(1))
        .set_ttl(Duration.of_seconds(2))
        .use_processing_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(7, True)
        .cleanup_in_rocksdb_compact_filter(1000, Duration.of_days(1))
        .build()
    )
    cleanup = built.get_cleanup_strategies()
    steps = cleanup.get_incremental_cleanup_strategy()
    compaction = cleanup.get_rocksdb_compact_filter_cleanup_strategy()
    assert built.is_enabled() and built.get_ttl() == Duration.of_seconds(2)
    assert built.get_ttl_time_characteristic().name == "ProcessingTime"
    assert cleanup.in_full_snapshot() and cleanup.is_cleanup_in_background()
    assert (steps.get_cleanup_size(), steps.run_cleanup_for_every_record()) == (7, True)
    assert compaction.get_query_time_after_num_entries() == 1000
    assert compaction.get_periodic_compaction_time() == Duration.of_days(1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: StateTtlConfig.new_builder(Time.seconds(0)).build(),
        lambda: StateTtlConfig.new_builder(Time.seconds(1)).cleanup_incrementally(0, False),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ProgramError, match="at least"):
        wrong()


# --- against a model --------------------------------------------------------------------------

steps = st.lists(
    st.tuples(st.just("pass"), st.integers(1, 60))
    | st.tuples(st.just("put"), st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 9))
    | st.tuples(st.just("get"), st.integers(0, 3), st.sampled_from("ab"))
    | st.tuples(st.just("all"), st.integers(0, 3))
    | st.tuples(st.just("remove"), st.integers(0, 3), st.sampled_from("ab"))
    | st.tuples(st.just("restart"), st.booleans()),
    max_size=40,
)


@given(steps, st.booleans(), st.sampled_from([None, 1, 2]))
def test_a_map_is_a_dict_whose_entries_have_times(script, on_read, size):
    """Whatever is done, and over restarts: what is read is what a dict with times would give."""
    builder = config().cleanup_full_snapshot()
    if on_read:
        builder.update_ttl_on_read_and_write()
    if size is not None:
        builder.cleanup_incrementally(size, True)
    declared = descriptor("map", builder)
    expiring, model, now, number, base = Expiring(declared), {}, 0, 0, []

    def live(key):
        return {k: v for (owner, k), (v, t) in model.items() if owner == key and t + TTL > now}

    for step in script:
        match step:
            case ("pass", time):
                now += time
                expiring.clock.now = now
            case ("put", key, inner, value):
                expiring.at(key).put(inner, value)
                model[key, inner] = (value, now)
            case ("get", key, inner):
                found = live(key).get(inner)
                assert expiring.at(key).get(inner) == found
                if found is not None and on_read:
                    model[key, inner] = (found, now)
            case ("all", key):
                found = live(key)
                assert dict(expiring.at(key).items()) == found
                if on_read:
                    model.update({(key, inner): (value, now) for inner, value in found.items()})
            case ("remove", key, inner):
                expiring.at(key).remove(inner)
                model.pop((key, inner), None)
            case ("restart", full):
                number += 1
                blocks = expiring.cut(number, full)
                base = [blocks] if full else [*base, blocks]
                expiring = Expiring(declared, *base, now=now)
    for key in range(4):
        assert dict(expiring.at(key).items()) == live(key)
