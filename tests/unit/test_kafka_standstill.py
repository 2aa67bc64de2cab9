"""What a Kafka source says when nothing comes, and how often the client's log is heard."""

from __future__ import annotations

import logging

import pytest

from penstock.connectors.kafka.client_log import OncePerMinute
from penstock.connectors.kafka.standstill import Standstill

PLACE, OTHER = ("payments", 0), ("payments", 1)


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = list(caplog.messages)
    caplog.clear()
    return found


def test_records_that_wait_and_do_not_come(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    standstill = Standstill(clock)
    clock.now += 59
    assert not standstill.due()
    clock.now += 1
    assert standstill.due()
    standstill.look({PLACE: 5, OTHER: 9}, {PLACE: 9, OTHER: 9})
    expected = "no record came for 60 s: topic payments, partition 0, stands at offset 5 of 9"
    assert said(caplog) == [expected]
    assert not standstill.due(), "it is said once a minute"
    clock.now += 61
    standstill.cut_off("all brokers are down")
    standstill.look({PLACE: 5, OTHER: 3}, {PLACE: 9, OTHER: 9})
    [warning] = said(caplog)
    assert warning.endswith("stands at offset 5 of 9, and 1 more partitions; all brokers are down")


def test_nothing_is_said_at_the_end_of_partitions(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The marks of transactions lie behind the last record."""
    standstill = Standstill(clock)
    standstill.ended(PLACE, 9)
    clock.now += 100
    standstill.look({PLACE: 7, OTHER: 4}, {PLACE: 9, OTHER: 4})
    standstill.look({PLACE: 7, OTHER: 4}, {})
    assert said(caplog) == []


def test_brokers_that_are_away_are_told_until_something_comes(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    standstill = Standstill(clock)
    standstill.cut_off("all brokers are down")
    clock.now += 60
    standstill.look({PLACE: 9}, {PLACE: 9})
    assert said(caplog) == ["no record came for 60 s: all brokers are down"]
    standstill.heard()
    clock.now += 60
    standstill.look({PLACE: 9}, {PLACE: 9})
    assert said(caplog) == []


def test_the_log_of_the_client_has_each_thing_once_a_minute(clock: Clock) -> None:
    limit = OncePerMinute(clock)

    def passes(text: str) -> str | None:
        record = logging.LogRecord("client", logging.ERROR, "", 0, "%s", (text,), None)
        return record.getMessage() if limit.filter(record) else None

    first = "FAIL [rdkafka#consumer-1] 127.0.0.1:9092: Connection refused (after 0ms)"
    again = "FAIL [rdkafka#consumer-2] 127.0.0.1:9092: Connection refused (after 3ms)"
    assert passes(first) == first
    assert [passes(again), passes(again)] == [None, None]
    assert passes("another thing") == "another thing"
    clock.now += 60
    assert passes(again) == f"{again} (2 more like this since the last)"
    assert passes(again) is None
