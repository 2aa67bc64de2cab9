"""The enumerators of an attempt are closed when the attempt is over, however it ended."""

from __future__ import annotations

import pytest

from penstock.common import Configuration, WatermarkStrategy
from penstock.connectors.source import QueueEnumerator, Source, SourceReader
from penstock.errors import JobFailedError
from penstock.testing import local_environment


class Enumerator(QueueEnumerator):
    """Notes in `log` that it was made and that it was closed."""

    log: list[str] = []

    def __init__(self):
        super().__init__([1, 2, 3])
        self.log.append("made")

    def close(self):
        self.log.append("closed")


class Reader(SourceReader):
    """A split is one record."""

    def __init__(self):
        self.left = []

    def add_splits(self, splits):
        self.left += splits

    def poll(self, limit):
        values, self.left = self.left[:limit], self.left[limit:]
        return values or None

    def snapshot(self):
        return self.left


class Numbers(Source):
    def create_enumerator(self, context, restored):
        return Enumerator()

    def create_reader(self, context):
        return Reader()


RESTART_ONCE = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": 1,
}


def run(function):
    Enumerator.log = []
    with local_environment(configuration=Configuration.from_dict(RESTART_ONCE)) as env:
        stream = env.from_source(Numbers(), WatermarkStrategy.no_watermarks(), "numbers")
        stream.map(function).print()
        env.execute()


def test_after_a_job_that_finished():
    run(str)
    assert Enumerator.log == ["made", "closed"]


def test_before_the_next_attempt_has_its_own():
    def fail(value):
        raise ValueError("no")

    with pytest.raises(JobFailedError):
        run(fail)
    assert Enumerator.log == ["made", "closed"] * 2


class Unreachable(Numbers):
    def create_enumerator(self, context, restored):
        raise ConnectionError("the server does not answer")


def test_when_another_one_cannot_be_made():
    Enumerator.log = []
    with local_environment(configuration=Configuration.from_dict(RESTART_ONCE)) as env:
        for source in (Numbers(), Unreachable(), Numbers()):
            env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").print()
        with pytest.raises(JobFailedError, match="the server does not answer"):
            env.execute()
    assert Enumerator.log == ["made", "closed"] * 2
