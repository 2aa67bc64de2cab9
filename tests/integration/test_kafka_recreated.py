"""A topic that is deleted and made anew is another topic: positions in the old one do not count."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import TopicPartition
from kafka_parts import Reading, source, write
from patience import until

from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSourceBuilder
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import JobFailedError, SourceError, SourceRefusedError
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

Topic = Callable[..., str]

MADE_ANEW = r"topic {} was deleted and made anew: its id was [\w-]{{22}} and is [\w-]{{22}}"


def make_anew(broker: KafkaBroker, name: str) -> None:
    """With more records than a reader had read of the old one."""
    broker.delete_topic(name)
    until(lambda: name not in broker.topics(), "the deletion")
    broker.create_topic(name)
    write(broker, name, [f"new {n}" for n in range(6)])


def test_it_is_noticed_while_the_job_runs(
    broker: KafkaBroker, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.connectors.kafka.enumerator._IDS_MS", 100)
    name = topic()
    write(broker, name, ["old 0", "old 1", "old 2"])
    with Reading(source(broker, name).build()) as reading:
        assert reading.take(3) == ["old 0", "old 1", "old 2"]
        make_anew(broker, name)
        with pytest.raises(SourceError, match=MADE_ANEW.format(name)):
            until(lambda: not reading.ask(), "the error", 60)


def with_an_end(builder: KafkaSourceBuilder, end: int, *topics: str) -> KafkaSourceBuilder:
    ends = {TopicPartition(name, 0): end for name in topics}
    return builder.set_bounded(KafkaOffsetsInitializer.offsets(ends))


@pytest.mark.parametrize("kind", ["with an end", "without discovery", "before another source"])
def test_a_job_whose_readers_have_all_splits_notices_it(
    broker: KafkaBroker, topic: Topic, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Its readers do not ask for more.

    The old topic is empty: its one position is there in the new one too, so that nothing but the
    ids tells the two apart.
    """
    monkeypatch.setattr("penstock.connectors.kafka.enumerator._IDS_MS", 100)
    name, other = topic(), topic()
    write(broker, other, ["a", "b", "c"])
    builder = source(broker, name, other)
    if kind == "without discovery":
        builder.set_property("partition.discovery.interval.ms", "0")
    else:
        with_an_end(builder, 1_000, name, other)
    built = builder.build()
    if kind == "before another source":
        built = HybridSource.builder(built).add_source(NumberSequenceSource(0, 9)).build()
    with local_environment(seed=1) as env:
        stream = env.from_source(built, WatermarkStrategy.no_watermarks(), "topic")
        results = stream.set_parallelism(1).execute_and_collect()
        assert [next(results) for _ in range(3)] == ["a", "b", "c"]
        make_anew(broker, name)
        with pytest.raises(JobFailedError, match=MADE_ANEW.format(name)):
            list(results)


def test_a_source_that_comes_to_its_end_looks_once_more(broker: KafkaBroker, topic: Topic) -> None:
    """However short the time since the last look."""
    name = topic()
    with Reading(with_an_end(source(broker, name), 6, name).build()) as reading:
        reading.ask()
        make_anew(broker, name)
        with pytest.raises(SourceError, match=MADE_ANEW.format(name)):
            reading.to_end()


def test_it_is_noticed_when_the_job_goes_on(broker: KafkaBroker, topic: Topic) -> None:
    """Also with discovery off."""
    name = topic()
    write(broker, name, ["old 0", "old 1", "old 2"])
    built = source(broker, name).set_property("partition.discovery.interval.ms", "0").build()
    with Reading(built) as before:
        before.take(3)
        enumerator, splits = before.enumerator.snapshot(), before.reader.snapshot()
    make_anew(broker, name)
    with pytest.raises(SourceRefusedError, match=MADE_ANEW.format(name)):
        Reading(built, enumerator, splits)


def test_a_job_that_cannot_go_on_in_the_new_topic_ends(
    broker: KafkaBroker, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every restart would find the same."""
    monkeypatch.setattr("penstock.connectors.kafka.enumerator._IDS_MS", 100)
    name = topic()
    write(broker, name, ["old 0", "old 1", "old 2"])
    restarts = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "execution.checkpointing.interval": "20 ms",
    }
    with local_environment(seed=1, configuration=Configuration.from_dict(restarts)) as env:
        built = source(broker, name).build()
        stream = env.from_source(built, WatermarkStrategy.no_watermarks(), "topic")
        # Results are seen when a checkpoint covers them.
        results = stream.set_parallelism(1).execute_and_collect()
        assert [next(results) for _ in range(3)] == ["old 0", "old 1", "old 2"]
        make_anew(broker, name)
        with pytest.raises(JobFailedError, match=MADE_ANEW.format(name)) as caught:
            list(results)
    assert isinstance(caught.value.__cause__, SourceRefusedError)


def test_it_is_read_from_its_beginning_on_request(
    broker: KafkaBroker, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.connectors.kafka.enumerator._IDS_MS", 100)
    name, other = topic(), topic()
    write(broker, name, ["old 0", "old 1", "old 2"])
    write(broker, other, ["a", "b"])
    built = source(broker, name, other).read_recreated_topics().build()
    with Reading(built) as before:
        before.take(5)
        enumerator, splits = before.enumerator.snapshot(), before.reader.snapshot()
        make_anew(broker, name)
        with pytest.raises(SourceError, match=f"{MADE_ANEW.format(name)}; the next attempt reads"):
            until(lambda: not before.ask(), "the error", 60)
    write(broker, other, "c")
    with Reading(built, enumerator, splits) as after:
        assert sorted(after.take(7)) == ["c", *(f"new {n}" for n in range(6))]
        until(lambda: after.ask() and after.enumerator.snapshot()["ids"] != enumerator["ids"], "it")
        assert after.enumerator.snapshot()["ids"].keys() == {name, other}
