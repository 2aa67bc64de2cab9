"""Broadcast state: what is written is there, and what was restored waits to be declared."""

from __future__ import annotations

import pytest

from penstock.common.typeinfo import Types
from penstock.datastream.state import MapStateDescriptor
from penstock.errors import StateError
from penstock.state.broadcast import BroadcastBackend

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


@pytest.fixture
def backend():
    made = BroadcastBackend(["rules"])
    made.declare(RULES)
    made.writable(RULES).put_all({"a": 1, "b": 2})
    return made


def contents(backend):
    return dict(backend.read_only("rules").items())


def test_entries_are_put_removed_and_cleared(backend):
    assert contents(backend) == {"a": 1, "b": 2}
    state = backend.writable(RULES)
    state.put("c", 3)
    state.remove("a")
    assert contents(backend) == {"b": 2, "c": 3}
    state.clear()
    assert contents(backend) == {} and state.is_empty()


def test_a_cleared_state_is_written_so_that_no_older_copy_comes_back(backend):
    backend.writable(RULES).clear()
    restored = BroadcastBackend(["rules"])
    for block in backend.blocks():
        restored.restore(block)
    restored.declare(RULES)
    assert contents(restored) == {}


def test_what_was_restored_is_there_once_its_state_is_declared(backend):
    restored = BroadcastBackend([])
    for block in backend.blocks():
        restored.restore(block)
    with pytest.raises(StateError, match="not declared"):
        restored.read_only("rules")
    restored.declare(RULES)
    assert contents(restored) == {"a": 1, "b": 2}
