"""A sink whose server refuses it for good: the job fails with that error, at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.connectors.sink import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from penstock.errors import JobFailedError, SinkError, SinkRefusedError
from penstock.testing import local_environment

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "10",
    "restart-strategy.fixed-delay.delay": "10 ms",
}
_raised: list[str] = []


class Refusing(Sink):
    """Raises in one place; the job is pickled, so that calls are counted outside of it."""

    def __init__(self, place: str, error: type[SinkError]) -> None:
        self.place = place
        self.error = error

    def at(self, place: str) -> None:
        if place == self.place:
            _raised.append(place)
            raise self.error(f"not in {place}")

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return RefusingWriter(self)

    def create_committer(self, context: CommitterContext) -> Committer:
        return RefusingCommitter(self)


class RefusingWriter(SinkWriter):
    def __init__(self, sink: Refusing) -> None:
        self.sink = sink

    def open(self) -> None:
        self.sink.at("open")

    def write(self, value: Any) -> None:
        self.sink.at("write")

    def prepare_commit(self) -> Callable[[], list[Any]]:
        def finish() -> list[Any]:
            self.sink.at("finish")
            return [{"some": "output"}]

        return finish


class RefusingCommitter(Committer):
    def __init__(self, sink: Refusing) -> None:
        self.sink = sink

    def commit(self, committables: list[Any]) -> None:
        self.sink.at("commit")

    def abort_others(self, keep: list[Any]) -> None:
        self.sink.at("abort")


def fail(place: str, error: type[SinkError]) -> tuple[BaseException, int]:
    """How a job fails whose sink raises in a place, and how often that was tried."""
    _raised.clear()
    with local_environment(1, configuration=Configuration.from_dict(RESTARTS)) as env:
        env.enable_checkpointing(1_000)
        env.from_collection([1]).sink_to(Refusing(place, error)).set_parallelism(1)
        with pytest.raises(JobFailedError) as caught:
            env.execute()
    assert caught.value.__cause__ is not None
    return caught.value.__cause__, len(_raised)


PLACES = ["open", "write", "finish", "abort", "commit"]


@pytest.mark.parametrize("place", PLACES)
def test_what_is_refused_for_good_is_not_tried_again(place: str) -> None:
    cause, tried = fail(place, SinkRefusedError)
    assert isinstance(cause, SinkRefusedError) and f"not in {place}" in str(cause)
    # A job that ends settles its output: committing and aborting are tried once more for that, and
    # a commit also when the next attempt looks for where to begin.
    assert tried <= {"abort": 2, "commit": 3}.get(place, 1)


@pytest.mark.parametrize("place", PLACES)
def test_what_may_pass_is_tried_again(place: str) -> None:
    cause, tried = fail(place, SinkError)
    assert isinstance(cause, SinkError) and f"not in {place}" in str(cause)
    assert tried >= 11
