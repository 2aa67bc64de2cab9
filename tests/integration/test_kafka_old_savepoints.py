"""Savepoints that are older than what a broker remembers of their transactions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_parts import exactly_once, read_all, values
from patience import PATIENCE, until

from penstock.checkpoint.savepoints import open_snapshot
from penstock.common import Configuration, WatermarkStrategy
from penstock.connectors.kafka.coordinator import Coordinators
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import JobFailedError
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker, kafka_broker

pytestmark = pytest.mark.full("Kafka")

NUMBERS = 2_000
LONG, SHORT = "604800000", "1000"


@pytest.fixture
def forgetful() -> Iterator[KafkaBroker]:
    """A broker that is told to forget in the middle of the test."""
    cleanup = {"transaction.remove.expired.transaction.cleanup.interval.ms": "200"}
    with kafka_broker(cleanup) as broker:
        yield broker


def forget(broker: KafkaBroker, prefix: str) -> None:
    """Let the broker forget every transaction of the prefix that is over."""
    broker.kill()
    broker.configure(transactional_id_expiration_ms=SHORT)
    broker.start()
    coordinators = Coordinators({"bootstrap.servers": broker.bootstrap_servers})
    until(lambda: not coordinators.with_prefix(prefix), "it forgets")
    coordinators.close()
    broker.kill()
    broker.configure(transactional_id_expiration_ms=LONG)
    broker.start()


def run(
    broker: KafkaBroker, topic: str, folder: Path, restore: str | None, stops: bool
) -> tuple[str | None, int]:
    """Write numbers to the topic, all of them or until a stop; the savepoint, and restarts.

    A job that is to be stopped waits in the middle for that. It has no checkpoint before, which
    would cover the numbers that the savepoint is to commit.
    """
    reached, asked = folder / "reached", folder / "asked"
    folder.mkdir()

    def text(number: int) -> str:
        if stops and number == NUMBERS // 2:
            reached.touch()
            until(asked.exists, "the stop is asked for")
        return str(number)

    settings = {
        "execution.checkpointing.interval": "10 min" if stops else "50 ms",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "5",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }
    if restore is not None:
        settings["execution.state-recovery.path"] = restore
    with local_environment(seed=1, configuration=Configuration.from_dict(settings)) as env:
        env.set_parallelism(1)
        source = NumberSequenceSource(0, NUMBERS - 1)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("in")
        stream.map(text).uid("text").sink_to(exactly_once(broker, topic, topic)).uid("out")
        job = env.execute_async("numbers")
        path = None
        try:
            if stops:
                until(reached.exists, "the middle")
                savepoint = job.stop_with_savepoint(False, f"file://{folder}/savepoints")
                asked.touch()
                path = savepoint.result(PATIENCE)
            job.get_job_execution_result().result(PATIENCE)
        finally:
            restarts = job.progress().restarts
        return path, restarts


@pytest.mark.parametrize("marked", [True, False])
def test_a_savepoint_that_the_broker_has_forgotten(
    forgetful: KafkaBroker, tmp_path: Path, marked: bool
) -> None:
    topic = "forgotten"
    forgetful.create_topic(topic)
    path, _ = run(forgetful, topic, tmp_path / "first", None, stops=True)
    assert path is not None
    assert open_snapshot(path).metadata.committables["out"], "there is something to commit"
    before = values(read_all(forgetful, topic))
    assert 0 < len(before) < NUMBERS, "the job was stopped before its end"
    forget(forgetful, topic)

    def go_on() -> int:
        return run(forgetful, topic, tmp_path / "second", path, stops=False)[1]

    if marked:
        assert go_on() == 0, "it begins at once"
        assert values(read_all(forgetful, topic)) == [str(n) for n in range(NUMBERS)]
        return
    (Path(path.removeprefix("file://")) / "_committed").unlink()
    with pytest.raises(JobFailedError, match=r"set execution\.checkpointing\.lost-output to skip"):
        go_on()
    assert values(read_all(forgetful, topic)) == before
