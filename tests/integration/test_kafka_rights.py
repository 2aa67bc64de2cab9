"""What a broker refuses a sink: rights, timeouts, records too large; and what users are told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from kafka_parts import exactly_once, read_all, sink, values
from kafka_users import LONGEST_MS, User
from sink_parts import begun, committer, open_writer, put

from penstock.common import Configuration
from penstock.datastream.connectors.kafka import KafkaSink
from penstock.errors import JobFailedError, SinkError, SinkRefusedError
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker

# One process starts the broker of these tests.
pytestmark = [pytest.mark.full("Kafka"), pytest.mark.xdist_group("rights")]


class Writer(User):
    """A user with sinks to their topic; its name is the prefix too."""

    def _properties(self, **more: str) -> dict[str, str]:
        return {**{key.replace(".", "_"): value for key, value in self.login().items()}, **more}

    def plain(self, **more: str) -> KafkaSink:
        return sink(self, self.topic, **self._properties(**more))

    def exactly_once(self, **more: str) -> KafkaSink:
        timeout = {"transaction_timeout_ms": str(LONGEST_MS)}
        return exactly_once(self, self.topic, self.topic, **self._properties(**{**timeout, **more}))

    def may_use_ids(self) -> None:
        rights = (AclOperation.DESCRIBE, AclOperation.WRITE)
        self.may(ResourceType.TRANSACTIONAL_ID, f"{self.topic}/", *rights)

    def may_write(self) -> None:
        self.may(ResourceType.TOPIC, self.topic, AclOperation.WRITE)


@pytest.fixture
def user(guarded: KafkaBroker) -> Writer:
    return Writer(guarded)


def refused(work: Callable[[], object], what: str) -> str:
    with pytest.raises(SinkRefusedError, match=what) as caught:
        work()
    return str(caught.value)


def written(built: KafkaSink, *records: str) -> None:
    end, writer = begun(built)
    try:
        put(writer, *records)
        end.commit(writer.prepare_commit()())
    finally:
        writer.close()
        end.close()


# --- rights -----------------------------------------------------------------------------------


def test_no_right_to_the_transactional_ids(user: Writer) -> None:
    user.may_write()
    for operation in (None, AclOperation.DESCRIBE):
        if operation is not None:
            user.may(ResourceType.TRANSACTIONAL_ID, f"{user.topic}/", operation)
        end = committer(user.exactly_once())
        text = refused(
            lambda end=end: end.abort_others([]), "Transactional Id authorization failed"
        )
        assert f"--transactional-id {user.topic}/ --resource-pattern-type prefixed" in text
        assert "another job" not in text
        end.close()
    user.may_use_ids()
    written(user.exactly_once(), "a")


def test_no_right_to_write_to_the_topic(user: Writer, guarded: KafkaBroker) -> None:
    user.may_use_ids()
    for operation in (None, AclOperation.DESCRIBE):
        if operation is not None:
            user.may(ResourceType.TOPIC, user.topic, operation)
        text = refused(lambda: written(user.exactly_once(), "a"), "Topic authorization failed")
        assert text.startswith(f"topic {user.topic}") and f"--topic {user.topic}" in text
    assert read_all(guarded, user.topic, "read_uncommitted") == []
    user.may_write()
    written(user.exactly_once(), "a")
    assert values(read_all(guarded, user.topic)) == ["a"]


def test_no_right_to_write_without_transactions(user: Writer) -> None:
    def write() -> None:
        writer = open_writer(user.plain())
        try:
            put(writer, "a")
            writer.prepare_commit()()
        finally:
            writer.close()

    cluster = "Cluster authorization failed.* IdempotentWrite"
    topic = f"topic {user.topic}: .*Topic authorization failed.* --topic {user.topic}"
    # An idempotent producer asks for both, and either answer may come first.
    refused(write, f"{topic}|{cluster}")
    # One that may see the topic, and has no right that an idempotent producer could begin with.
    user.may(ResourceType.TOPIC, user.topic, AclOperation.DESCRIBE)
    refused(write, cluster)
    user.may_write()
    write()


def test_a_job_that_may_not_write_is_not_restarted(user: Writer) -> None:
    user.may_use_ids()
    user.may(ResourceType.TOPIC, user.topic, AclOperation.DESCRIBE)
    restarts = {"restart-strategy.type": "fixed-delay"}
    with local_environment(1, configuration=Configuration.from_dict(restarts)) as env:
        env.enable_checkpointing(1_000)
        env.from_collection(["a"]).sink_to(user.exactly_once()).set_parallelism(1)
        with pytest.raises(JobFailedError) as caught:
            env.execute()
    assert isinstance(caught.value.__cause__, SinkRefusedError)


# --- timeouts ---------------------------------------------------------------------------------


def test_a_timeout_above_the_brokers(user: Writer) -> None:
    user.may_use_ids()
    user.may_write()
    # A timeout carries a turn, and the first is a second below what was set.
    longer = user.exactly_once(transaction_timeout_ms=str(LONGEST_MS + 2_000))
    text = refused(lambda: written(longer, "a"), "imeout is larger than the maximum value allowed")
    assert "lower this one, or have that one raised" in text
    shortest = user.exactly_once(transaction_timeout_ms="10000")
    written(shortest, "a")


# --- records that are too large ---------------------------------------------------------------


@pytest.fixture
def small(user: Writer, guarded: KafkaBroker) -> Writer:
    """One who may write, to a topic that takes small records."""
    user.may_use_ids()
    user.may_write()
    user.topic = f"{user.topic}-small"
    guarded.create_topic(user.topic, max_message_bytes="2000")
    user.may_use_ids()
    user.may_write()
    return user


def test_a_record_that_is_too_large(small: Writer) -> None:
    what = rf"topic {small.topic}, partition 0: a message of 5000 bytes .*size too large.*; .*max\."
    refused(lambda: written(small.exactly_once(), "x" * 5_000), what)
    writer = open_writer(small.plain())
    put(writer, "x" * 5_000)
    refused(writer.prepare_commit(), what)
    writer.close()


def test_records_that_may_only_be_too_large_together(small: Writer) -> None:
    writer = open_writer(small.plain(linger_ms="60000"))
    put(writer, *("x" * size for size in (700, 900, 800)))
    several = r"a message of 900 bytes and 2 smaller ones were not delivered.*batch\.size"
    with pytest.raises(SinkError, match=several) as caught:
        writer.prepare_commit()()
    assert not isinstance(caught.value, SinkRefusedError), "another time they go one by one"
    writer.close()
    writer = open_writer(small.plain(linger_ms="60000", batch_size="1500"))
    put(writer, *("x" * size for size in (700, 900, 800)))
    writer.prepare_commit()()
    writer.close()
