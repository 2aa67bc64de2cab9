"""A user without rights hears from the source what the broker says, and which right to ask for."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka_parts import Reading, read, write
from patience import until

from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream.connectors.kafka import KafkaSource, KafkaSourceBuilder
from penstock.errors import JobFailedError, SourceError, SourceRefusedError
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker, Security, kafka_broker

# One process starts the broker of these tests.
pytestmark = [pytest.mark.full("Kafka"), pytest.mark.xdist_group("rights")]

USERS = {"upi": "correct horse"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaBroker]:
    """Who does not log in may do all; who does needs rights."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with kafka_broker(settings, Security(USERS)) as broker:
        yield broker


def grant(broker: KafkaBroker, kind: ResourceType, name: str, operation: AclOperation) -> None:
    """Let the user do this, and wait until the broker knows."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    acl = AclBinding(kind, name, literal, "User:upi", "*", operation, allow)
    admin.create_acls([acl])[acl].result(60)


def as_user(broker: KafkaBroker, *topics: str) -> KafkaSourceBuilder:
    builder = KafkaSource.builder().set_bootstrap_servers(broker.secure_servers)
    login = {"sasl.username": "upi", "sasl.password": USERS["upi"], "sasl.mechanism": "PLAIN"}
    return builder.set_topics(*topics).set_properties(
        {"security.protocol": "SASL_PLAINTEXT", **login}
    )


def test_a_topic_that_one_may_not_see(guarded: KafkaBroker) -> None:
    guarded.create_topic("hidden")
    reason = "topic hidden: .*[Aa]uthorization failed.*ACL .*DESCRIBE on the topic hidden"
    with pytest.raises(SourceRefusedError, match=reason):
        read(as_user(guarded, "hidden").set_bounded("latest"))


def test_a_topic_that_one_may_see_and_not_read(guarded: KafkaBroker) -> None:
    guarded.create_topic("seen")
    write(guarded, "seen", "a")
    grant(guarded, ResourceType.TOPIC, "seen", AclOperation.DESCRIBE)
    built = as_user(guarded, "seen").set_bounded("latest").build()
    reading = until(lambda: _begun(built), "the right to see it is known")
    reason = "topic seen.*[Aa]uthorization failed.*READ .*on the topic seen"
    with reading, pytest.raises(SourceRefusedError, match=reason):
        reading.to_end()


def test_a_job_that_may_not_read_is_not_restarted(guarded: KafkaBroker) -> None:
    guarded.create_topic("unread")
    write(guarded, "unread", "a")
    restarts = Configuration.from_dict(
        {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000",
        }
    )

    def run(what: str) -> None:
        with local_environment(1, configuration=restarts) as env:
            env.enable_checkpointing(1_000)
            # It has no end of its own.
            built = as_user(guarded, "unread").build()
            stream = env.from_source(built, WatermarkStrategy.no_watermarks(), "topic")
            stream.set_parallelism(1).print()
            with pytest.raises(JobFailedError, match=what) as caught:
                env.execute()
        assert isinstance(caught.value.__cause__, SourceRefusedError)

    run("Kafka does not show topic unread.*ACL .*DESCRIBE on the topic unread")
    grant(guarded, ResourceType.TOPIC, "unread", AclOperation.DESCRIBE)
    until(lambda: _begun(as_user(guarded, "unread").build()), "the right is known").__exit__()
    run("topic unread.*[Aa]uthorization failed.*READ .*on the topic unread")


def _begun(built: KafkaSource) -> Reading | None:
    try:
        return Reading(built)
    except SourceError:
        return None


def test_committed_offsets_of_a_group_that_one_may_not_see(guarded: KafkaBroker) -> None:
    guarded.create_topic("shown")
    grant(guarded, ResourceType.TOPIC, "shown", AclOperation.READ)
    built = as_user(guarded, "shown")
    until(lambda: _begun(built.build()), "the right to read it is known").__exit__()
    builder = built.set_group_id("others").set_starting_offsets("committed")
    with pytest.raises(
        SourceRefusedError, match=r"[Aa]uthorization failed.*READ on the group others"
    ):
        read(builder.set_bounded("latest"))


def test_a_commit_that_is_refused_is_a_warning_and_no_committed_offset(
    guarded: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    guarded.create_topic("open")
    write(guarded, "open", "abc")
    grant(guarded, ResourceType.TOPIC, "open", AclOperation.READ)
    built = as_user(guarded, "open").set_group_id("totals").build()
    with (
        caplog.at_level(logging.WARNING, "penstock.kafka"),
        until(lambda: _begun(built), "the right to read it is known") as reading,
    ):
        reading.take(3)

        def warnings() -> list[str]:
            """Each checkpoint tries again."""
            reading.reader.covered(reading.reader.snapshot())
            reading.poll()
            return [message for message in caplog.messages if "cannot be committed" in message]

        [warning] = until(warnings, "the warning")
        assert "ACL that allows READ on the group totals" in warning
        place = "KafkaSourceReader.topic.open.partition.0"
        assert reading.metrics()[f"{place}.committedOffset"] == -1
        grant(guarded, ResourceType.GROUP, "totals", AclOperation.READ)
        until(
            lambda: warnings() and reading.metrics()[f"{place}.committedOffset"] == 3, "the commit"
        )
        assert len(warnings()) == 1
