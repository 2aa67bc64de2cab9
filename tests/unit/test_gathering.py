"""Entries gathered batch by batch are, byte for byte, those of each key group on its own."""

from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.common import key_batches
from penstock.common.key_batches import BATCH
from penstock.common.keys import key_group
from penstock.common.spool import IN_MEMORY, Spool
from penstock.common.typeinfo import Types
from penstock.errors import StateError
from penstock.state import arrow_gathering, gathering
from penstock.state.capture import TableCapture
from penstock.state.entries import encode_entries

LONG, STRING = Types.LONG(), Types.STRING()
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
PICKLED = Types.PICKLED_BYTE_ARRAY()
MOST = st.sampled_from([1, 2, 7, 128, 256, 32768])

# Some of them halves of surrogate pairs, and some longer than what fits a byte.
texts = st.one_of(st.text(st.characters()), st.text(min_size=120, max_size=300))
KEYS = st.one_of(
    st.lists(texts, unique=True),
    st.lists(st.integers(), unique=True),
    st.lists(st.binary(), unique=True),
    st.lists(st.tuples(st.text(max_size=2), st.integers(0, 3)), unique=True),
    st.lists(st.one_of(texts, st.integers(2, 9), st.binary(), st.none()), unique=True),
)
VALUES = {
    STRING: st.one_of(texts, st.none()),
    LONG: st.one_of(st.integers(), st.none()),
    BYTES: st.one_of(st.binary(max_size=300), st.none()),
    Types.DOUBLE(): st.floats(allow_nan=False),
    Types.LIST(LONG): st.lists(st.integers(), max_size=3),
    PICKLED: st.one_of(texts, st.integers(), st.lists(st.booleans()), st.none()),
}


@contextmanager
def batches_of(size: int, enough: int) -> Any:
    with (
        mock.patch.object(key_batches, "BATCH", size),
        mock.patch.object(gathering, "_ENOUGH", enough),
        mock.patch.object(arrow_gathering, "_BATCH", size),
        mock.patch.object(arrow_gathering, "_LONG", 9 * enough),
    ):
        yield


@pytest.fixture(params=["lists", "arrow"], autouse=True)
def way(request: pytest.FixtureRequest) -> Any:
    """Everything here holds of entries that are dealt out by lists and by pyarrow."""
    with mock.patch.object(gathering, "_MANY", 0 if request.param == "arrow" else sys.maxsize):
        yield request.param


def one_by_one(kind: Any, most: int, kept: dict[Any, Any], removed: list[Any]) -> dict[int, bytes]:
    """The plain way: each key group for itself."""
    groups: dict[int, tuple[dict[Any, Any], list[Any]]] = defaultdict(lambda: ({}, []))
    for key, value in kept.items():
        groups[key_group(key, most)][0][key] = value
    for key in removed:
        groups[key_group(key, most)][1].append(key)
    return {
        group: encode_entries(kind, list(mine), list(mine.values()), gone)
        for group, (mine, gone) in groups.items()
    }


def captured(
    kind: Any, most: int, kept: dict[Any, Any], removed: list[Any], in_memory: int = IN_MEMORY
) -> dict[int, bytes]:
    spool = Spool(in_memory)
    entries = list(kept), list(kept.values()), removed
    capture = TableCapture.of("s", "value", kind, most, *entries, spool)
    return {block.group: block.payload for block in capture.blocks()}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    keys=KEYS,
    most=MOST,
    batch=st.integers(1, 9),
    enough=st.integers(1, 4),
    in_memory=st.sampled_from([0, 10, 1_000, IN_MEMORY]),
)
def test_gathered_entries_are_what_each_group_gives_on_its_own(
    kind, data, keys, most, batch, enough, in_memory
):
    values = st.one_of(VALUES[kind], VALUES[kind].filter(lambda value: value is not None))
    kept = {key: data.draw(values) for key in keys if data.draw(st.booleans())}
    removed = [key for key in keys if key not in kept]
    with batches_of(batch, enough):
        found = captured(kind, most, kept, removed, in_memory)
    assert found == one_by_one(kind, most, kept, removed)
    assert list(found) == sorted(found)


@pytest.mark.parametrize("most", [1, 7, 128, 32768])
@pytest.mark.parametrize(
    "kept",
    [
        {f"key-{n}": f"{n:0100d}" for n in range(BATCH * 2 + 5)},
        {f"key-{n}": "ü" * (n % 200) for n in range(BATCH + 1)},
        {n: n * n for n in range(-BATCH, BATCH)},
        {b"%d" % n: bytes(n % 5) for n in range(BATCH + 1)},
        {f"key-{n}": None if n % 3 else "x" for n in range(BATCH + 1)},
        {f"key-{n}" if n % 2 else n: str(n) for n in range(BATCH + 1)},
        {f"key-{n}" if n < BATCH else "\ud800" * n: str(n) for n in range(BATCH, BATCH + 9)},
    ],
    ids=["texts", "umlauts", "numbers", "bytes", "none", "several types", "surrogates"],
)
def test_several_batches(kept, most):
    kinds = {int: LONG, bytes: BYTES, str: STRING}
    [only] = {type(value) for value in kept.values()} - {type(None)}
    kind = kinds[only]
    removed = [f"gone-{n}" for n in range(200)]
    assert captured(kind, most, kept, removed) == one_by_one(kind, most, kept, removed)


def test_nothing_gives_no_blocks():
    assert captured(STRING, 128, {}, []) == {}


@pytest.mark.parametrize("most", [1, 128])
def test_the_key_that_cannot_be_written_is_named_after_the_keys_were_joined(most):
    kept: dict[str, Any] = {f"key-{n}": n for n in range(BATCH + 10)}
    kept["key-777"] = lambda: None
    with pytest.raises(StateError, match=r"state 's' of key 'key-777' cannot be written"):
        captured(PICKLED, most, kept, [])


def test_what_is_not_of_the_declared_type_is_named():
    kept: dict[str, Any] = {f"key-{n}": f"{n}" for n in range(1000)}
    kept["key-77"] = 7
    with pytest.raises(StateError, match="of key 'key-77' cannot be written"):
        captured(STRING, 128, kept, [])


def test_each_way_is_the_one_that_is_taken(way):
    kept = {f"key-{n}": str(n) for n in range(100)}
    with mock.patch.object(arrow_gathering, "slice_by_group", side_effect=ZeroDivisionError):
        if way == "arrow":
            with pytest.raises(ZeroDivisionError):
                captured(STRING, 128, kept, [])
        else:
            assert captured(STRING, 128, kept, [])


@pytest.mark.parametrize("missing", ["numpy", "pyarrow"])
def test_without_one_of_the_packages_it_is_lists(missing):
    found = importlib.util.find_spec
    gathering._arrow_installed.cache_clear()
    try:
        with mock.patch("importlib.util.find_spec", lambda n: None if n == missing else found(n)):
            assert not gathering._arrow_installed()
    finally:
        gathering._arrow_installed.cache_clear()
    assert gathering._arrow_installed()
