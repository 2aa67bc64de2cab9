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
    with collector.quiet():
        assert not gc.isenabled()
        attempt = Attempt()
        assert watched(attempt)
    assert gc.isenabled()
    assert not watched(attempt)
    attempt.state[0] = [0]
    assert watched(attempt), "what came later is"


def test_what_an_attempt_leaves_can_be_collected(collector: Collector) -> None:
    with collector.quiet():
        attempt: Attempt | None = Attempt()
    ended = weakref.ref(attempt)
    attempt = None
    gc.collect()
    assert ended() is not None, "nobody looks for it"
    collector.attempt_ended()
    gc.collect()
    assert ended() is None


def test_the_collector_is_as_before_in_the_end() -> None:
    thresholds = gc.get_threshold()
    collector = Collector()
    with collector.quiet():
        attempt = Attempt()
    assert gc.get_freeze_count() > 10_000
    collector.close()
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0
    assert attempt.state
