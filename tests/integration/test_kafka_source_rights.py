"""A user without rights hears from the source what the broker says, and which right to ask for."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from kafka_parts import Reading, read, source, write
from kafka_users import User
from patience import until

from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream.connectors.kafka import KafkaSource, KafkaSourceBuilder
from penstock.errors import JobFailedError, SourceError, SourceRefusedError
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker

# One process starts the broker of these tests.
pytestmark = [pytest.mark.full("Kafka"), pytest.mark.xdist_group("rights")]


@pytest.fixture
def user(guarded: KafkaBroker) -> User:
    return User(guarded)


def as_user(user: User) -> KafkaSourceBuilder:
    return source(user, user.topic).set_properties(user.login())


def test_a_topic_that_one_may_not_see(user: User) -> None:
    reason = (
        f"topic {user.topic}: .*[Aa]uthorization failed.*ACL .*DESCRIBE on the topic {user.topic}"
    )
    with pytest.raises(SourceRefusedError, match=reason):
        read(as_user(user).set_bounded("latest"))


def test_a_topic_that_one_may_see_and_not_read(user: User, guarded: KafkaBroker) -> None:
    write(guarded, user.topic, "a")
    user.may(ResourceType.TOPIC, user.topic, AclOperation.DESCRIBE)
    built = as_user(user).set_bounded("latest").build()
    reading = until(lambda: _begun(built), "the right to see it is known")
    reason = f"topic {user.topic}.*[Aa]uthorization failed.*READ .*on the topic {user.topic}"
    with reading, pytest.raises(SourceRefusedError, match=reason):
        reading.to_end()


def test_a_job_that_may_not_read_is_not_restarted(user: User, guarded: KafkaBroker) -> None:
    write(guarded, user.topic, "a")
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
            built = as_user(user).build()
            stream = env.from_source(built, WatermarkStrategy.no_watermarks(), "topic")
            stream.set_parallelism(1).print()
            with pytest.raises(JobFailedError, match=what) as caught:
                env.execute()
        assert isinstance(caught.value.__cause__, SourceRefusedError)

    run(f"Kafka does not show topic {user.topic}.*ACL .*DESCRIBE on the topic {user.topic}")
    user.may(ResourceType.TOPIC, user.topic, AclOperation.DESCRIBE)
    until(lambda: _begun(as_user(user).build()), "the right is known").__exit__()
    run(f"topic {user.topic}.*[Aa]uthorization failed.*READ .*on the topic {user.topic}")


def _begun(built: KafkaSource) -> Reading | None:
    try:
        return Reading(built)
    except SourceError:
        return None


def test_committed_offsets_of_a_group_that_one_may_not_see(user: User) -> None:
    user.may(ResourceType.TOPIC, user.topic, AclOperation.READ)
    built = as_user(user)
    until(lambda: _begun(built.build()), "the right to read it is known").__exit__()
    builder = built.set_group_id("others").set_starting_offsets("committed")
    with pytest.raises(
        SourceRefusedError, match=r"[Aa]uthorization failed.*READ on the group others"
    ):
        read(builder.set_bounded("latest"))


def test_a_commit_that_is_refused_is_a_warning_and_no_committed_offset(
    user: User, guarded: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    write(guarded, user.topic, "abc")
    user.may(ResourceType.TOPIC, user.topic, AclOperation.READ)
    built = as_user(user).set_group_id("totals").build()
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
        place = f"KafkaSourceReader.topic.{user.topic}.partition.0"
        assert reading.metrics()[f"{place}.committedOffset"] == -1
        user.may(ResourceType.GROUP, "totals", AclOperation.READ)
        until(
            lambda: warnings() and reading.metrics()[f"{place}.committedOffset"] == 3, "the commit"
        )
        assert len(warnings()) == 1
