"""Types that changed between two versions of a program: migrated, or refused with both named."""

from __future__ import annotations

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, RowKind, Time
from penstock.common.typeinfo import Types
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.errors import IncompatibleStateError, ProgramError, StateError
from penstock.state.columns import decode_column, encode_column
from penstock.state.kinds import KeyContext
from penstock.state.migration import NoMigration, migration
from penstock.state.operator_state import OperatorStateBackend
from penstock.state.segments import Origin, decode_segment, encode_segment

INT, LONG, STRING, DOUBLE = Types.INT(), Types.LONG(), Types.STRING(), Types.DOUBLE()
ANY = Types.PICKLED_BYTE_ARRAY()

# --- what becomes what ------------------------------------------------------------------------

WIDER = [
    (Types.BYTE(), Types.SHORT()),
    (Types.BYTE(), Types.FLOAT()),
    (Types.SHORT(), INT),
    (Types.SHORT(), DOUBLE),
    (INT, LONG),
    (INT, DOUBLE),
    (LONG, Types.BIG_INT()),
    (LONG, Types.BIG_DEC()),
    (Types.BIG_INT(), Types.BIG_DEC()),
    (Types.FLOAT(), DOUBLE),
    (Types.CHAR(), STRING),
]
REFUSED = [
    (LONG, INT),
    (LONG, DOUBLE),
    (INT, Types.FLOAT()),
    (DOUBLE, Types.FLOAT()),
    (DOUBLE, LONG),
    (LONG, STRING),
    (STRING, Types.CHAR()),
    (Types.SQL_DATE(), Types.SQL_TIMESTAMP()),
    (Types.LIST(LONG), Types.LIST(INT)),
    (Types.LIST(LONG), Types.OBJECT_ARRAY(LONG)),
    (Types.LIST(LONG), LONG),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.PRIMITIVE_ARRAY(Types.SHORT())),
    (Types.MAP(STRING, LONG), Types.MAP(LONG, LONG)),
    (Types.MAP(Types.ROW_NAMED(["a", "b"], [INT, INT]), INT), Types.MAP(Types.ROW([INT]), INT)),
    (Types.TUPLE([INT]), Types.TUPLE([INT, INT])),
    (Types.TUPLE([INT, INT]), Types.TUPLE([INT])),
    (Types.TUPLE([INT]), Types.ROW([INT])),
    (Types.ROW_NAMED(["a"], [INT]), Types.ROW_NAMED(["b"], [INT])),
    (Types.ROW_NAMED(["a", "b"], [INT, INT]), Types.ROW_NAMED(["a", "b"], [INT, STRING])),
]


@pytest.mark.parametrize(("saved", "declared"), REFUSED, ids=str)
def test_what_is_another_type_is_refused(saved, declared):
    with pytest.raises(NoMigration):
        migration(saved, declared)


@pytest.mark.parametrize(("saved", "declared"), WIDER, ids=str)
def test_a_wider_number_does_not_become_narrower_again(saved, declared):
    migration(saved, declared)
    with pytest.raises(NoMigration):
        migration(declared, saved)


def test_a_refusal_says_where_inside():
    saved = Types.MAP(STRING, Types.LIST(Types.ROW_NAMED(["n"], [LONG])))
    declared = Types.MAP(STRING, Types.LIST(Types.ROW_NAMED(["n"], [STRING])))
    with pytest.raises(NoMigration) as refused:
        migration(saved, declared)
    assert str(refused.value) == "values: an element: field 'n': LONG cannot become STRING"


def test_a_number_that_a_float_cannot_hold_is_not_cut_off():
    """State keeps all digits of a number that is larger than its type."""
    migrate = migration(INT, DOUBLE)
    assert migrate(7) == 7.0
    with pytest.raises(StateError, match="too large"):
        migrate(2**60 + 1)


def test_an_added_field_has_its_default_and_each_row_its_own():
    saved = Types.ROW_NAMED(["n"], [INT])
    declared = Types.ROW_NAMED(
        ["tags", "n", "unit"], [Types.LIST(STRING), INT, STRING], {"tags": ["new"]}
    )
    one, other = map(migration(saved, declared), (Row(n=1), Row(n=2)))
    assert (one, other) == (
        Row(tags=["new"], n=1, unit=None),
        Row(tags=["new"], n=2, unit=None),
    )
    one["tags"].append("x")
    assert other["tags"] == ["new"], "what can change is not shared"


def test_a_default_is_no_part_of_the_type():
    plain = Types.ROW_NAMED(["n"], [INT])
    with_default = Types.ROW_NAMED(["n"], [INT], {"n": 5})
    assert plain == with_default and hash(plain) == hash(with_default)
    assert migration(plain, with_default) is None


def test_a_default_must_fit_its_field():
    with pytest.raises(ProgramError, match=r"default .* 'm', which is no field of ROW\(n: INT\)"):
        Types.ROW_NAMED(["n"], [INT], {"m": 1})
    with pytest.raises(ProgramError, match="n: expected INT, got str"):
        Types.ROW_NAMED(["n"], [INT], {"n": "x"})


# --- random types, random changes -------------------------------------------------------------


def same(value):
    return value


LEAVES = st.sampled_from(
    [
        (STRING, STRING, st.text(max_size=3), same),
        (Types.BOOLEAN(), Types.BOOLEAN(), st.booleans(), same),
        (LONG, LONG, st.integers(-9, 9), same),
        (INT, LONG, st.integers(-9, 9), same),
        (INT, DOUBLE, st.integers(-9, 9), float),
        (LONG, Types.BIG_DEC(), st.integers(), decimal.Decimal),
        (Types.FLOAT(), DOUBLE, st.floats(allow_nan=False), same),
        (ANY, ANY, st.sets(st.integers(), max_size=2), same),
    ]
)


def nullable(function):
    return lambda value: None if value is None else function(value)


@st.composite
def rows(draw, children):
    """Fields that stay, go and come, in any order."""
    kept = draw(st.dictionaries(st.sampled_from("abcd"), children, min_size=1, max_size=3))
    gone = draw(st.dictionaries(st.sampled_from("wx"), children, max_size=2))
    came = draw(st.dictionaries(st.sampled_from("yz"), st.booleans(), max_size=2))
    old_names = draw(st.permutations([*kept, *gone]))
    new_names = draw(st.permutations([*kept, *came]))
    both = {**kept, **gone}
    defaults = {name: 42 for name, has_default in came.items() if has_default}
    saved = Types.ROW_NAMED(old_names, [both[name][0] for name in old_names])
    declared = Types.ROW_NAMED(
        new_names, [kept[name][1] if name in kept else LONG for name in new_names], defaults
    )

    def make(values, kind):
        row = Row(*values)
        row.set_field_names(old_names)
        row.set_row_kind(kind)
        return row

    def expected(row):
        fields = row.as_dict()
        made = Row(
            *(
                nullable(kept[name][3])(fields[name]) if name in kept else defaults.get(name)
                for name in new_names
            )
        )
        made.set_field_names(new_names)
        made.set_row_kind(row.get_row_kind())
        return made

    values = st.tuples(*(st.none() | both[name][2] for name in old_names))
    return saved, declared, st.builds(make, values, st.sampled_from(RowKind)), expected


def containers(children):
    def lists(child):
        saved, declared, values, expected = child
        return (
            Types.LIST(saved),
            Types.LIST(declared),
            st.lists(st.none() | values, max_size=3),
            lambda items: [nullable(expected)(item) for item in items],
        )

    def maps(child):
        saved, declared, values, expected = child
        return (
            Types.MAP(INT, saved),
            Types.MAP(LONG, declared),
            st.dictionaries(st.integers(0, 9), st.none() | values, max_size=3),
            lambda items: {key: nullable(expected)(item) for key, item in items.items()},
        )

    def tuples(parts):
        return (
            Types.TUPLE([part[0] for part in parts]),
            Types.TUPLE([part[1] for part in parts]),
            st.tuples(*(part[2] for part in parts)),
            lambda items: tuple(p[3](item) for p, item in zip(parts, items, strict=True)),
        )

    return (
        children.map(lists)
        | children.map(maps)
        | st.lists(children, min_size=1, max_size=3).map(tuples)
        | rows(children)
    )


CHANGES = st.recursive(LEAVES, containers, max_leaves=6)
"""A saved type, a declared one, values of the first, and what becomes of them."""


@given(st.data())
def test_migrated_values_are_of_the_declared_type(data):
    saved, declared, values, expected = data.draw(CHANGES)
    before = data.draw(st.lists(values, min_size=1, max_size=4))
    restored = decode_column(encode_column(saved, before), len(before))
    migrate = migration(saved, declared) or same
    after = list(map(migrate, restored))
    assert after == list(map(expected, before))
    assert decode_column(encode_column(declared, after), len(after)) == after


@given(st.data())
def test_a_type_that_stays_needs_no_migration(data):
    saved, declared, _, _ = data.draw(CHANGES)
    assert migration(saved, saved) is None
    assert migration(declared, declared) is None


# --- in a backend -----------------------------------------------------------------------------

V1 = Types.ROW_NAMED(["name", "n"], [STRING, INT])
V2 = Types.ROW_NAMED(["n", "unit"], [LONG, STRING], {"unit": "kg"})
OLD, NEW = Row(name="a", n=1), Row(n=1, unit="kg")


class Keyed:
    def __init__(self, make, *segments):
        self.context = KeyContext()
        self.context.key = "k"
        self.backend = make(self.context, 128)
        for data in segments:
            self.backend.restore(decode_segment(data, range(128)))

    def segment(self, checkpoint, full=False):
        return encode_segment(self.backend.cut(checkpoint, full))


TTL = StateTtlConfig.new_builder(Time.hours(1)).build()


def expiring(descriptor):
    descriptor.enable_time_to_live(TTL)
    return descriptor


class Merge:
    def create_accumulator(self):
        return None

    def add(self, value, accumulator):
        return value

    def get_result(self, accumulator):
        return accumulator


KINDS = {
    "value": (
        lambda t: ValueStateDescriptor("s", t),
        lambda s: s.update(OLD),
        lambda s: s.value() == NEW,
    ),
    "list": (
        lambda t: ListStateDescriptor("s", t),
        lambda s: s.add(OLD),
        lambda s: list(s.get()) == [NEW],
    ),
    "map": (
        lambda t: MapStateDescriptor("s", STRING, t),
        lambda s: s.put("x", OLD),
        lambda s: s.get("x") == NEW,
    ),
    "reducing": (
        lambda t: ReducingStateDescriptor("s", lambda a, b: a, t),
        lambda s: s.add(OLD),
        lambda s: s.get() == NEW,
    ),
    "aggregating": (
        lambda t: AggregatingStateDescriptor("s", Merge(), t),
        lambda s: s.add(OLD),
        lambda s: s.get() == NEW,
    ),
}


@pytest.mark.parametrize("lives", ["for ever", "for an hour"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_state_is_migrated_when_it_is_declared(make_state, kind, lives):
    describe, fill, is_new = KINDS[kind]
    wrap = expiring if lives == "for an hour" else same
    old = Keyed(make_state)
    fill(old.backend.get_state(wrap(describe(V1))))
    copy = Keyed(make_state, old.segment(1))
    assert not copy.backend.has_migrated()
    assert is_new(copy.backend.get_state(wrap(describe(V2))))
    assert copy.backend.has_migrated()
    # What it writes now is of the new type alone, without what was restored before.
    again = Keyed(make_state, copy.segment(2))
    assert is_new(again.backend.get_state(wrap(describe(V2))))
    assert not again.backend.has_migrated()


@pytest.mark.parametrize("full", [True, False], ids=["full", "delta"])
def test_keys_that_nobody_touches_are_migrated_too(make_state, full):
    old = Keyed(make_state)
    state = old.backend.get_state(ValueStateDescriptor("s", V1))
    for number in range(200):
        old.context.key = number
        state.update(Row(name="a", n=number))
    base = old.segment(1)
    new = Keyed(make_state, base)
    state = new.backend.get_state(ValueStateDescriptor("s", V2))
    new.context.key = 7
    state.clear()
    segments = [new.segment(2, full)] if full else [base, new.segment(2, full)]
    again = Keyed(make_state, *segments)
    state = again.backend.get_state(ValueStateDescriptor("s", V2))
    found = {}
    for number in range(200):
        again.context.key = number
        found[number] = state.value()
    assert found.pop(7) is None
    assert found == {n: Row(n=n, unit="kg") for n in range(200) if n != 7}


def test_widened_numbers_need_no_new_base(make_state):
    old = Keyed(make_state)
    old.backend.get_state(ValueStateDescriptor("s", INT)).update(1)
    new = Keyed(make_state, old.segment(1))
    state = new.backend.get_state(ValueStateDescriptor("s", LONG))
    assert state.value() == 1 and not new.backend.has_migrated()
    state.update(2**40)
    again = Keyed(make_state, old.segment(2), new.segment(2))
    assert again.backend.get_state(ValueStateDescriptor("s", LONG)).value() == 2**40


def test_segments_of_both_types_come_together(make_state):
    """A function may ask for its state, and so migrate it, in some subtasks only."""
    old, other = Keyed(make_state), Keyed(make_state)
    old.backend.get_state(ValueStateDescriptor("s", V1)).update(OLD)
    other.context.key = "other"
    other.backend.get_state(ValueStateDescriptor("s", V2)).update(Row(n=2, unit="g"))
    for segments in ([old.segment(1), other.segment(1)], [other.segment(2), old.segment(2)]):
        both = Keyed(make_state, *segments)
        state = both.backend.get_state(ValueStateDescriptor("s", V2))
        assert state.value()["n"] == 1
        both.context.key = "other"
        assert state.value() == Row(n=2, unit="g")


def test_a_state_of_another_type_is_refused_with_both_named(make_state):
    old = Keyed(make_state)
    old.backend.get_state(ValueStateDescriptor("s", LONG)).update(1)
    new = Keyed(make_state, old.segment(1))
    with pytest.raises(IncompatibleStateError) as refused:
        new.backend.get_state(ValueStateDescriptor("s", INT))
    assert str(refused.value) == (
        "state 's' was saved with the type LONG and is now declared with INT: LONG cannot become "
        "INT; give it a new name or declare it as it was"
    )


# --- operator state ---------------------------------------------------------------------------

PLACE = Origin(0, 1)


def operator_state(*fill):
    store = OperatorStateBackend()
    for step in fill:
        step(store)
    return encode_segment(store.blocks(), PLACE)


@pytest.mark.parametrize("union", [False, True], ids=["list", "union list"])
def test_lists_of_operator_state_are_migrated(union):
    def get(store, kind):
        descriptor = ListStateDescriptor("s", kind)
        return store.get_union_list_state(descriptor) if union else store.get_list_state(descriptor)

    saved = operator_state(lambda store: get(store, V1).add(OLD))
    store = OperatorStateBackend()
    store.restore([saved], PLACE)
    assert list(get(store, V2).get()) == [NEW]
    assert list(get(store, V2).get()) == [NEW], "once"
    with pytest.raises(IncompatibleStateError, match=r"saved with the type ROW.* with STRING"):
        get(store, STRING)


def test_broadcast_state_is_migrated():
    def get(store, kind):
        return store.get_broadcast_state(MapStateDescriptor("s", STRING, kind))

    saved = operator_state(lambda store: get(store, V1).put("x", OLD))
    store = OperatorStateBackend()
    store.restore([saved], PLACE)
    assert dict(get(store, V2).items()) == {"x": NEW}
    assert dict(get(store, V2).items()) == {"x": NEW}, "once"
    other = OperatorStateBackend()
    other.restore([saved], PLACE)
    with pytest.raises(IncompatibleStateError, match=r"saved with the type ROW.* with LONG"):
        get(other, LONG)
