"""A broker aborts transactions that a checkpoint covers before they are committed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_parts import exactly_once, read_all, values
from patience import PATIENCE, until

from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, WatermarkStrategy
from penstock.connectors.kafka.coordinator import Coordinators
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from penstock.errors import JobFailedError, LostOutputError
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

TIMEOUT_MS = "10000"
"""The shortest that a sink takes."""

LOST: list[int] = []
"""The checkpoint whose transactions are gone. The program is pickled and finds it here."""
ENDS: dict[str, int] = {}
"""How many numbers each split has in the end."""


class Numbers(Source):
    """Two splits of numbers, which go on until there is a checkpoint whose output is gone."""

    def create_enumerator(self, context: EnumeratorContext, restored: Any) -> SplitEnumerator:
        return QueueEnumerator([["a", 0], ["b", 0]] if restored is None else restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return NumbersReader()


class NumbersReader(SourceReader):
    def __init__(self) -> None:
        self.splits: list[Any] = []

    def add_splits(self, splits: list[Any]) -> None:
        self.splits += splits

    def poll(self, limit: int) -> list[Any] | None:
        if not self.splits:
            return None
        name, number = self.splits.pop(0)
        if LOST and number >= 100:
            ENDS[name] = number
            return []
        self.splits.append([name, number + 1])
        return [f"{name} {number}"]

    def next_poll_ms(self) -> int:
        return 0

    def snapshot(self) -> list[Any]:
        return list(self.splits)


class Delay:
    """Holds up the manifest of one checkpoint until the broker has aborted what it covers.

    That happens with the first one that covers new output of both writers and has another before.
    """

    def __init__(self, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.covered: list[dict[str, Any]] = []
        self.committed_before = 0
        """How many of the transactions are committed before the others time out."""
        self.withdrawn: list[int] = []
        self._coordinators = Coordinators({"bootstrap.servers": broker.bootstrap_servers})
        self._others = 0
        complete, withdraw = CheckpointStore.complete, CheckpointStore.withdraw

        def delayed(store: CheckpointStore, metadata: CheckpointMetadata, *more: bool) -> bool:
            covered = list(metadata.committables.get("out", ()))
            if self._others and not LOST and self._is_new(covered):
                self.covered = covered
                self._lose()
                LOST.append(metadata.checkpoint)
            self._others += bool(covered)
            return complete(store, metadata, *more)

        def noted(store: CheckpointStore, checkpoint: int) -> None:
            self.withdrawn.append(checkpoint)
            withdraw(store, checkpoint)

        monkeypatch.setattr(CheckpointStore, "complete", delayed)
        monkeypatch.setattr(CheckpointStore, "withdraw", noted)

    def _is_new(self, covered: list[dict[str, Any]]) -> bool:
        found = self._coordinators.describe([one["id"] for one in covered]).values()
        return [transaction.state for transaction in found] == ["Ongoing", "Ongoing"]

    def _lose(self) -> None:
        first, rest = self.committed_before, self.covered[self.committed_before :]
        for one in self.covered[:first]:
            self._coordinators.end(one["id"], one["producer_id"], one["epoch"], commit=True)
        names = [one["id"] for one in rest]

        def aborted() -> bool:
            found = self._coordinators.describe(names).values()
            return all("Abort" in transaction.state for transaction in found)

        until(aborted, "the broker aborts them")

    def close(self) -> None:
        self._coordinators.close()


@pytest.fixture
def delay(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Delay]:
    LOST.clear()
    ENDS.clear()
    made = Delay(broker, monkeypatch)
    yield made
    made.close()


def run(broker: KafkaBroker, topic: str, folder: Path) -> int:
    """Write numbers to the topic; the number of restarts."""
    settings = {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }
    sink = exactly_once(broker, topic, topic, transaction_timeout_ms=TIMEOUT_MS)
    with local_environment(seed=3, configuration=Configuration.from_dict(settings)) as env:
        env.set_parallelism(2)
        stream = env.from_source(Numbers(), WatermarkStrategy.no_watermarks(), "numbers")
        stream.sink_to(sink).uid("out")
        job = env.execute_async("numbers")
        job.get_job_execution_result().result(PATIENCE)
        return job.progress().restarts


def written(broker: KafkaBroker, topic: str) -> list[str]:
    return sorted(values(read_all(broker, topic)))


def test_a_checkpoint_of_which_all_is_gone_is_withdrawn_and_nothing_is_missing(
    broker: KafkaBroker, topic: Callable[..., str], tmp_path: Path, delay: Delay
) -> None:
    name = topic(2)
    restarts = run(broker, name, tmp_path)
    assert delay.withdrawn == LOST and len(LOST) == 1
    assert restarts >= 1
    expected = [f"{split} {number}" for split, end in ENDS.items() for number in range(end)]
    assert written(broker, name) == sorted(expected)


def test_a_checkpoint_of_which_some_is_visible_stops_the_job_once(
    broker: KafkaBroker, topic: Callable[..., str], tmp_path: Path, delay: Delay
) -> None:
    name = topic(2)
    delay.committed_before = 1
    with pytest.raises(JobFailedError) as failed:
        run(broker, name, tmp_path)
    assert isinstance(failed.value.__cause__, LostOutputError)
    message = str(failed.value)
    [_, lost] = delay.covered
    assert lost["id"] in message
    assert f"checkpoint {LOST[0]} counts them as written" in message
    assert "set execution.checkpointing.lost-output to skip" in message
    assert re.search(r"or to repeat, to go on from checkpoint \d+", message)
    assert delay.withdrawn == []
    assert written(broker, name) == sorted(set(written(broker, name))), "nothing came twice"
