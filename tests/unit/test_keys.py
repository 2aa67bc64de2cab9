"""A key's place depends on nothing but the key."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import os
import subprocess
import sys
import uuid
from collections import Counter, namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, RowKind
from penstock.common.key_batches import by_group, key_groups
from penstock.common.keys import (
    Router,
    encode_key,
    groups_of_subtask,
    key_group,
    subtask_of_group,
)
from penstock.errors import UnsupportedKeyError

UTC = datetime.timezone.utc


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Level(enum.IntEnum):
    LOW = 1


class Half(float, enum.Enum):
    HALF = 0.5


@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    y: float
    label: str = dataclasses.field(default="", compare=False)


Pair = namedtuple("Pair", "left right")


# --- equal keys share an encoding -------------------------------------------------------------


def spellings(number):
    """The ways to write one number that Python calls equal."""
    found = [number, Decimal(number), Fraction(number)]
    if isinstance(number, int):
        if abs(number) < 2**53:
            found.append(float(number))
        if number in (0, 1):
            found.append(bool(number))
    return found


def twice(strategy):
    return strategy.map(lambda value: (value, value))


def two_spellings(number):
    return st.tuples(st.sampled_from(spellings(number)), st.sampled_from(spellings(number)))


def nested(inner):
    """Pairs of equal containers, from pairs of equal members."""
    members = st.lists(inner, max_size=4)
    return members.map(lambda pairs: (tuple(a for a, _ in pairs), tuple(b for _, b in pairs))) | (
        members.map(
            lambda pairs: (frozenset(a for a, _ in pairs), frozenset(b for _, b in reversed(pairs)))
        )
    )


equal_leaves = (
    st.integers(-3, 3).flatmap(two_spellings)
    | st.integers().flatmap(two_spellings)
    | st.floats(allow_nan=False, allow_infinity=False).flatmap(two_spellings)
    | twice(st.text(max_size=5))
    | twice(st.binary(max_size=5))
    | twice(st.none())
    | twice(st.dates())
    | twice(st.datetimes())
    | twice(st.timedeltas())
    | twice(st.uuids())
)
equal_keys = st.recursive(equal_leaves, nested, max_leaves=12)
any_keys = equal_keys.map(lambda pair: pair[0])


@given(equal_keys)
def test_equal_keys_share_an_encoding_at_any_depth(pair):
    left, right = pair
    assert left == right
    assert encode_key(left) == encode_key(right)
    assert key_group(left, 128) == key_group(right, 128)


@given(any_keys, any_keys)
def test_keys_share_an_encoding_exactly_when_they_are_equal(left, right):
    assert (encode_key(left) == encode_key(right)) == (left == right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (1, 1.0),
        (1, Decimal(1)),
        (1, Decimal("1.00")),
        (1, Fraction(1)),
        (0, -0.0),
        (0, Decimal("-0")),
        (0.5, Fraction(1, 2)),
        (float("inf"), Decimal("Infinity")),
        (10**400, Decimal("1E+400")),
        (1, Level.LOW),
        (0.5, Half.HALF),
        ((1, "a"), Pair(True, "a")),
        (Point(1, 2), Point(1.0, Fraction(2))),
        (Point(1, 2, "a"), Point(1, 2, "b")),
        (
            datetime.datetime(2024, 5, 1, 12, tzinfo=UTC),
            datetime.datetime(
                2024, 5, 1, 14, tzinfo=datetime.timezone(datetime.timedelta(hours=2))
            ),
        ),
        (
            datetime.time(12, tzinfo=UTC),
            datetime.time(14, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        ),
        (datetime.timedelta(hours=24), datetime.timedelta(days=1)),
    ],
)
def test_equal_keys_of_different_types(left, right):
    assert left == right
    assert encode_key(left) == encode_key(right)
    assert encode_key(((left,), "x")) == encode_key(((right,), "x"))


def test_numbers_of_thousands_of_digits_are_keys():
    """Python refuses to write these in decimal."""
    assert encode_key(10**5000) == encode_key(Decimal("1E+5000")) != encode_key(10**5000 + 1)
    assert encode_key(-(10**5000)) == encode_key(Fraction(-(10**5000)))
    assert encode_key(Fraction(1, 10**5000)) == encode_key(Decimal("1E-5000"))


class Autumn(datetime.tzinfo):
    """A zone in which one hour happens twice."""

    def utcoffset(self, moment):
        return datetime.timedelta(hours=1 if moment is not None and moment.fold else 2)

    def dst(self, moment):
        return None


def test_the_two_readings_of_a_repeated_hour_are_equal_keys():
    first = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=Autumn())
    second = first.replace(fold=1)
    assert first == second
    assert encode_key(first) == encode_key(second)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, "1"),
        ("a", b"a"),
        (None, 0),
        (None, "None"),
        ((), frozenset()),
        ((1, 2), frozenset({1, 2})),
        (("ab", "c"), ("a", "bc")),
        ((("a",), "b"), ("a", ("b",))),
        (("a", "b"), ("a", "b", "")),
        (Color.RED, Color.GREEN),
        (Color.RED, 1),
        (Point(1, 2), (1, 2)),
        (Point(1, 2), Point(2, 1)),
        (float("inf"), float("-inf")),
        (Decimal("1E+400"), float("inf")),
        (datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1)),
        (datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=UTC)),
        (datetime.time(12), datetime.time(12, tzinfo=UTC)),
        (2**64, 2.0**64 + 2**12),
    ],
)
def test_distinct_keys_have_distinct_encodings(left, right):
    assert left != right
    assert encode_key(left) != encode_key(right)


# --- golden values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "encoding", "group"),
    [
        ("merchant-7", b"smerchant-7", 44),
        ("", b"s", 87),
        ("ß", b"s\xc3\x9f", 87),
        (0, b"i0", 121),
        (-17, b"i-17", 115),
        (2**100, b"i1267650600228229401496703205376", 125),
        (0.5, b"i1/2", 27),
        (float("-inf"), b"i-inf", 20),
        (None, b"0", 46),
        (b"\x00\xff", b"b\x00\xff", 127),
        (("a", 1), b"t2:sa2:i1", 80),
        (frozenset({2, 1}), b"f2:i12:i2", 112),
        (Color.RED, b"e5:Color3:RED", 117),
        (Point(1, 2), b"d5:Point2:i12:i2", 49),
        (datetime.date(2024, 2, 29), b"y2024-02-29", 55),
        (datetime.datetime(2024, 2, 29, 12, 30), b"n2024-02-29T12:30:00", 27),
        (datetime.datetime(2024, 2, 29, tzinfo=UTC), b"z2024-02-29T00:00:00+00:00", 89),
        (datetime.time(12, 30), b"h12:30:00", 83),
        (datetime.timedelta(days=1, seconds=2), b"l1:11:21:0", 115),
        (uuid.UUID(int=7), b"u" + bytes(15) + b"\x07", 121),
    ],
)
def test_encodings_and_groups_never_change(key, encoding, group):
    """State that was saved is found by these: a change here loses it."""
    assert encode_key(key) == encoding
    assert key_group(key, 128) == group


def test_the_encoding_does_not_depend_on_the_process():
    program = "from penstock.common.keys import *; print(key_group(('a', frozenset('bcd')), 32768))"
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {f"{key_group(('a', frozenset('bcd')), 32768)}\n"}


def test_a_key_of_a_megabyte_is_a_key():
    big = "x" * (1 << 20)
    assert len(encode_key(big)) == 1 + (1 << 20)
    assert encode_key((big, 1)) == encode_key((big, True))
    assert encode_key(big) != encode_key(big[:-1] + "y")


def test_a_lone_surrogate_is_a_key():
    assert encode_key("\ud800") != encode_key("\ud801")


# --- refusals ---------------------------------------------------------------------------------


@dataclasses.dataclass
class Mutable:
    x: int


@dataclasses.dataclass(frozen=True, eq=False)
class ByIdentity:
    x: int


@pytest.mark.parametrize(
    "key", [float("nan"), Decimal("NaN"), Decimal("sNaN")], ids=["float", "decimal", "signaling"]
)
def test_nan_is_refused(key):
    with pytest.raises(UnsupportedKeyError, match="NaN is not equal to itself"):
        encode_key(key)
    with pytest.raises(UnsupportedKeyError, match="NaN"):
        encode_key(("a", (key,)))


@pytest.mark.parametrize(
    "key", [[1], {"a": 1}, {1}, bytearray(b"a"), object(), Mutable(1), ByIdentity(1), 1j, len]
)
def test_what_has_no_stable_encoding_is_refused_by_name(key):
    with pytest.raises(UnsupportedKeyError) as refused:
        encode_key(key)
    assert f"a {type(key).__name__} cannot be a key" in str(refused.value)
    assert "frozen dataclasses" in str(refused.value)


@pytest.mark.parametrize("key", [([1],), frozenset({(object(),)}), Pair(1, {})])
def test_a_refusal_reaches_into_nested_keys(key):
    with pytest.raises(UnsupportedKeyError, match="cannot be a key"):
        encode_key(key)


# --- key groups -------------------------------------------------------------------------------


@pytest.mark.parametrize("max_parallelism", [*range(1, 41), 127, 128, 129, 255])
def test_the_ranges_of_the_subtasks_partition_the_key_groups(max_parallelism):
    for parallelism in range(1, max_parallelism + 1):
        ranges = [groups_of_subtask(i, max_parallelism, parallelism) for i in range(parallelism)]
        assert [group for groups in ranges for group in groups] == list(range(max_parallelism))
        for subtask, groups in enumerate(ranges):
            assert groups, "a subtask without a key group would never see a record"
            assert {subtask_of_group(g, max_parallelism, parallelism) for g in groups} == {subtask}
        sizes = {len(groups) for groups in ranges}
        assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 32768), st.data())
def test_ranges_agree_with_owners_at_large_numbers(max_parallelism, data):
    parallelism = data.draw(st.integers(1, max_parallelism))
    group = data.draw(st.integers(0, max_parallelism - 1))
    owner = subtask_of_group(group, max_parallelism, parallelism)
    assert 0 <= owner < parallelism
    assert group in groups_of_subtask(owner, max_parallelism, parallelism)


def test_similar_keys_spread_evenly():
    counts = Counter(key_group(f"user-{n}", 16) for n in range(16_000))
    assert len(counts) == 16
    assert max(counts.values()) < 1.2 * 1000 and min(counts.values()) > 0.8 * 1000


@given(st.lists(any_keys), st.integers(1, 200), st.data())
def test_the_router_agrees_with_the_key_group(keys, max_parallelism, data):
    parallelism = data.draw(st.integers(1, max_parallelism))
    router = Router(max_parallelism, parallelism)
    for key in [*keys, *keys]:
        group = key_group(key, max_parallelism)
        assert router[key] == subtask_of_group(group, max_parallelism, parallelism)


def test_the_router_forgets_before_it_grows_too_large(monkeypatch):
    monkeypatch.setattr(Router, "LIMIT", 100)
    router, fresh = Router(128, 7), Router(128, 7)
    for key in range(1000):
        router[key]
        assert len(router) <= 100
    assert [router[key] for key in range(50)] == [fresh[key] for key in range(50)]


def test_the_router_refuses_what_cannot_be_a_key():
    with pytest.raises(UnsupportedKeyError):
        Router(128, 2)[object()]


# --- rows -------------------------------------------------------------------------------------


def test_equal_rows_share_an_encoding():
    assert encode_key(Row(a=1, b="x")) == encode_key(Row("a", "b")(1.0, "x"))
    assert encode_key((Row(1),)) == encode_key((Row(True),))


def test_rows_that_differ_have_different_encodings():
    rows = [
        Row(),
        Row(1),
        Row(None),
        Row(a=1),
        Row(b=1),
        Row(1, 2),
        Row(Row(1), 2),
        Row.of_kind(RowKind.DELETE, 1),
    ]
    others = [1, (1,), (None, 1), ()]
    assert len({encode_key(key) for key in [*rows, *others]}) == len(rows) + len(others)


def test_a_row_is_a_key_if_all_its_fields_are():
    with pytest.raises(UnsupportedKeyError, match="a list cannot be a key"):
        encode_key(Row(a=[1]))


# --- many keys at once ------------------------------------------------------------------------

MANY = st.one_of(
    st.lists(st.text(st.characters())),
    st.lists(st.integers()),
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.one_of(st.text(), st.integers(), st.booleans(), st.binary(), st.none())),
    st.lists(st.tuples(st.text(), st.integers())),
)


@given(MANY, st.sampled_from([1, 2, 100, 128, 32768]))
def test_the_groups_of_many_keys_are_those_of_each(keys, most):
    assert key_groups(keys, most) == [key_group(key, most) for key in keys]


def test_more_keys_than_are_hashed_at_a_time():
    for keys in ([f"key {n}" for n in range(10_000)], list(range(-5_000, 5_000)), ["\ud800"] * 3):
        assert key_groups(keys, 128) == [key_group(key, 128) for key in keys]


def test_items_by_group_keep_their_order():
    assert by_group([3, 0, 3], ["a", "b", "c"]) == {0: ["b"], 3: ["a", "c"]}
    assert by_group([], []) == {}


@pytest.mark.parametrize(
    ("key", "plain"),
    [
        (numpy.int64(7), 7),
        (numpy.uint8(7), 7),
        (numpy.float32(0.5), 0.5),
        (numpy.bool_(True), True),
        ((numpy.int32(-1), "a"), (-1, "a")),
    ],
)
def test_a_number_of_numpy_is_the_number_that_it_is(key, plain):
    assert key == plain
    assert encode_key(key) == encode_key(plain)


@pytest.mark.parametrize("key", [numpy.datetime64("2026-01-01"), numpy.array([1]), numpy.array(1)])
def test_what_else_numpy_has_is_no_key(key):
    with pytest.raises(UnsupportedKeyError, match="cannot be a key"):
        encode_key(key)
