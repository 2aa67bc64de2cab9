"""What a record becomes when it is written to Kafka."""

from __future__ import annotations

import pytest

from penstock.connectors.kafka.messages import MessageSchema

END_OF_TIME = (1 << 63) - 1


@pytest.mark.parametrize(
    ("timestamp", "written"),
    [
        (0, 1),
        (1, 1),
        (END_OF_TIME - 1, END_OF_TIME - 1),
        (END_OF_TIME, None),
        (-1, None),
        (None, None),
    ],
)
def test_a_message_has_the_timestamp_of_its_record(
    timestamp: int | None, written: int | None
) -> None:
    """But for the end of time, which windows without event time give, and times before 1970.

    The client library would write the present for 0.
    """
    message = MessageSchema("t").compiled()("value", timestamp)
    assert message.get("timestamp") == written


def test_a_timestamp_of_ones_own_that_is_zero_is_not_the_present() -> None:
    message = MessageSchema("t", timestamp=lambda record: record).compiled()
    assert [message(time)["timestamp"] for time in (0, 1, 2)] == [1, 1, 2]
