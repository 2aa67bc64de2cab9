"""What a source commits for its group: with checkpoints, without, and before it is closed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka_parts import Reading, source, write
from patience import PATIENCE, until

from penstock.common import Configuration, WatermarkStrategy
from penstock.connectors.kafka.fetcher import Fetcher
from penstock.connectors.source import Source
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
)
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import PenstockError
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

Topic = Callable[..., str]


def committed(broker: KafkaBroker, group: str, topic: str, partitions: int) -> list[int]:
    """What the group has committed, partition by partition; -1001 is nothing."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    try:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        return [found.offset for found in consumer.committed(asked, timeout=60)]
    finally:
        consumer.close()


def new_group() -> str:
    return f"group-{time.time_ns()}"


def scheduled(broker: KafkaBroker, topic: str, group: str) -> KafkaSource:
    """The source of a job that runs now and then: from where the last run ended to the end."""
    start = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)
    builder = source(broker, topic).set_group_id(group).set_starting_offsets(start)
    return builder.set_bounded("latest").build()


def run(built: Source, checkpoints: bool, function: Any = str) -> list[str]:
    with local_environment(seed=5) as env:
        if checkpoints:
            env.enable_checkpointing(1000)
        stream = env.from_source(built, WatermarkStrategy.no_watermarks(), "payments")
        return sorted(stream.set_parallelism(2).map(function).execute_and_collect())


@pytest.mark.parametrize("checkpoints", [True, False], ids=["checkpoints", "no checkpoints"])
def test_a_scheduled_job_goes_on_where_the_last_run_ended(
    broker: KafkaBroker, topic: Topic, checkpoints: bool
) -> None:
    name, group = topic(3), new_group()
    # The last partition is empty: its end is where it begins.
    write(broker, name, "abc", partition=0)
    write(broker, name, "xy", partition=1)
    assert run(scheduled(broker, name, group), checkpoints) == list("abcxy")
    assert committed(broker, group, name, 3) == [3, 2, 0]
    write(broker, name, "d", partition=0)
    assert run(scheduled(broker, name, group), checkpoints) == ["d"]
    assert committed(broker, group, name, 3) == [4, 2, 0]


def test_a_job_that_fails_without_checkpoints_commits_nothing(
    broker: KafkaBroker, topic: Topic
) -> None:
    name, group = topic(), new_group()
    write(broker, name, "abc")

    def refuse(value: str) -> str:
        if value == "c":
            raise ValueError("no c")
        return value

    with pytest.raises(PenstockError, match="no c"):
        run(scheduled(broker, name, group), False, refuse)
    assert committed(broker, group, name, 1) == [-1001]


def test_the_positions_of_splits_that_ended_before_a_failure_are_committed_after_it(
    broker: KafkaBroker, topic: Topic
) -> None:
    name, group = topic(2), new_group()
    write(broker, name, "abc", partition=0)
    write(broker, name, [str(n) for n in range(3000)], partition=1)
    built = scheduled(broker, name, group)
    with Reading(built) as before:
        before.ask()
        while (name, 0) in before.reader.active_splits():
            before.poll(10)
        splits, handed_out = before.reader.snapshot(), before.enumerator.snapshot()
    with Reading(built, handed_out, splits) as after:
        after.to_end()
        after.reader.covered(after.reader.snapshot())
    assert committed(broker, group, name, 2) == [3, 3000]


def test_a_split_that_ended_is_kept_until_the_group_has_heard_of_it(
    broker: KafkaBroker, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint covers its end, and the slot dies before it has told the group."""
    name, group = topic(2), new_group()
    write(broker, name, "abc", partition=0)
    write(broker, name, [str(n) for n in range(3000)], partition=1)
    built = scheduled(broker, name, group)
    with monkeypatch.context() as dying, Reading(built) as before:
        dying.setattr(Fetcher, "commit", lambda self, offsets: None)
        before.ask()
        while (name, 0) in before.reader.active_splits():
            before.poll(10)
        before.reader.covered(before.reader.snapshot())
        splits, handed_out = before.reader.snapshot(), before.enumerator.snapshot()
    with Reading(built, handed_out, splits) as after:
        after.to_end()
        after.reader.covered(after.reader.snapshot())
        until(lambda: after.reader.snapshot() == [], "the group has heard of all")
    assert committed(broker, group, name, 2) == [3, 3000]


COVERED: set[tuple[tuple[str, int], int]] = set()
"""What the group would have heard, had the slot not died; the program is pickled and finds it."""
DIED: list[str] = []


def die(value: str) -> str:
    if value == "die" and not DIED:
        DIED.append(value)
        raise ValueError("the slot dies")
    return value


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a slot has died nobody tells the group what checkpoints cover."""
    COVERED.clear()
    DIED.clear()
    commit = Fetcher.commit

    def commit_later(fetcher: Fetcher, offsets: dict[tuple[str, int], int]) -> None:
        if DIED:
            commit(fetcher, offsets)
        else:
            COVERED.update(offsets.items())

    monkeypatch.setattr(Fetcher, "commit", commit_later)


@pytest.mark.usefixtures("dying")
def test_the_group_hears_of_a_reader_that_had_ended_before_its_slot_died(
    broker: KafkaBroker, topic: Topic
) -> None:
    name, group = topic(2), new_group()
    write(broker, name, "abc", partition=0)
    write(broker, name, "x", partition=1)
    ends = {TopicPartition(name, 0): 3, TopicPartition(name, 1): 3}
    builder = source(broker, name).set_group_id(group)
    built = builder.set_bounded(KafkaOffsetsInitializer.offsets(ends)).build()
    settings = {
        "execution.checkpointing.interval": "20 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }
    with local_environment(seed=5, configuration=Configuration.from_dict(settings)) as env:
        # Each partition has a reader of its own.
        stream = env.from_source(built, WatermarkStrategy.no_watermarks(), "payments")
        stream.set_parallelism(2).map(die).set_parallelism(2).print()
        job = env.execute_async()
        until(lambda: ((name, 0), 3) in COVERED, "a checkpoint covers the end of one")
        write(broker, name, ["die", "end"], partition=1)
        job.get_job_execution_result().result(PATIENCE)
    assert DIED
    assert committed(broker, group, name, 2) == [3, 3]


@pytest.mark.parametrize("checkpoints", [True, False], ids=["checkpoints", "no checkpoints"])
def test_the_first_of_several_sources_commits_too(
    broker: KafkaBroker, topic: Topic, checkpoints: bool
) -> None:
    """Its readers have read all before a checkpoint covers it, and others take their places."""
    name, group = topic(3), new_group()
    write(broker, name, "abc", partition=0)
    write(broker, name, "xy", partition=1)
    first = scheduled(broker, name, group)
    built = HybridSource.builder(first).add_source(NumberSequenceSource(0, 3)).build()
    assert run(built, checkpoints) == [*"0123", *"abcxy"]
    assert committed(broker, group, name, 3) == [3, 2, 0]


def test_the_last_commit_of_an_idle_source_is_carried_out_before_it_is_closed(
    broker: KafkaBroker, topic: Topic
) -> None:
    name, group = topic(), new_group()
    write(broker, name, "abc")
    with Reading(source(broker, name).set_group_id(group).build()) as reading:
        reading.take(3)
        fetcher = reading.reader._fetching()
        until(lambda: reading.poll() == [] and not fetcher._at_hand, "the thread has the client")
        reading.reader.covered(reading.reader.snapshot())
    assert committed(broker, group, name, 1) == [3]


@pytest.mark.parametrize("pause", [0.0, 0.01, 0.05])
def test_a_later_commit_is_not_carried_out_before_an_earlier_one(
    broker: KafkaBroker, topic: Topic, pause: float
) -> None:
    name, group = topic(), new_group()
    write(broker, name, "abc")
    with Reading(source(broker, name).set_group_id(group).build()) as reading:
        reading.ask()
        [split] = reading.reader.snapshot()
        reading.reader.covered([split])
        # For about so long the client looks for the coordinator of the group.
        time.sleep(pause)
        reading.reader.covered([{**split, "offset": 3}])
    assert committed(broker, group, name, 1) == [3]
