"""Columns: what was written comes back, in the compact form, for every declared type."""

from __future__ import annotations

import datetime
import decimal
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Instant, Row, RowKind
from penstock.common.typeinfo import Types
from penstock.errors import CorruptCheckpointError, TypeMismatchError
from penstock.state.columns import decode_column, encode_column
from penstock.state.entries import decode_entries, encode_entries, merge_entries
from penstock.state.schema import PICKLED, needs_pickle, schema_of, type_of

LONG, STRING = Types.LONG(), Types.STRING()
MOMENT = datetime.datetime(2024, 1, 1, 0, 0, 0, 1)
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())

LEAVES = [
    (STRING, st.text(st.characters())),
    (Types.CHAR(), st.text(min_size=1, max_size=1)),
    (Types.BOOLEAN(), st.booleans()),
    (Types.BYTE(), st.integers(-128, 127)),
    (Types.INT(), st.integers(-(2**31), 2**31 - 1)),
    (LONG, st.integers(-(2**63), 2**63 - 1)),
    (Types.BIG_INT(), st.integers()),
    (Types.FLOAT(), st.floats(allow_nan=False)),
    (Types.DOUBLE(), st.floats(allow_nan=False)),
    (Types.BIG_DEC(), st.decimals(allow_nan=False)),
    (BYTES, st.binary()),
    (Types.SQL_DATE(), st.dates()),
    (Types.SQL_TIME(), st.times()),
    (Types.SQL_TIMESTAMP(), st.datetimes()),
    (Types.INSTANT(), st.builds(Instant, st.integers(-(2**40), 2**40), st.integers(0, 10**9 - 1))),
    (PICKLED, st.one_of(st.sets(st.integers()), st.text(), st.tuples(st.integers()))),
]


def row_of(names, kinds):
    def make(values, kind):
        row = Row(*values)
        row.set_field_names(names)
        row.set_row_kind(kind)
        return row

    return st.builds(make, st.tuples(*kinds), st.sampled_from(RowKind))


def nested(children):
    """A type made of others, with its values."""

    def lists(child):
        kind, values = child
        return st.just((Types.LIST(kind), st.lists(st.none() | values, max_size=4)))

    def maps(child):
        kind, values = child
        entries = st.dictionaries(st.text(max_size=3), st.none() | values, max_size=4)
        return st.just((Types.MAP(STRING, kind), entries))

    def tuples(parts):
        return (Types.TUPLE([k for k, _ in parts]), st.tuples(*(v for _, v in parts)))

    def rows(parts):
        names = [f"n{i}" for i in range(len(parts))]
        kind = Types.ROW_NAMED(names, [k for k, _ in parts])
        return (kind, row_of(names, [st.none() | v for _, v in parts]))

    several = st.lists(children, min_size=1, max_size=3)
    return (
        children.flatmap(lists) | children.flatmap(maps) | several.map(tuples) | several.map(rows)
    )


TYPES = st.recursive(st.sampled_from(LEAVES), nested, max_leaves=4)
COLUMNS = TYPES.flatmap(
    lambda pair: st.tuples(st.just(pair[0]), st.lists(st.none() | pair[1], max_size=6))
)


@given(COLUMNS)
def test_what_is_written_comes_back(column):
    kind, values = column
    found = decode_column(encode_column(kind, values), len(values))
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


@given(TYPES)
def test_a_schema_is_a_type(pair):
    kind, _ = pair
    assert type_of(schema_of(kind)) == kind
    assert needs_pickle(schema_of(kind)) == ("PICKLED" in str(kind))


@given(COLUMNS)
def test_nothing_is_pickled_unless_it_was_not_declared(column):
    kind, values = column
    data = encode_column(kind, values)
    if not needs_pickle(schema_of(kind)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pickle, "loads", None)
            assert decode_column(data, len(values)) == values


@pytest.mark.parametrize(
    ("kind", "values", "most"),
    [
        (LONG, list(range(100)), 110),
        (STRING, ["x" * 10] * 100, 1120),
        (Types.TUPLE([LONG, Types.BOOLEAN()]), [(n, True) for n in range(100)], 230),
        (Types.LIST(LONG), [[1, 2, 3]] * 100, 420),
    ],
    ids=["numbers", "strings", "tuples", "lists"],
)
def test_the_form_is_compact(kind, values, most):
    assert len(encode_column(kind, values)) < most


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LONG, "7"),
        (LONG, 2.5),
        (STRING, 7),
        (Types.BOOLEAN(), 2),
        (Types.LIST(LONG), [1, "x"]),
        (Types.LIST(LONG), "abc"),
        (Types.MAP(STRING, LONG), {"a": "x"}),
        (Types.TUPLE([LONG, LONG]), (1, 2, 3)),
        (Types.ROW_NAMED(["a"], [LONG]), Row(a="x")),
        (Types.SQL_DATE(), datetime.datetime(2024, 1, 1, 12)),
    ],
)
def test_what_is_not_of_the_declared_type_is_refused(kind, value):
    with pytest.raises(TypeMismatchError):
        encode_column(kind, [value])


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (LONG, True, 1),
        (LONG, 2**70, 2**70),
        (Types.BYTE(), 1000, 1000),
        (Types.FLOAT(), 0.1, 0.1),
        (Types.DOUBLE(), 3, 3.0),
        (Types.BIG_DEC(), decimal.Decimal("1.50"), decimal.Decimal("1.50")),
        (Types.ROW_NAMED(["a"], [LONG]), Row(5), Row(a=5)),
        (Types.SQL_TIMESTAMP(), MOMENT, MOMENT),
    ],
)
def test_nothing_is_lost_of_what_fits(kind, value, expected):
    [found] = decode_column(encode_column(kind, [value]), 1)
    assert (found, type(found)) == (expected, type(expected))


def test_an_unknown_letter_is_damage():
    with pytest.raises(CorruptCheckpointError, match="begins with b'!'"):
        decode_column(b"!", 1)


# --- entries ----------------------------------------------------------------------------------

KEYS = st.one_of(st.text(max_size=2), st.integers(0, 9), st.binary(max_size=1), st.none())


@given(st.dictionaries(KEYS, st.integers()), st.sets(KEYS))
def test_entries_come_back(entries, removed):
    gone = [key for key in removed if key not in entries]
    payload = encode_entries(LONG, list(entries), list(entries.values()), gone)
    keys, values, found_gone = decode_entries(payload, schema_of(LONG))
    assert dict(zip(keys, values, strict=True)) == entries
    assert found_gone == gone


@given(st.lists(st.dictionaries(st.integers(0, 5), st.none() | st.integers()), max_size=6))
def test_merged_entries_are_what_all_of_them_say(deltas):
    """A None is a removal."""
    payloads, live = [], {}
    for delta in deltas:
        kept = {k: v for k, v in delta.items() if v is not None}
        gone = [k for k, v in delta.items() if v is None]
        payloads.append(encode_entries(LONG, list(kept), list(kept.values()), gone))
        live = {k: v for k, v in (live | delta).items() if v is not None}
    merged = merge_entries(LONG, [(payload, schema_of(LONG)) for payload in payloads])
    assert (merged is None) == (not live)
    keys, values, gone = ([], [], []) if merged is None else decode_entries(merged, schema_of(LONG))
    assert dict(zip(keys, values, strict=True)) == live and gone == []
