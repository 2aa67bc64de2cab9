"""Three brokers: a silent one, leaders and coordinators that move, too few in-sync replicas."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka_parts import exactly_once, read_all, values
from patience import PATIENCE, until
from sink_parts import begun, committer, open_writer, put

from penstock.connectors.kafka.coordinator import Coordinators
from penstock.connectors.kafka.transactions import lease_of
from penstock.errors import SinkError
from penstock.testing.kafka import KafkaBroker, KafkaCluster, kafka_cluster

# One process starts the brokers of these tests.
pytestmark = [pytest.mark.full("Kafka"), pytest.mark.xdist_group("cluster")]

Topic = Callable[..., str]


@pytest.fixture(scope="module")
def three() -> Iterator[KafkaCluster]:
    with kafka_cluster(3) as cluster:
        yield cluster


@pytest.fixture
def cluster(three: KafkaCluster) -> Iterator[KafkaCluster]:
    """All three run, whatever the test before did to them."""
    yield three
    three.start()


_numbers = itertools.count(1)


@pytest.fixture
def topic(cluster: KafkaCluster) -> Topic:
    def make(**settings: str) -> str:
        name = f"topic-{next(_numbers)}"
        cluster.create_topic(name, 1, **settings)
        return name

    return make


@contextlib.contextmanager
def hanging(broker: KafkaBroker) -> Iterator[None]:
    """It takes connections, and answers nothing."""
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


class Named:
    """Servers as a user names them."""

    def __init__(self, *servers: str) -> None:
        self.bootstrap_servers = ",".join(servers)


def coordinator(cluster: KafkaCluster, name: str) -> KafkaBroker:
    """The broker that coordinates a transactional id."""
    coordinators = Coordinators({"bootstrap.servers": cluster.bootstrap_servers})
    coordinators.describe([name])
    host, port = coordinators._found[name]
    coordinators.close()
    [found] = [one for one in cluster.brokers if one.bootstrap_servers == f"{host}:{port}"]
    return found


# --- a server that is silent ------------------------------------------------------------------


def test_the_next_server_is_asked_if_the_first_is_silent(
    cluster: KafkaCluster, topic: Topic
) -> None:
    name = topic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        built = exactly_once(Named(server, cluster.bootstrap_servers), name, name)
        end, writer = begun(built)
        put(writer, "a")
        end.commit(writer.prepare_commit()())
        assert values(read_all(cluster, name)) == ["a"]
        writer.close()
        end.close()


def test_servers_that_are_not_named_are_found_before_they_are_needed(
    cluster: KafkaCluster, topic: Topic
) -> None:
    name = topic()
    lease = lease_of(name)
    bystander = next(one for one in cluster.brokers if one is not coordinator(cluster, lease))
    built = exactly_once(Named(bystander.bootstrap_servers), name, name)
    end, writer = begun(built)
    put(writer, "a")
    prepared = writer.prepare_commit()()
    bystander.kill()
    end.commit(prepared)
    end.abort_others([])
    assert values(read_all(cluster, name)) == ["a"]
    writer.close()
    end.close()


# --- leaders and coordinators that move -------------------------------------------------------


def test_commits_follow_the_coordinator(cluster: KafkaCluster, topic: Topic) -> None:
    name = topic()
    end, writer = begun(exactly_once(cluster, name, name))
    put(writer, "a")
    prepared = writer.prepare_commit()()
    coordinator(cluster, prepared[0]["id"]).kill()
    end.commit(prepared)
    assert values(read_all(cluster, name)) == ["a"]
    put(writer, "b")
    prepared = writer.prepare_commit()()
    cluster.start()
    with hanging(coordinator(cluster, prepared[0]["id"])):
        end.commit(prepared)
    until(lambda: values(read_all(cluster, name)) == ["a", "b"], "b")
    writer.close()
    end.close()


def test_recovery_settles_transactions_though_their_coordinator_has_died(
    cluster: KafkaCluster, topic: Topic
) -> None:
    name = topic()
    built = exactly_once(cluster, name, name)
    end, writer = begun(built)
    put(writer, "not covered")
    [beyond] = writer.prepare_commit()()
    end.close()
    coordinator(cluster, beyond["id"]).kill()
    heir = committer(built)
    heir.abort_others([])
    with pytest.raises(SinkError, match="is not open any more"):
        heir.commit([beyond])
    assert read_all(cluster, name) == []
    writer.close()
    heir.close()


def test_writers_follow_the_leader(cluster: KafkaCluster, topic: Topic) -> None:
    name = topic()
    end, writer = begun(exactly_once(cluster, name, name))
    for number in range(3):
        put(writer, f"{number} before")
        writer.flush()
        leader = until(lambda: cluster.leader(name), "a leader")
        leader.kill()
        put(writer, f"{number} after")
        end.commit(writer.prepare_commit()())
        assert cluster.leader(name) is not leader
        cluster.start()
        until(lambda: cluster.in_sync(name) == 3, "all copies")
    expected = [f"{number} {when}" for number in range(3) for when in ("before", "after")]
    until(lambda: values(read_all(cluster, name)) == expected, "all, once and in order")
    writer.close()
    end.close()


# --- too few in-sync replicas -----------------------------------------------------------------


def test_a_checkpoint_waits_for_replicas_that_are_away(cluster: KafkaCluster, topic: Topic) -> None:
    name = topic(min_insync_replicas="3")
    end, writer = begun(exactly_once(cluster, name, name))
    put(writer, "a")
    end.commit(writer.prepare_commit()())
    away = next(one for one in cluster.brokers if one is not cluster.leader(name))
    away.kill()
    until(lambda: cluster.in_sync(name) < 3, "a copy less")
    put(writer, "b")
    with ThreadPoolExecutor(1) as pool:
        preparing = pool.submit(writer.prepare_commit())
        cluster.start()
        end.commit(preparing.result(PATIENCE))
    until(lambda: values(read_all(cluster, name)) == ["a", "b"], "b")
    writer.close()
    end.close()


def test_replicas_that_stay_away_are_an_error_and_the_next_attempt_goes_on(
    cluster: KafkaCluster, topic: Topic
) -> None:
    name = topic(min_insync_replicas="3")
    built = exactly_once(cluster, name, name, message_timeout_ms="3000")
    end, writer = begun(built)
    away = next(one for one in cluster.brokers if one is not cluster.leader(name))
    away.kill()
    until(lambda: cluster.in_sync(name) < 3, "a copy less")
    put(writer, "a")
    with pytest.raises(SinkError, match=name):
        writer.prepare_commit()()
    writer.close()
    cluster.start()
    until(lambda: cluster.in_sync(name) == 3, "all copies")
    end.abort_others([])
    writer = open_writer(built, attempt=2)
    put(writer, "again")
    end.commit(writer.prepare_commit()())
    until(lambda: values(read_all(cluster, name)) == ["again"], "the next attempt")
    writer.close()
    end.close()
