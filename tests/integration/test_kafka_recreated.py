"""A topic that is deleted and made anew is another topic: positions in the old one do not count."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka_parts import Reading, source, write
from patience import until

from penstock.errors import SourceError
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


def test_it_is_noticed_when_the_job_goes_on(broker: KafkaBroker, topic: Topic) -> None:
    """Also with discovery off."""
    name = topic()
    write(broker, name, ["old 0", "old 1", "old 2"])
    built = source(broker, name).set_property("partition.discovery.interval.ms", "0").build()
    with Reading(built) as before:
        before.take(3)
        enumerator, splits = before.enumerator.snapshot(), before.reader.snapshot()
    make_anew(broker, name)
    with Reading(built, enumerator, splits) as after:
        assert after.enumerator.ask_again_ms(0) is not None, "a restored reader asks"
        with pytest.raises(SourceError, match=MADE_ANEW.format(name)):
            until(lambda: not after.ask(), "the error", 60)


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
