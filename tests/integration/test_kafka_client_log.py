"""A broker that is away: the client's log is heard, in measure, and the source says it stands."""

from __future__ import annotations

import logging

import pytest
from kafka_parts import Reading, source, write
from patience import until

from penstock.connectors.kafka.client_log import OncePerMinute
from penstock.testing.kafka import kafka_broker

pytestmark = pytest.mark.full("Kafka")


def test_a_source_whose_broker_is_away_says_so_and_goes_on_later(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.connectors.kafka.standstill._PATIENCE_SECONDS", 1.0)
    client = logging.getLogger("penstock.kafka.client")
    [limit] = client.filters
    # What other tests let pass is not held back here.
    monkeypatch.setattr(client, "filters", [OncePerMinute()])
    assert isinstance(limit, OncePerMinute)
    assert not client.handlers, "a handler of ours would keep Python from printing warnings"

    def heard(logger: str, text: str) -> list[str]:
        return [r.getMessage() for r in caplog.records if r.name == logger and text in r.message]

    with kafka_broker() as broker:
        broker.create_topic("payments")
        write(broker, "payments", "a")
        with Reading(source(broker, "payments").build()) as reading:
            assert reading.take(1) == ["a"]
            broker.kill()

            def told() -> bool:
                assert reading.poll() == []
                return bool(heard("penstock.kafka", "no record came for"))

            until(told, "the warning")
            refused = heard("penstock.kafka.client", "Connection refused")
            assert 0 < len(refused) < 5, "of several each second"
            broker.start()
            write(broker, "payments", "b")
            assert until(reading.poll, "the next record") == ["b"]
