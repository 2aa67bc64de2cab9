"""A broker aborts transactions that a checkpoint covers before they are committed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka_parts import exactly_once, read_all, values
from patience import PATIENCE, until

from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, WatermarkStrategy
from penstock.connectors.kafka.coordinator import Coordinators
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import JobFailedError, LostOutputError
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

NUMBERS = 4_000
TIMEOUT_MS = "10000"
"""The shortest that a sink takes."""


class Delay:
    """Holds up the manifest of one checkpoint until the broker has aborted what it covers.

    That happens with the first one that covers output of both writers and has another before it.
    """

    def __init__(self, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checkpoint = 0
        self.covered: list[dict[str, Any]] = []
        self.committed_before = 0
        """How many of the transactions are committed before the others time out."""
        self.withdrawn: list[int] = []
        self._coordinators = Coordinators({"bootstrap.servers": broker.bootstrap_servers})
        self._others = 0
        complete, withdraw = CheckpointStore.complete, CheckpointStore.withdraw

        def delayed(store: CheckpointStore, metadata: CheckpointMetadata, *more: bool) -> bool:
            covered = list(metadata.committables.get("out", ()))
            if self._others and len(covered) == 2 and not self.checkpoint:
                self.checkpoint, self.covered = metadata.checkpoint, covered
                self._lose()
            self._others += bool(covered)
            return complete(store, metadata, *more)

        def noted(store: CheckpointStore, checkpoint: int) -> None:
            self.withdrawn.append(checkpoint)
            withdraw(store, checkpoint)

        monkeypatch.setattr(CheckpointStore, "complete", delayed)
        monkeypatch.setattr(CheckpointStore, "withdraw", noted)

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
def delay(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Delay(broker, monkeypatch)
    yield made
    made.close()


def run(broker: KafkaBroker, topic: str, folder: Path) -> int:
    """Write all numbers to the topic; the number of restarts."""
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
        source = NumberSequenceSource(0, NUMBERS - 1)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        stream.map(str).sink_to(sink).uid("out")
        job = env.execute_async("numbers")
        job.get_job_execution_result().result(PATIENCE)
        return job.progress().restarts


def written(broker: KafkaBroker, topic: str) -> list[int]:
    return sorted(map(int, values(read_all(broker, topic))))


def test_a_checkpoint_of_which_all_is_gone_is_withdrawn_and_nothing_is_missing(
    broker: KafkaBroker, topic: Callable[..., str], tmp_path: Path, delay: Delay
) -> None:
    name = topic(2)
    restarts = run(broker, name, tmp_path)
    assert delay.withdrawn == [delay.checkpoint]
    assert restarts >= 1
    assert written(broker, name) == list(range(NUMBERS))


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
    assert f"checkpoint {delay.checkpoint} counts them as written" in message
    assert "set execution.checkpointing.lost-output to skip" in message
    assert re.search(r"or to repeat, to go on from checkpoint \d+", message)
    assert delay.withdrawn == []
    assert written(broker, name) == sorted(set(written(broker, name))), "nothing came twice"
