"""Storage that suffers: what the simulator's file system does to those who use it."""

from __future__ import annotations

import random

import pytest

from penstock.checkpoint.store import CheckpointStore
from penstock.errors import StorageError
from penstock.testing.faults import FaultRates, FaultyFileSystem


@pytest.fixture
def storage(request):
    made = FaultyFileSystem(random.Random(1), request.param)
    made.armed = True
    yield made
    made.forget()


TWICE = FaultRates(twice=1.0, budget=100)


@pytest.mark.parametrize("storage", [TWICE], indirect=True)
def test_what_is_done_twice_has_the_second_answer(storage):
    assert not storage.create("/a", b"1"), "by then it exists"
    assert storage.files == {"/a": b"1"}
    with pytest.raises(StorageError) as renamed:
        storage.rename("/a", "/b")
    assert isinstance(renamed.value.__cause__, FileNotFoundError)
    assert storage.files == {"/b": b"1"}
    storage.delete("/b")
    assert storage.files == {}
    assert storage.budget.log == ["twice: create /a", "twice: rename /a", "twice: delete /b"]


@pytest.mark.parametrize("storage", [TWICE], indirect=True)
def test_a_driver_on_storage_that_answers_twice_is_not_mistaken(storage):
    """Its own claim, start, tombstone and end are no other driver's."""
    store = CheckpointStore(f"{storage.uri}/checkpoints", "job")
    storage.budget.left = 2
    store = store.claim()
    assert store.generation > 1, "of the first number nobody can say whose it is"
    storage.budget.left = 100
    store.note_start(0)
    assert store.abandon(3)
    store.check_current()
    store.discard_all()
    marks = [path for path in storage.files if "generation-" not in path]
    assert marks == []


@pytest.mark.parametrize("storage", [FaultRates(storage_error=1.0, budget=30)], indirect=True)
def test_an_operation_that_fails_may_have_been_done_or_be_done_later(storage):
    later = []
    storage.later = later.append
    for number in range(30):
        with pytest.raises(StorageError, match="did not answer"):
            storage.create(f"/{number}", b"")
    assert storage.budget.left == 0
    assert storage.files and later
    assert len(storage.files) + len(later) < 30
    for act in later:
        act()
    assert storage.create("/last", b""), "and then everything goes well"
