"""Values for the client are held back until they can no longer be taken back."""

from __future__ import annotations

import pytest

from penstock.jobmanager.results import ResultGate
from penstock.network.messages import Emitted


@pytest.fixture
def delivered():
    return []


@pytest.fixture
def gate(delivered):
    return ResultGate(lambda uid, subtask, values: delivered.append((uid, subtask, values)))


def emitted(epoch, *values, uid="u", subtask=3):
    return Emitted(1, (7, subtask), uid, epoch, list(values))


def test_what_needs_no_checkpoint_goes_through(gate, delivered):
    gate.emitted(emitted(0, "a"))
    assert delivered == [("u", 3, ["a"])]


def test_the_rest_waits_for_the_checkpoint_that_covers_it(gate, delivered):
    gate.emitted(emitted(2, "b"))
    gate.emitted(emitted(1, "a"))
    gate.emitted(emitted(3, "c"))
    assert delivered == []
    gate.completed(1)
    assert [values for _, _, values in delivered] == [["a"]]
    gate.completed(3)
    assert [values for _, _, values in delivered] == [["a"], ["b"], ["c"]]
    gate.completed(3)
    assert len(delivered) == 3


def test_completing_a_later_checkpoint_covers_the_aborted_ones(gate, delivered):
    gate.emitted(emitted(1, "a"))
    gate.completed(5)
    assert [values for _, _, values in delivered] == [["a"]]


def test_the_order_of_one_subtask_is_kept(gate, delivered):
    for n in range(10):
        gate.emitted(emitted(1 + n // 3, n))
    gate.completed(10)
    assert [values for _, _, values in delivered] == [[n] for n in range(10)]


def test_a_restart_drops_what_will_be_sent_again(gate, delivered):
    gate.emitted(emitted(1, "covered"))
    gate.emitted(emitted(2, "again"))
    gate.completed(1)
    gate.forget()
    gate.completed(9)
    assert [values for _, _, values in delivered] == [["covered"]]


def test_values_of_a_new_attempt_are_not_covered_by_what_is_complete(gate, delivered):
    """A new attempt numbers from one until it has seen a checkpoint of its own."""
    gate.completed(5)
    gate.forget()
    gate.emitted(emitted(1, "new"))
    gate.completed(5)
    assert delivered == []
    gate.completed(6)
    assert [values for _, _, values in delivered] == [["new"]]
