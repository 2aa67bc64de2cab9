"""An exactly-once Kafka sink whose transactions would not live until the next checkpoint."""

from __future__ import annotations

import pytest

from penstock.connectors.sink import CommitterContext
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from penstock.errors import ProgramError
from penstock.testing.local_environment import local_environment


def sink(timeout_ms: int) -> KafkaSink:
    builder = KafkaSink.builder().set_bootstrap_servers("localhost:1")
    builder.set_record_serializer(KafkaRecordSerializationSchema.builder().set_topic("out").build())
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    builder.set_transactional_id_prefix("out")
    return builder.set_property("transaction.timeout.ms", str(timeout_ms)).build()


@pytest.mark.parametrize(
    ("interval_ms", "timeout_ms", "refused"),
    [
        (None, 10_000, False),
        (30_000, 60_000, False),
        (30_000, 30_000, True),
        (60_000, 30_000, True),
    ],
)
def test_the_timeout_must_exceed_the_interval(
    interval_ms: int | None, timeout_ms: int, refused: bool
) -> None:
    context = CommitterContext("job", "out", checkpoint_interval_ms=interval_ms)
    if refused:
        with pytest.raises(ProgramError, match=rf"uid out.* {timeout_ms} ms .* {interval_ms} ms"):
            sink(timeout_ms).create_committer(context)
    else:
        made = sink(timeout_ms).create_committer(context)
        assert made is not None


def test_such_a_job_does_not_start() -> None:
    with local_environment(seed=1) as env:
        env.enable_checkpointing(60_000)
        env.from_collection([1]).sink_to(sink(30_000)).uid("out")
        with pytest.raises(ProgramError, match=r"transaction\.timeout\.ms is 30000 ms"):
            env.execute()
