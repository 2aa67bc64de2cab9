"""An exactly-once Kafka sink whose transactions would not live until the next checkpoint."""

from __future__ import annotations

import sys

import pytest

from penstock.connectors.client_sinks import CollectSink
from penstock.connectors.sink import CommitterContext, Sink, SinkWriter, WriterContext
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


@pytest.mark.parametrize(
    ("interval_ms", "checkpoint_ms", "timeout_ms", "warned"),
    [
        (30_000, 600_000, 600_000, True),
        (30_000, 600_000, 630_999, True),
        (30_000, 600_000, 631_000, False),
        (30_000, 10_000, 60_000, False),
        (30_000, None, 60_000, False),
        (None, 600_000, 60_000, False),
    ],
)
def test_a_timeout_that_a_slow_checkpoint_exceeds_is_a_warning(
    interval_ms: int | None,
    checkpoint_ms: int | None,
    timeout_ms: int,
    warned: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = CommitterContext("job", "out", sys.maxsize, interval_ms, checkpoint_ms)
    sink(timeout_ms).create_committer(context)
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == warned
    if warned:
        assert "uid out" in told[0] and "631000 ms" in told[0] and f"{timeout_ms} ms" in told[0]


contexts: list[CommitterContext] = []


class Asking(Sink):
    """A sink that remembers what its committer may know."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return CollectSink().create_writer(context)

    def create_committer(self, context: CommitterContext) -> None:
        contexts.append(context)


def test_a_committer_knows_how_often_and_how_long_checkpoints_are_taken() -> None:
    with local_environment(seed=1) as env:
        env.enable_checkpointing(7_000)
        env.get_checkpoint_config().set_checkpoint_timeout(70_000)
        env.from_collection([1]).sink_to(Asking())
        env.execute()
    known = {(one.checkpoint_interval_ms, one.checkpoint_timeout_ms) for one in contexts}
    assert known == {(7_000, 70_000)}


def test_such_a_job_does_not_start() -> None:
    with local_environment(seed=1) as env:
        env.enable_checkpointing(60_000)
        env.from_collection([1]).sink_to(sink(30_000)).uid("out")
        with pytest.raises(ProgramError, match=r"transaction\.timeout\.ms is 30000 ms"):
            env.execute()
