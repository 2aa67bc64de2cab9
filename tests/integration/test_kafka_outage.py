"""A broker that is away: longer than deliveries wait, while reading, between prepare and commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka_parts import Reading, exactly_once, read_all, sink, source, values, write
from patience import PATIENCE, until
from sink_parts import begun, open_writer, put

from penstock.errors import SinkError
from penstock.testing.kafka import KafkaBroker, kafka_broker

# One process starts the broker of these tests.
pytestmark = [pytest.mark.full("Kafka"), pytest.mark.xdist_group("outage")]

Topic = Callable[..., str]


@pytest.fixture(scope="module")
def one_broker() -> Iterator[KafkaBroker]:
    """One that only these tests kill."""
    with kafka_broker() as broker:
        yield broker


def test_deliveries_that_waited_too_long_fail_and_what_was_committed_stays(
    broker: KafkaBroker, topic: Topic
) -> None:
    name, prefix = topic(), "outage"
    built = exactly_once(broker, name, prefix, message_timeout_ms="2000")
    end, writer = begun(built)
    put(writer, "a")
    end.commit(writer.prepare_commit()())
    until(writer.has_room, "room")
    broker.kill()
    writer.write("lost")
    with pytest.raises(SinkError, match=name):
        writer.prepare_commit()()
    writer.close()
    broker.start()
    # As a restart does: nothing of the old attempt, and then on.
    end.abort_others([])
    writer = open_writer(built, attempt=2)
    put(writer, "again")
    end.commit(writer.prepare_commit()())
    assert values(read_all(broker, name)) == ["a", "again"]
    writer.close()
    end.close()


def test_without_transactions_too(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    writer = open_writer(sink(broker, name, message_timeout_ms="1500"))
    put(writer, "a")
    writer.prepare_commit()()
    broker.kill()
    writer.write("b")
    with pytest.raises(SinkError, match=name):
        writer.prepare_commit()()
    writer.close()
    broker.start()
    assert values(read_all(broker, name)) == ["a"]


def test_what_was_prepared_is_committed_when_the_broker_is_back(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic()
    built = exactly_once(broker, name, name)
    end, writer = begun(built)
    put(writer, "a", "b")
    prepared = writer.prepare_commit()()
    broker.kill()
    with ThreadPoolExecutor(1) as pool:
        committed = pool.submit(end.commit, prepared)
        time.sleep(1)
        assert not committed.done()
        broker.start()
        committed.result(PATIENCE)
    assert values(read_all(broker, name)) == ["a", "b"]
    writer.close()
    end.close()


def test_a_reader_goes_on_when_the_broker_is_back(broker: KafkaBroker, topic: Topic) -> None:
    name = topic(2)
    write(broker, name, [{"value": str(n), "partition": n % 2} for n in range(10)])
    with Reading(source(broker, name).build()) as reading:
        assert sorted(map(int, reading.take(10))) == list(range(10))
        broker.kill()
        for _ in range(20):
            assert reading.poll() == []
        broker.start()
        write(broker, name, [{"value": str(n), "partition": n % 2} for n in range(10, 20)])
        assert sorted(map(int, reading.take(10))) == list(range(10, 20))
