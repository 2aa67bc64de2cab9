"""A record that has left cannot be changed any more, and what cannot change is not copied."""

from __future__ import annotations

import copy
import datetime
import uuid
from collections import OrderedDict, defaultdict, namedtuple
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import RecordError
from penstock.runtime.isolation import isolate, isolator

Point = namedtuple("Point", "x y")


class Thing:
    def __init__(self, parts):
        self.parts = parts

    def __eq__(self, other):
        return isinstance(other, Thing) and self.parts == other.parts


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        1.5,
        "text",
        b"bytes",
        1j,
        Decimal("1.5"),
        uuid.UUID(int=1),
        datetime.datetime(2024, 1, 1),
        datetime.timedelta(1),
        (),
        (1, "a", None),
    ],
)
def test_what_cannot_change_is_passed_on(value):
    assert isolate(value) is value


def shake(value):
    """Change everything in `value` that can be changed."""
    if isinstance(value, list):
        for item in value:
            shake(item)
        value.append("changed")
    elif isinstance(value, dict):
        for item in value.values():
            shake(item)
        value["changed"] = True
    elif isinstance(value, set | bytearray):
        value.clear()
    elif isinstance(value, tuple):
        for item in value:
            shake(item)
    elif isinstance(value, Thing):
        shake(value.parts)


values = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.dates() | st.builds(bytearray),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | inner.map(lambda part: Thing([part]))
        | st.tuples(inner, inner).map(lambda pair: Point(*pair))
    ),
    max_leaves=12,
)


@given(values)
def test_a_copy_is_equal_and_nobody_elses(value):
    before = copy.deepcopy(value)
    isolated = isolate(value)
    assert isolated == before and type(isolated) is type(before)
    shake(value)
    assert isolated == before


@pytest.mark.parametrize(
    "value",
    [
        defaultdict(list, a=[1]),
        OrderedDict(a=1),
        Point(1, [2]),
        {"nested": {"deep": [1]}},
        {1, 2},
    ],
)
def test_types_are_kept(value):
    isolated = isolate(value)
    assert isolated == value and type(isolated) is type(value)
    assert isolated is not value


def test_what_cannot_be_pickled_is_named_by_its_type():
    with pytest.raises(RecordError, match="a record of type list cannot be pickled"):
        isolate([lambda: 1])


@pytest.mark.parametrize(
    ("value", "deep"),
    [
        ({"a": 1, "b": "x"}, False),
        (("a", 1), False),
        ([1, None], False),
        ("a", False),
        ({"a": [1]}, True),
        (("a", ("b",)), True),
        ([bytearray(b"x")], True),
        (Thing([1]), True),
    ],
)
def test_an_isolator_tells_of_records_that_hold_containers(value, deep):
    told = []
    assert isolator(lambda: told.append(1))(value) == value
    assert told == [1] * deep
