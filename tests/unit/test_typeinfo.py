"""Declared types: what they turn values into, what they refuse, and which are immutable."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import math
import pickle
import struct
import types
from collections import OrderedDict, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Instant, Row, RowKind, Types
from penstock.common.typeinfo import TypeInformation
from penstock.errors import JavaOnlyError, ProgramError, TypeMismatchError

LONG, STRING, ANY = Types.LONG(), Types.STRING(), Types.PICKLED_BYTE_ARRAY()
PERSON = Types.ROW_NAMED(["name", "born"], [STRING, Types.INT()])
NOON = datetime.time(12, 0, 0, 1999)
DAY = datetime.date(2024, 2, 29)
UTC = datetime.timezone.utc

SCALARS = {
    "STRING": Types.STRING(),
    "BOOLEAN": Types.BOOLEAN(),
    "BYTE": Types.BYTE(),
    "SHORT": Types.SHORT(),
    "INT": Types.INT(),
    "LONG": Types.LONG(),
    "FLOAT": Types.FLOAT(),
    "DOUBLE": Types.DOUBLE(),
    "CHAR": Types.CHAR(),
    "BIG_INT": Types.BIG_INT(),
    "BIG_DEC": Types.BIG_DEC(),
    "SQL_DATE": Types.SQL_DATE(),
    "SQL_TIME": Types.SQL_TIME(),
    "SQL_TIMESTAMP": Types.SQL_TIMESTAMP(),
    "INSTANT": Types.INSTANT(),
}


class Word(str):
    def __str__(self):
        return "something else"


class Color(str, enum.Enum):
    RED = "red"


class Number:
    """A whole number of some other library."""

    def __index__(self):
        return 7


# --- types as values --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "immutable"),
    [
        *((declared, True) for declared in SCALARS.values()),
        (ANY, False),
        (Types.LIST(LONG), False),
        (Types.MAP(STRING, LONG), False),
        (Types.ROW([LONG]), False),
        (Types.OBJECT_ARRAY(LONG), False),
        (Types.BASIC_ARRAY(LONG), False),
        (Types.PRIMITIVE_ARRAY(LONG), False),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), True),
        (Types.TUPLE([]), True),
        (Types.TUPLE([STRING, LONG]), True),
        (Types.TUPLE([STRING, Types.LIST(LONG)]), False),
        (Types.TUPLE([Types.TUPLE([LONG]), STRING]), True),
        (Types.TUPLE([Types.TUPLE([ANY])]), False),
    ],
    ids=str,
)
def test_a_type_is_immutable_when_all_of_it_is(declared, immutable):
    assert declared.is_immutable() is immutable


ALL = [
    *SCALARS.values(),
    ANY,
    PERSON,
    Types.ROW([STRING, Types.INT()]),
    Types.TUPLE([STRING, Types.INT()]),
    *(make(LONG) for make in (Types.LIST, Types.BASIC_ARRAY, Types.PRIMITIVE_ARRAY)),
    Types.OBJECT_ARRAY(LONG),
    Types.LIST(STRING),
    Types.MAP(STRING, LONG),
    Types.MAP(LONG, STRING),
]


def test_types_are_values():
    assert len(set(ALL)) == len(ALL)
    for declared in ALL:
        copy = pickle.loads(pickle.dumps(declared))
        assert copy == declared and hash(copy) == hash(declared)
        assert repr(declared) == str(declared)
    assert Types.TUPLE([STRING, LONG]) == Types.TUPLE((Types.STRING(), Types.LONG()))
    assert Types.ROW([LONG]) == Types.ROW_NAMED(["f0"], [LONG])


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        *((declared, name) for name, declared in SCALARS.items()),
        (ANY, "PICKLED_BYTE_ARRAY"),
        (Types.MAP(STRING, Types.TUPLE([LONG, LONG])), "MAP(STRING, TUPLE(LONG, LONG))"),
        (PERSON, "ROW(name: STRING, born: INT)"),
        (Types.LIST(Types.PRIMITIVE_ARRAY(LONG)), "LIST(PRIMITIVE_ARRAY(LONG))"),
    ],
    ids=str,
)
def test_types_are_written_as_they_are_declared(declared, text):
    """State in checkpoints is compared by this: it must not change."""
    assert str(declared) == text


def test_a_row_type_knows_its_fields():
    assert PERSON.get_field_names() == ["name", "born"]
    assert PERSON.get_field_types() == [STRING, Types.INT()]
    assert PERSON.get_field_index("born") == 1 and PERSON.get_field_index("died") == -1
    assert Types.TUPLE([LONG]).get_field_types() == [LONG]


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], ["a", "a"], []])
def test_a_row_type_needs_as_many_different_names_as_types(names):
    with pytest.raises(ProgramError, match="as many different names"):
        Types.ROW_NAMED(names, [LONG, LONG])


@pytest.mark.parametrize(
    ("make", "element"),
    [
        (Types.PRIMITIVE_ARRAY, Types.STRING()),
        (Types.PRIMITIVE_ARRAY, Types.BIG_INT()),
        (Types.BASIC_ARRAY, Types.BIG_DEC()),
        (Types.BASIC_ARRAY, Types.LIST(LONG)),
    ],
)
def test_arrays_refuse_elements_that_they_cannot_have(make, element):
    with pytest.raises(ProgramError, match=r"OBJECT_ARRAY (takes )?any type"):
        make(element)


def test_there_is_no_java_type():
    with pytest.raises(JavaOnlyError, match="use the TypeInformation itself"):
        LONG.get_java_type_info()


def test_what_may_be_anything_needs_no_conversion():
    assert ANY.converter() is None and not ANY.need_conversion()
    value = [object()]
    assert ANY.to_internal_type(value) is value is ANY.from_internal_type(value)
    assert all(declared.need_conversion() for declared in ALL if declared is not ANY)


def test_a_type_of_ones_own_says_what_every_type_says():
    with pytest.raises(TypeError):
        TypeInformation()


def type_only(part):
    # What a value looks like is not the same in every process that collects these tests.
    return str(part) if isinstance(part, TypeInformation) else ""


# --- conversions ------------------------------------------------------------------------------

FITS = [
    (Types.STRING(), "a", "a"),
    (Types.STRING(), Word("word"), "word"),
    (Types.STRING(), Color.RED, "red"),
    (Types.CHAR(), "x", "x"),
    (Types.BOOLEAN(), True, True),
    (Types.BOOLEAN(), 0, False),
    (Types.BOOLEAN(), Number(), True),
    (Types.BYTE(), 127, 127),
    (Types.BYTE(), -128, -128),
    (Types.SHORT(), -32_768, -32_768),
    (Types.INT(), 2**31 - 1, 2**31 - 1),
    (Types.LONG(), -(2**63), -(2**63)),
    (Types.LONG(), True, 1),
    (Types.LONG(), Number(), 7),
    (Types.BIG_INT(), 2**100, 2**100),
    (Types.BIG_INT(), False, 0),
    (Types.FLOAT(), 0.1, struct.unpack("f", struct.pack("f", 0.1))[0]),
    (Types.FLOAT(), 1, 1.0),
    (Types.FLOAT(), 1e300, math.inf),
    (Types.DOUBLE(), 0.1, 0.1),
    (Types.DOUBLE(), 3, 3.0),
    (Types.DOUBLE(), Number(), 7.0),
    (Types.DOUBLE(), decimal.Decimal("1.5"), 1.5),
    (Types.DOUBLE(), fractions.Fraction(1, 2), 0.5),
    (Types.BIG_DEC(), decimal.Decimal("1.50"), decimal.Decimal("1.50")),
    (Types.BIG_DEC(), 0.1, decimal.Decimal("0.1")),
    (Types.BIG_DEC(), 7, decimal.Decimal(7)),
    (Types.BIG_DEC(), "7.25", decimal.Decimal("7.25")),
    (Types.SQL_DATE(), DAY, DAY),
    (Types.SQL_DATE(), datetime.datetime(2024, 2, 29, 23), DAY),
    (Types.SQL_TIME(), NOON, datetime.time(12, 0, 0, 1000)),
    (Types.SQL_TIME(), NOON.replace(tzinfo=UTC), datetime.time(12, 0, 0, 1000)),
    (
        Types.SQL_TIMESTAMP(),
        datetime.datetime.combine(DAY, NOON, UTC),
        datetime.datetime(2024, 2, 29, 12, 0, 0, 1000),
    ),
    (Types.INSTANT(), Instant(1, 2), Instant(1, 2)),
    (Types.TUPLE([STRING, Types.INT()]), ("a", True), ("a", 1)),
    (Types.TUPLE([STRING, LONG]), ["a", 1], ("a", 1)),
    (Types.TUPLE([STRING, LONG]), Row("a", 1), ("a", 1)),
    (Types.TUPLE([ANY]), (None,), (None,)),
    (PERSON, ("Ada", 1815), Row(name="Ada", born=1815)),
    (PERSON, ["Ada", None], Row(name="Ada", born=None)),
    (PERSON, {"born": 1815, "name": "Ada", "more": 1}, Row(name="Ada", born=1815)),
    (PERSON, {"name": "Ada"}, Row(name="Ada", born=None)),
    (PERSON, {}, Row(name=None, born=None)),
    (PERSON, Row(born=1815, name="Ada"), Row(name="Ada", born=1815)),
    (PERSON, Row("Ada", 1815), Row(name="Ada", born=1815)),
    (PERSON, types.SimpleNamespace(name="Ada", born=1815), Row(name="Ada", born=1815)),
    (
        PERSON,
        Row.of_kind(RowKind.DELETE, name="Ada", born=1),
        Row.of_kind(RowKind.DELETE, name="Ada", born=1),
    ),
    (Types.ROW([STRING, LONG]), ("a", 1), Row(f0="a", f1=1)),
    (Types.LIST(Types.BYTE()), (1, None, True), [1, None, 1]),
    (Types.LIST(LONG), deque([1, 2]), [1, 2]),
    (Types.LIST(ANY), ("a",), ["a"]),
    (Types.MAP(LONG, Types.BYTE()), OrderedDict({True: False, 2: None}), {1: 0, 2: None}),
    (Types.MAP(ANY, ANY), {"a": [1]}, {"a": [1]}),
    (Types.PRIMITIVE_ARRAY(Types.INT()), [True], [1]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"ab"), b"ab"),
    (Types.BASIC_ARRAY(STRING), ["a", None], ["a", None]),
    (Types.OBJECT_ARRAY(PERSON), [("Ada", 1), None], [Row(name="Ada", born=1), None]),
]


@pytest.mark.parametrize(("declared", "value", "expected"), FITS, ids=type_only)
def test_a_value_that_fits_is_converted(declared, value, expected):
    converted = declared.to_internal_type(value)
    assert converted == expected
    assert type(converted) is type(expected)


MISFITS = [
    (Types.BYTE(), 128, "expected BYTE, got int, which does not fit into 8 bits: 128"),
    (Types.INT(), 2**31, "expected INT, got int, which does not fit into 32 bits: 2147483648"),
    (Types.STRING(), 1, "expected STRING, got int: 1"),
    (Types.STRING(), b"a", "expected STRING, got bytes: b'a'"),
    (Types.STRING(), None, "expected STRING, got None"),
    (Types.CHAR(), "ab", "expected CHAR (a str of length 1), got str: 'ab'"),
    (Types.CHAR(), "", "expected CHAR (a str of length 1), got str: ''"),
    (Types.BOOLEAN(), "true", "expected BOOLEAN, got str: 'true'"),
    (Types.INT(), 1.0, "expected INT, got float: 1.0"),
    (Types.LONG(), "7", "expected LONG, got str: '7'"),
    (Types.LONG(), None, "expected LONG, got None"),
    (Types.BIG_INT(), decimal.Decimal(1), "expected BIG_INT, got Decimal: Decimal('1')"),
    (Types.FLOAT(), "1", "expected FLOAT, got str: '1'"),
    (Types.DOUBLE(), [1], "expected DOUBLE, got list: [1]"),
    (Types.DOUBLE(), 1j, "expected DOUBLE, got complex: 1j"),
    (Types.BIG_DEC(), "x", "expected BIG_DEC, got str: 'x'"),
    (Types.BIG_DEC(), True, "expected BIG_DEC, got bool: True"),
    (Types.SQL_DATE(), "2024-02-29", "expected SQL_DATE (a datetime.date), got str: '2024-02-29'"),
    (Types.SQL_TIME(), 5, "expected SQL_TIME (a datetime.time), got int: 5"),
    (Types.SQL_TIMESTAMP(), 5, "expected SQL_TIMESTAMP (a datetime.datetime), got int: 5"),
    (Types.INSTANT(), 5, "expected INSTANT (a penstock.common.Instant), got int: 5"),
    (Types.TUPLE([LONG]), 5, "expected TUPLE(LONG), got int: 5"),
    (
        Types.TUPLE([LONG]),
        (1, 2),
        "expected TUPLE(LONG) with 1 field, got tuple with 2: (1, 2)",
    ),
    (Types.TUPLE([STRING, LONG]), ("a", None), "[1]: expected LONG, got None"),
    (PERSON, 5, "expected ROW(name: STRING, born: INT), got int: 5"),
    (
        PERSON,
        ("a",),
        "expected ROW(name: STRING, born: INT) with 2 fields, got tuple with 1: ('a',)",
    ),
    (
        PERSON,
        {"nmae": "a"},
        "expected ROW(name: STRING, born: INT), got dict: {'nmae': 'a'}",
    ),
    (
        PERSON,
        types.SimpleNamespace(x=1),
        "expected ROW(name: STRING, born: INT), got SimpleNamespace: namespace(x=1)",
    ),
    (PERSON, {"born": "x"}, "born: expected INT, got str: 'x'"),
    (
        Types.ROW_NAMED(["born"], [LONG]),
        Row(a=1),
        "expected ROW(born: LONG), got Row with no field 'born' among a: Row(a=1)",
    ),
    (Types.LIST(LONG), "ab", "expected LIST(LONG), got str: 'ab'"),
    (Types.LIST(LONG), {1: 2}, "expected LIST(LONG), got dict: {1: 2}"),
    (Types.LIST(LONG), 5, "expected LIST(LONG), got int: 5"),
    (Types.LIST(LONG), [1, "a"], "[1]: expected LONG, got str: 'a'"),
    (Types.PRIMITIVE_ARRAY(LONG), [1, None], "[1]: expected LONG, got None"),
    (
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        [1],
        "expected PRIMITIVE_ARRAY(BYTE) (bytes), got list: [1]",
    ),
    (Types.MAP(STRING, LONG), [1], "expected MAP(STRING, LONG), got list: [1]"),
    (Types.MAP(STRING, LONG), {"a": "b"}, "['a']: expected LONG, got str: 'b'"),
    (Types.MAP(STRING, LONG), {1: 1}, "[key]: expected STRING, got int: 1"),
    (
        Types.ROW_NAMED(["people"], [Types.LIST(PERSON)]),
        {"people": [("a", 1), ("b", "c")]},
        "people[1].born: expected INT, got str: 'c'",
    ),
]


@pytest.mark.parametrize(("declared", "value", "message"), MISFITS, ids=type_only)
def test_a_value_that_does_not_fit_says_type_place_and_value(declared, value, message):
    with pytest.raises(TypeMismatchError) as refused:
        declared.to_internal_type(value)
    assert str(refused.value) == message
    assert isinstance(refused.value, TypeError)


def test_an_iterator_is_read_once():
    assert Types.LIST(LONG).to_internal_type(iter([1, 2])) == [1, 2]
    with pytest.raises(TypeMismatchError, match=r"^\[1\]: expected LONG, got str"):
        Types.LIST(LONG).to_internal_type(iter([1, "a"]))


def test_a_long_value_is_shortened():
    with pytest.raises(TypeMismatchError) as refused:
        LONG.to_internal_type("x" * 1_000_000)
    assert len(str(refused.value)) < 120


def test_a_value_that_cannot_be_shown_does_not_hide_the_error():
    class Shy:
        def __repr__(self):
            raise RuntimeError("not me")

    with pytest.raises(TypeMismatchError, match=r"expected LONG, got Shy: <Shy.*>"):
        LONG.to_internal_type(Shy())


def test_a_converted_value_shares_nothing_that_can_change():
    inner = [1, 2]
    value = {"name": "a", "all": inner}
    declared = Types.ROW_NAMED(["name", "all"], [STRING, Types.LIST(LONG)])
    row = declared.to_internal_type(value)
    inner.append(3)
    assert row == Row(name="a", all=[1, 2])
    again = declared.to_internal_type(row)
    row["all"].append(9)
    row.set_field_names(["x", "y"])
    assert again == Row(name="a", all=[1, 2])


@pytest.mark.parametrize(
    ("declared", "code"),
    [(Types.BYTE(), "b"), (Types.SHORT(), "h"), (Types.INT(), "i"), (Types.LONG(), "q")],
    ids=str,
)
@given(number=st.integers(-(2**70), 2**70))
def test_whole_numbers_fit_or_are_refused(declared, code, number):
    try:
        struct.pack(f"<{code}", number)
    except struct.error:
        with pytest.raises(TypeMismatchError, match="does not fit into"):
            declared.to_internal_type(number)
    else:
        assert declared.to_internal_type(number) == number


@given(st.sampled_from(ALL), st.data())
def test_converting_twice_is_converting_once(declared, data):
    fitting = [value for kind, value, _ in FITS if kind == declared]
    if not fitting:
        return
    once = declared.to_internal_type(data.draw(st.sampled_from(fitting)))
    assert declared.to_internal_type(once) == once
