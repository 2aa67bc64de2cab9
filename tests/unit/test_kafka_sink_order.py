"""The Kafka sink without transactions keeps the order of records, unless the user excludes it."""

from __future__ import annotations

import pytest

from penstock.connectors.kafka.production import Production
from penstock.connectors.kafka.sink import ordering
from penstock.errors import ProgramError


@pytest.mark.parametrize(
    "said",
    [{}, {"acks": "all"}, {"acks": "-1", "retries": "3"}, {"max.in.flight": "5"}],
)
def test_a_plain_writer_is_idempotent(said: dict[str, str]) -> None:
    assert ordering(said) == {"enable.idempotence": "true"}


@pytest.mark.parametrize(
    "said",
    [
        {"acks": "1"},
        {"request.required.acks": "0"},
        {"max.in.flight.requests.per.connection": "6"},
        {"retries": "0"},
    ],
)
def test_what_excludes_idempotence_turns_it_off(said: dict[str, str]) -> None:
    assert ordering(said) == {}
    Production(said)


def test_a_number_that_is_none_is_named() -> None:
    with pytest.raises(ProgramError, match=r"max\.in\.flight is a number, not 'many'"):
        ordering({"max.in.flight": "many"})
