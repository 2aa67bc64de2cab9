"""A source whose server refuses it for good: the job fails with that error, at once."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Configuration, WatermarkStrategy
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from penstock.errors import JobFailedError, SourceError, SourceRefusedError
from penstock.testing import local_environment

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "10",
    "restart-strategy.fixed-delay.delay": "10 ms",
}
_raised: list[str] = []


class Refused(Source):
    """Raises in one place; the job is pickled, so that calls are counted outside of it."""

    def __init__(self, place: str, error: type[SourceError]) -> None:
        self.place = place
        self.error = error

    def at(self, place: str) -> None:
        if place == self.place:
            _raised.append(place)
            raise self.error(f"not in {place}")

    def create_enumerator(self, context: EnumeratorContext, restored: Any) -> SplitEnumerator:
        self.at("create_enumerator")
        return RefusedEnumerator(self)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return RefusedReader(self)


class RefusedEnumerator(QueueEnumerator):
    def __init__(self, source: Refused) -> None:
        super().__init__(["a split"])
        self.source = source

    def must_look(self, subtask: int) -> bool:
        return True

    def look(self) -> None:
        self.source.at("look")

    def next_splits(self, subtask: int) -> list[Any] | None:
        self.source.at("next_splits")
        return super().next_splits(subtask)

    def check(self) -> None:
        if not self.snapshot():
            self.source.at("check")


class RefusedReader(SourceReader):
    """Never comes to an end by itself."""

    def __init__(self, source: Refused) -> None:
        self.source = source
        self.splits: list[Any] = []

    def open(self) -> None:
        self.source.at("open")

    def add_splits(self, splits: list[Any]) -> None:
        self.splits += splits

    def poll(self, limit: int) -> list[Any] | None:
        self.source.at("poll")
        return [] if self.splits else None

    def snapshot(self) -> list[Any]:
        return self.splits


PLACES = ["create_enumerator", "look", "next_splits", "check", "open", "poll"]


def fail(place: str, error: type[SourceError]) -> tuple[BaseException, int]:
    """How a job fails whose source raises in a place, and how often that was tried."""
    _raised.clear()
    with local_environment(1, configuration=Configuration.from_dict(RESTARTS)) as env:
        source = Refused(place, error)
        env.from_source(source, WatermarkStrategy.no_watermarks(), "in").set_parallelism(1).print()
        with pytest.raises(JobFailedError) as caught:
            env.execute()
    assert caught.value.__cause__ is not None
    return caught.value.__cause__, len(_raised)


@pytest.mark.parametrize("place", PLACES)
def test_what_is_refused_for_good_is_not_tried_again(place: str) -> None:
    cause, tried = fail(place, SourceRefusedError)
    assert isinstance(cause, SourceRefusedError) and f"not in {place}" in str(cause)
    assert tried == 1


@pytest.mark.parametrize("place", PLACES)
def test_what_may_pass_is_tried_again(place: str) -> None:
    cause, tried = fail(place, SourceError)
    assert isinstance(cause, SourceError) and f"not in {place}" in str(cause)
    assert tried == 11
