"""What a record becomes when it is written to Kafka."""

from __future__ import annotations

import pytest

from penstock.connectors.kafka.messages import MessageSchema

END_OF_TIME = (1 << 63) - 1


@pytest.mark.parametrize(
    ("timestamp", "written"),
    [(1, 1), (END_OF_TIME - 1, END_OF_TIME - 1), (END_OF_TIME, None), (-1, None), (None, None)],
)
def test_a_message_has_the_timestamp_of_its_record(
    timestamp: int | None, written: int | None
) -> None:
    """But for the end of time, which windows without event time give, and times before 1970."""
    message = MessageSchema("t").compiled()("value", timestamp)
    assert message.get("timestamp") == written
