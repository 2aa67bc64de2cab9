"""Operator state at another parallelism: who gets what."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from penstock.state.redistribution import copy_of, split, union

PARTS = st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=6)


@given(PARTS, st.integers(1, 8))
def test_every_element_goes_to_exactly_one_subtask_and_none_has_much_more(parts, parallelism):
    dealt = split(parts, parallelism)
    assert len(dealt) == parallelism
    assert Counter(union(dealt)) == Counter(union(parts))
    if parallelism != len(parts):
        sizes = [len(part) for part in dealt]
        assert max(sizes) - min(sizes) <= 1


@given(PARTS)
def test_the_same_parallelism_leaves_everything_in_place(parts):
    assert split(parts, len(parts)) == parts


@given(PARTS)
def test_a_union_has_all_elements_in_order(parts):
    everything = iter(union(parts))
    assert all(next(everything) == element for part in parts for element in part)
    assert next(everything, None) is None


@given(st.lists(st.integers(), min_size=1), st.integers(0, 20))
def test_a_copy_is_one_of_the_copies(parts, subtask):
    assert copy_of(parts, subtask) in parts
