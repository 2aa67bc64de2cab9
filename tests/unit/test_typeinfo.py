"""Declared types: which are immutable, and how they are written."""

from __future__ import annotations

import pickle

import pytest

from penstock.common.typeinfo import TypeInformation, Types

LONG, STRING = Types.LONG(), Types.STRING()


@pytest.mark.parametrize(
    ("declared", "immutable"),
    [
        (Types.STRING(), True),
        (Types.BOOLEAN(), True),
        (Types.INT(), True),
        (Types.LONG(), True),
        (Types.FLOAT(), True),
        (Types.DOUBLE(), True),
        (Types.PICKLED_BYTE_ARRAY(), False),
        (Types.LIST(LONG), False),
        (Types.MAP(STRING, LONG), False),
        (Types.TUPLE([]), True),
        (Types.TUPLE([STRING, LONG]), True),
        (Types.TUPLE([STRING, Types.LIST(LONG)]), False),
        (Types.TUPLE([Types.TUPLE([LONG]), STRING]), True),
        (Types.TUPLE([Types.TUPLE([Types.PICKLED_BYTE_ARRAY()])]), False),
    ],
    ids=str,
)
def test_a_type_is_immutable_when_all_of_it_is(declared, immutable):
    assert declared.is_immutable() is immutable


def test_a_name_that_is_not_known_is_not_taken_for_immutable():
    assert not TypeInformation("SOMETHING").is_immutable()


def test_types_are_values():
    assert Types.TUPLE([STRING, LONG]) == Types.TUPLE([Types.STRING(), Types.LONG()])
    assert Types.LIST(LONG) != Types.LIST(STRING)
    assert pickle.loads(pickle.dumps(Types.MAP(STRING, LONG))) == Types.MAP(STRING, LONG)


def test_types_are_written_as_they_are_declared():
    assert str(Types.MAP(STRING, Types.TUPLE([LONG, LONG]))) == "MAP(STRING, TUPLE(LONG, LONG))"
