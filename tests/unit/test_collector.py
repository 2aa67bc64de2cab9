"""The garbage collector of a slot's process: what it looks into, and what goes when."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from penstock.runtime.collector import Collector


class Attempt:
    """It refers to itself, as the parts of a real one refer to each other."""

    def __init__(self) -> None:
        self.state = {key: [key] for key in range(10_000)}
        self.itself = self


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def watched(attempt: Attempt) -> bool:
    """Whether a collection goes through the state of `attempt`."""
    wanted = {id(value) for value in attempt.state.values()}
    return any(id(known) in wanted for known in gc.get_objects())


def test_what_an_attempt_was_restored_with_is_not_looked_into(collector: Collector) -> None:
    attempt = Attempt()
    assert watched(attempt)
    collector.attend(attempt)
    assert not watched(attempt)
    attempt.state[0] = [0]
    collector.attend(attempt)
    assert watched(attempt), "what came later is"


def test_nothing_of_an_attempt_that_is_over_is_left_for_the_next(collector: Collector) -> None:
    attempt: Attempt | None = Attempt()
    ended = weakref.ref(attempt)
    collector.attend(attempt)
    # The one reference that the collector has compares attempts, and is let go by the next call.
    attempt = None
    collector.attend(None)
    assert ended() is None


def test_the_collector_is_as_before_in_the_end() -> None:
    thresholds = gc.get_threshold()
    collector = Collector()
    attempt = Attempt()
    collector.attend(attempt)
    assert gc.get_freeze_count() > 10_000
    collector.close()
    assert (gc.get_threshold(), gc.get_freeze_count()) == (thresholds, 0)
    assert watched(attempt)
