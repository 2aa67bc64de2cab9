"""Plain values come back from JSON as they were, and everything else is refused by name."""

from __future__ import annotations

import enum
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.plain import decode, encode
from penstock.errors import ProgramError

keys = st.text(max_size=4) | st.sampled_from(["$bytes", "$", "$$", "$$bytes", "$x"])
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
)
plain_values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=20
)


@given(plain_values)
def test_plain_values_come_back_as_they_were(value):
    written = json.dumps(encode(value, "a position"), sort_keys=True)
    back = decode(json.loads(written))
    assert back == value
    assert repr(back) == repr(value) or isinstance(value, dict | list)


@pytest.mark.parametrize("value", [True, 1, 1.0, "1", b"1"])
def test_types_that_look_alike_stay_apart(value):
    assert type(decode(json.loads(json.dumps(encode(value, "x"))))) is type(value)


def test_tuples_come_back_as_lists():
    assert decode(encode((1, ("a", b"b")), "x")) == [1, ["a", b"b"]]


class Level(enum.IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({1, 2}, "set"),
        (object(), "object"),
        (Level.LOW, "Level"),
        ({1: "a"}, "dict"),
        ([{"a": [1j]}], "complex"),
        (bytearray(b"x"), "bytearray"),
    ],
)
def test_what_is_not_plain_is_refused_by_name(value, name):
    with pytest.raises(ProgramError, match=rf"^a split of orders holds a {name}, which cannot"):
        encode(value, "a split of orders")
