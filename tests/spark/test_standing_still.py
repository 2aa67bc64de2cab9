"""Code of the user holds the driver up for longer than `heartbeat.timeout`: nobody dies of that."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from job_parts import environment
from patience import until

from penstock.common import JobClient, WatermarkStrategy
from penstock.connectors import Source, SourceReader, SplitEnumerator

pytestmark = pytest.mark.usefixtures("session")

# Functions of this module travel by value: slots cannot import a test module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

TIMEOUT = {"heartbeat.timeout": "5 s"}


class Gated(Source):
    """One split, which is found when the gate, a file, is there."""

    def __init__(self, gate: Path, looks: bool) -> None:
        self.gate, self.looks = gate, looks

    def create_enumerator(self, context: Any, restored: Any) -> SplitEnumerator:
        return Looking(self.gate) if self.looks else Blocking(self.gate)

    def create_reader(self, context: Any) -> SourceReader:
        return Reader()


class Blocking(SplitEnumerator):
    """Does in the JobMaster's thread what it should not."""

    def __init__(self, gate: Path) -> None:
        self.gate = gate
        self.left = ["a"]

    def pass_the_gate(self) -> None:
        while not self.gate.exists():
            time.sleep(0.01)

    def next_splits(self, subtask: int) -> list[Any] | None:
        self.pass_the_gate()
        return [self.left.pop()] if self.left else None

    def snapshot(self) -> Any:
        return self.left


class Looking(Blocking):
    """Does it where it belongs."""

    def must_look(self, subtask: int) -> bool:
        return True

    def look(self) -> None:
        self.pass_the_gate()

    def next_splits(self, subtask: int) -> list[Any] | None:
        assert self.gate.exists()
        return super().next_splits(subtask)


class Reader(SourceReader):
    def __init__(self) -> None:
        self.left: list[Any] = []

    def add_splits(self, splits: list[Any]) -> None:
        self.left += splits

    def poll(self, limit: int) -> list[Any] | None:
        return [self.left.pop()] if self.left else None

    def snapshot(self) -> list[Any]:
        return self.left


def idle_s(job: JobClient) -> float:
    return max((m.idle_ns for m in job.progress().metrics.values()), default=0) / 1e9


def test_a_look_for_splits_may_take_its_time(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    source = Gated(gate, looks=True)
    stream = environment(2, settings=TIMEOUT).from_source(
        source, WatermarkStrategy.no_watermarks(), "gated"
    )
    with stream.execute_and_collect() as results:
        job = results.job_client
        try:
            until(lambda: idle_s(job) > 11, "that slots have waited twice heartbeat.timeout")
        finally:
            gate.touch()
        assert list(results) == ["a"]
        assert job.progress().restarts == 0


def test_a_jobmaster_that_stands_still_is_reported_and_keeps_its_slots(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def reports() -> list[str]:
        texts = [record.getMessage() for record in caplog.records]
        return [text for text in texts if "has stood still" in text]

    gate = tmp_path / "gate"
    source = Gated(gate, looks=False)
    stream = environment(2, settings=TIMEOUT).from_source(
        source, WatermarkStrategy.no_watermarks(), "gated"
    )
    with stream.execute_and_collect() as results:
        try:
            # After half the time, then the whole of it, then twice that.
            until(lambda: len(reports()) >= 3, "that it stood for longer than heartbeat.timeout")
        finally:
            gate.touch()
        assert "in pass_the_gate" in reports()[0]
        assert list(results) == ["a"]
        assert results.job_client.progress().restarts == 0
