"""The five kinds of keyed state: what they hold, and what of it reaches a checkpoint."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.keys import groups_of_subtask, key_group
from penstock.common.typeinfo import Types
from penstock.datastream import AggregateFunction, ReduceFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.errors import StateError
from penstock.state import capture
from penstock.state.kinds import KeyContext
from penstock.state.segments import decode_segment, encode_segment

ANY = Types.PICKLED_BYTE_ARRAY()
ALL_GROUPS = range(128)


class Average(AggregateFunction):
    """Changes its accumulator in place, as many do."""

    def create_accumulator(self):
        return [0, 0]

    def add(self, value, accumulator):
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return [a + b for a, b in zip(acc_a, acc_b, strict=True)]


class Largest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


DESCRIPTORS = {
    "value": ValueStateDescriptor("v", ANY),
    "list": ListStateDescriptor("l", ANY),
    "map": MapStateDescriptor("m", ANY, ANY),
    "reducing": ReducingStateDescriptor("r", Largest(), ANY),
    "aggregating": AggregatingStateDescriptor("a", Average(), ANY),
}


class Keyed:
    """A backend with a key to set, and copies of it made through a checkpoint."""

    def __init__(self, max_parallelism=128):
        self.max_parallelism = max_parallelism
        self.context = KeyContext()
        self.backend = self.make(self.context, max_parallelism)

    def state(self, kind, key="k"):
        self.context.key = key
        return self.backend.get_state(DESCRIPTORS[kind])

    def delta(self, checkpoint, full=False):
        return list(self.backend.cut(checkpoint, full))

    @classmethod
    def restored(cls, *deltas, groups=ALL_GROUPS):
        keyed = cls()
        for blocks in deltas:
            keyed.backend.restore(decode_segment(encode_segment(blocks), groups))
        return keyed


@pytest.fixture(scope="module", autouse=True)
def on_every_backend(make_state):
    Keyed.make = staticmethod(make_state)


@pytest.fixture
def keyed():
    return Keyed()


# --- one suite for all kinds ------------------------------------------------------------------

FILL = {
    "value": lambda state: state.update("x"),
    "list": lambda state: state.add("x"),
    "map": lambda state: state.put("x", 1),
    "reducing": lambda state: state.add(4),
    "aggregating": lambda state: state.add(4),
}
READ = {
    "value": lambda state: state.value(),
    "list": lambda state: list(state.get()),
    "map": lambda state: dict(state.items()),
    "reducing": lambda state: state.get(),
    "aggregating": lambda state: state.get(),
}
FILLED = {"value": "x", "list": ["x"], "map": {"x": 1}, "reducing": 4, "aggregating": 4.0}
EMPTY = {"value": None, "list": [], "map": {}, "reducing": None, "aggregating": None}
kinds = pytest.mark.parametrize("kind", list(DESCRIPTORS))


@kinds
def test_what_is_stored_is_read(keyed, kind):
    state = keyed.state(kind)
    assert READ[kind](state) == EMPTY[kind]
    FILL[kind](state)
    assert READ[kind](state) == FILLED[kind]


@kinds
def test_keys_do_not_see_each_other(keyed, kind):
    FILL[kind](keyed.state(kind, "one"))
    assert READ[kind](keyed.state(kind, "two")) == EMPTY[kind]
    assert READ[kind](keyed.state(kind, "one")) == FILLED[kind]


@kinds
def test_equal_keys_are_one_key(keyed, kind):
    FILL[kind](keyed.state(kind, (1, "a")))
    assert READ[kind](keyed.state(kind, (1.0, "a"))) == FILLED[kind]


@kinds
def test_clear_removes_for_this_key_only(keyed, kind):
    FILL[kind](keyed.state(kind, "one"))
    FILL[kind](keyed.state(kind, "two"))
    keyed.state(kind, "one").clear()
    assert READ[kind](keyed.state(kind, "one")) == EMPTY[kind]
    assert READ[kind](keyed.state(kind, "two")) == FILLED[kind]


@kinds
def test_state_is_restored(keyed, kind):
    FILL[kind](keyed.state(kind))
    copy = Keyed.restored(keyed.delta(1))
    assert READ[kind](copy.state(kind)) == FILLED[kind]


@kinds
def test_a_removal_is_in_the_next_delta(keyed, kind):
    FILL[kind](keyed.state(kind))
    base = keyed.delta(1)
    keyed.backend.confirm(1)
    keyed.state(kind).clear()
    copy = Keyed.restored(base, keyed.delta(2))
    assert READ[kind](copy.state(kind)) == EMPTY[kind]


@kinds
def test_what_did_not_change_is_not_written_again(keyed, kind):
    FILL[kind](keyed.state(kind))
    keyed.delta(1)
    keyed.backend.confirm(1)
    assert keyed.delta(2) == []


@kinds
def test_reading_what_is_not_there_and_clearing_it_writes_nothing(keyed, kind):
    READ[kind](keyed.state(kind))
    keyed.state(kind).clear()
    assert keyed.delta(1) == []


@kinds
def test_a_delta_does_not_follow_later_changes(keyed, kind):
    FILL[kind](keyed.state(kind))
    blocks = keyed.delta(1)
    FILL[kind](keyed.state(kind))
    keyed.state(kind).clear()
    assert READ[kind](Keyed.restored(blocks).state(kind)) == FILLED[kind]


@kinds
def test_restored_state_is_settled(keyed, kind):
    FILL[kind](keyed.state(kind))
    copy = Keyed.restored(keyed.delta(1))
    copy.state(kind)
    assert copy.delta(2) == []


@kinds
def test_a_full_cut_holds_what_no_delta_would(keyed, kind):
    FILL[kind](keyed.state(kind, "old"))
    keyed.delta(1)
    keyed.backend.confirm(1)
    FILL[kind](keyed.state(kind, "new"))
    copy = Keyed.restored(keyed.delta(2, full=True))
    assert READ[kind](copy.state(kind, "old")) == FILLED[kind]
    assert READ[kind](copy.state(kind, "new")) == FILLED[kind]


# --- changes in place -------------------------------------------------------------------------


def changed_in_place(keyed, kind, fill, change):
    """`change` what is stored, after it was settled, without writing it back."""
    fill(keyed.state(kind))
    base = keyed.delta(1)
    keyed.backend.confirm(1)
    change(keyed.state(kind))
    return READ[kind](Keyed.restored(base, keyed.delta(2)).state(kind))


def test_a_value_changed_in_place_is_in_the_next_delta(keyed):
    found = changed_in_place(
        keyed, "value", lambda s: s.update({"n": [1]}), lambda s: s.value()["n"].append(2)
    )
    assert found == {"n": [1, 2]}


def test_a_list_changed_in_place_is_in_the_next_delta(keyed):
    found = changed_in_place(
        keyed, "list", lambda s: s.update([[1]]), lambda s: next(iter(s.get())).append(2)
    )
    assert found == [[1, 2]]


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.get("a").append(2),
        lambda s: s["a"].append(2),
        lambda s: [value.append(2) for value in s.values()],
        lambda s: [value.append(2) for _, value in s.items()],
    ],
    ids=["get", "[]", "values", "items"],
)
def test_a_map_value_changed_in_place_is_in_the_next_delta(keyed, change):
    assert changed_in_place(keyed, "map", lambda s: s.put("a", [1]), change) == {"a": [1, 2]}


def test_a_reduced_value_changed_in_place_is_in_the_next_delta(keyed):
    found = changed_in_place(keyed, "reducing", lambda s: s.add([1]), lambda s: s.get().append(2))
    assert found == [1, 2]


def test_an_accumulator_that_is_changed_in_place_is_in_the_next_delta(keyed):
    found = changed_in_place(keyed, "aggregating", lambda s: s.add(1), lambda s: s.add(2))
    assert found == 1.5


def test_an_accumulator_that_is_the_result_may_be_changed_in_place(keyed):
    class Gathered(Average):
        def get_result(self, accumulator):
            return accumulator

    keyed.context.key = "k"
    descriptor = AggregatingStateDescriptor("g", Gathered(), ANY)
    state = keyed.backend.get_state(descriptor)
    state.add(1)
    base = keyed.delta(1)
    keyed.backend.confirm(1)
    state.get().append("more")
    copy = Keyed.restored(base, keyed.delta(2))
    copy.context.key = "k"
    assert copy.backend.get_state(descriptor).get() == [1, 1, "more"]


@pytest.mark.parametrize("value", ["s", 1, 1.5, True, b"b", datetime.date(2024, 1, 1)])
def test_reading_an_immutable_value_writes_nothing(keyed, value):
    keyed.state("value").update(value)
    keyed.delta(1)
    keyed.backend.confirm(1)
    assert keyed.state("value").value() == value
    assert keyed.delta(2) == []


# --- what is special about each ---------------------------------------------------------------


def test_updating_a_value_to_none_removes_it(keyed):
    state = keyed.state("value")
    state.update(0)
    assert state.value() == 0
    base = keyed.delta(1)
    keyed.backend.confirm(1)
    state.update(None)
    assert state.value() is None
    copy = Keyed.restored(base, keyed.delta(2))
    assert copy.state("value").value() is None
    assert copy.delta(3, full=True) == [], "a removed key takes no space"


def test_a_list_is_replaced_appended_to_and_emptied(keyed):
    state = keyed.state("list")
    given_list = [1, 2]
    state.update(given_list)
    given_list.append("not mine")
    state.add(3)
    state.add_all([4, 5])
    assert list(state.get()) == [1, 2, 3, 4, 5]
    state.add_all([])
    state.update([])
    assert list(state.get()) == []
    assert keyed.delta(1, full=True) == []


def test_a_map_behaves_as_a_dict(keyed):
    state = keyed.state("map")
    assert state.is_empty() and "a" not in state and state.get("a") is None
    state.put_all({"a": 1, "b": 2})
    state["c"] = 3
    assert not state.is_empty() and "a" in state and state.contains("b") and state["c"] == 3
    assert (list(state), list(state.keys())) == (["a", "b", "c"], ["a", "b", "c"])
    assert (list(state.values()), dict(state.items())) == ([1, 2, 3], {"a": 1, "b": 2, "c": 3})
    del state["a"]
    state.remove("not there")
    assert list(state) == ["b", "c"]


def test_a_map_that_loses_its_last_entry_is_gone(keyed):
    state = keyed.state("map")
    state.put("a", 1)
    state.remove("a")
    assert state.is_empty()
    assert keyed.delta(1, full=True) == []


def test_a_reduce_function_may_be_a_plain_one(keyed):
    keyed.context.key = "k"
    state = keyed.backend.get_state(ReducingStateDescriptor("sum", lambda a, b: a + b, ANY))
    for value in (1, 2, 3):
        state.add(value)
    assert state.get() == 6


# --- names ------------------------------------------------------------------------------------


def test_a_state_asked_for_twice_is_one_state(keyed):
    assert keyed.state("value") is keyed.state("value")
    keyed.backend.get_state(ValueStateDescriptor("v", ANY))


@pytest.mark.parametrize(
    ("first", "second", "hint"),
    [
        (
            ValueStateDescriptor("x", Types.LONG()),
            ListStateDescriptor("x", Types.LONG()),
            "as value of LONG and as list of LONG",
        ),
        (
            ValueStateDescriptor("x", Types.LONG()),
            ValueStateDescriptor("x", Types.STRING()),
            "as value of LONG and as value of STRING",
        ),
        (
            MapStateDescriptor("x", Types.LONG(), Types.STRING()),
            MapStateDescriptor("x", Types.STRING(), Types.STRING()),
            "as map of LONG, STRING and as map of STRING, STRING",
        ),
    ],
    ids=["kind", "type", "key type"],
)
def test_a_name_used_for_two_things_is_refused(keyed, first, second, hint):
    keyed.backend.get_state(first)
    with pytest.raises(StateError) as refused:
        keyed.backend.get_state(second)
    assert str(refused.value) == f"state 'x' is declared twice: {hint}"


def test_saved_state_cannot_come_back_as_another_kind(keyed):
    keyed.state("value").update(1)
    copy = Keyed.restored(keyed.delta(1))
    with pytest.raises(StateError, match=r"state 'v' was saved as value state and is now .* list"):
        copy.backend.get_state(ListStateDescriptor("v", ANY))


def test_saved_state_cannot_come_back_as_another_type(keyed):
    keyed.context.key = "k"
    keyed.backend.get_state(ValueStateDescriptor("x", Types.LONG())).update(1)
    copy = Keyed.restored(keyed.delta(1))
    with pytest.raises(StateError, match=r"'x' was saved with the type LONG and .* STRING"):
        copy.backend.get_state(ValueStateDescriptor("x", Types.STRING()))
    again = Keyed.restored(keyed.delta(2))
    again.context.key = "k"
    assert again.backend.get_state(ValueStateDescriptor("x", ANY)).value() == 1


def test_values_that_cannot_change_are_written_after_the_cut(keyed, monkeypatch):
    def not_yet(*args):
        raise AssertionError("encoded on the loop")

    keyed.context.key = "k"
    state = keyed.backend.get_state(ValueStateDescriptor("x", Types.STRING()))
    state.update("before")
    with monkeypatch.context() as patch:
        patch.setattr(capture, "gather", not_yet)
        captured = keyed.backend.cut(1, full=False)
    state.update("after")
    copy = Keyed.restored(list(captured))
    copy.context.key = "k"
    assert copy.backend.get_state(ValueStateDescriptor("x", Types.STRING())).value() == "before"


def test_what_could_not_be_written_is_in_the_next_delta(keyed):
    keyed.state("value", "good").update([1])
    keyed.state("value", "bad").update(lambda: 1)
    with pytest.raises(StateError, match="of key 'bad'"):
        keyed.delta(1)
    keyed.state("value", "bad").clear()
    copy = Keyed.restored(keyed.delta(2))
    assert copy.state("value", "good").value() == [1]


def test_a_value_that_cannot_be_written_names_its_state(keyed):
    keyed.state("value").update(lambda: 1)
    with pytest.raises(StateError, match=r"state 'v' of key 'k' cannot be written: .*lambda"):
        keyed.delta(1)


# --- against a model --------------------------------------------------------------------------

steps = st.lists(
    st.tuples(st.just("put"), st.integers(0, 5), st.integers(0, 99))
    | st.tuples(st.just("clear"), st.integers(0, 5))
    | st.tuples(st.just("append"), st.integers(0, 5))
    | st.tuples(st.just("cut"), st.booleans())
    | st.tuples(st.just("confirm"), st.integers(0, 3))
    | st.tuples(st.just("abort"), st.integers(0, 3)),
    max_size=40,
)


@given(steps)
def test_a_confirmed_base_and_the_next_delta_give_the_live_state(script):
    """Whatever is cut, confirmed and aborted: restoring a checkpoint gives the state at its cut.

    A checkpoint is its base (the segments of the newest confirmed one) and its own delta.
    """
    keyed, live = Keyed(), {}
    settled, under_way, number = [], {}, 0
    for step in script:
        match step:
            case ("put", key, value):
                keyed.state("value", key).update([value])
                live[key] = [value]
            case ("append", key):
                found = keyed.state("value", key).value()
                if found is not None:
                    found.append("more")
                    live[key] = [*live[key], "more"]
            case ("clear", key):
                keyed.state("value", key).clear()
                live.pop(key, None)
            case ("cut", full):
                number += 1
                full = full or not settled
                base = [] if full else settled
                under_way[number] = [*base, keyed.delta(number, full)]
                copy = Keyed.restored(*under_way[number])
                found = {key: copy.state("value", key).value() for key in range(6)}
                assert found == {key: live.get(key) for key in range(6)}
            case ("confirm", nth) if nth < len(under_way):
                checkpoint = sorted(under_way)[nth]
                settled = under_way[checkpoint]
                keyed.backend.confirm(checkpoint)
                under_way = {c: kept for c, kept in under_way.items() if c > checkpoint}
            case ("abort", nth) if nth < len(under_way):
                # Nobody tells the backend: what was cut is simply never confirmed.
                del under_way[sorted(under_way)[nth]]


@given(
    st.dictionaries(st.integers(0, 1000) | st.text(max_size=3), st.integers(), max_size=30),
    st.integers(1, 7),
    st.integers(1, 7),
)
def test_state_moves_to_its_new_owner_when_the_parallelism_changes(entries, before, after):
    """Every entry is restored by exactly one subtask, whichever one wrote it."""
    segments = []
    for subtask in range(before):
        writer = Keyed()
        groups = groups_of_subtask(subtask, 128, before)
        for key, value in entries.items():
            if key_group(key, 128) in groups:
                writer.state("value", key).update(value)
        segments.append(encode_segment(writer.delta(1)))
    owners = dict.fromkeys(entries, 0)
    for subtask in range(after):
        groups = groups_of_subtask(subtask, 128, after)
        reader = Keyed()
        for data in segments:
            reader.backend.restore(decode_segment(data, groups))
        for key, value in entries.items():
            found = reader.state("value", key).value()
            assert found == (value if key_group(key, 128) in groups else None)
            owners[key] += found is not None
    assert set(owners.values()) <= {1}
