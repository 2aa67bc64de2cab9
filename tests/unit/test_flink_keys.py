"""Every key of Flink's is known: it works, has no meaning here, or is refused."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from penstock.common import Configuration, flink_keys
from penstock.common.config_file import read_config_file
from penstock.common.config_layers import values_of
from penstock.common.config_options import OPTIONS, check_keys
from penstock.common.flink_keys import OLDER, RULES, Kind, kind_of, refusal, rule_for
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ConfigurationError
from penstock.testing import local_environment

WORKS = {key for option in OPTIONS for key in (option.key, *option.aliases)}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(flink_keys, "_said", set())


def test_the_list_is_read():
    assert len(flink_keys.flink_keys()) > 900
    assert flink_keys.flink_keys()["heartbeat.timeout"] == "50 s"


def test_every_key_is_known():
    unknown = [k for k in flink_keys.flink_keys() if k not in WORKS and kind_of(k) is None]
    assert unknown == []


def test_every_rule_is_about_some_key():
    used = {rule_for(key) for key in (*flink_keys.flink_keys(), *OLDER) if key not in WORKS}
    assert set(RULES) - used == set()
    assert len({rule.key for rule in RULES}) == len(RULES)


def test_what_works_is_not_said_to_have_no_meaning():
    """A rule with a key's own name would say so; one for all keys below a name does not."""
    assert WORKS.isdisjoint(rule.key for rule in RULES)


@pytest.mark.parametrize("kind", Kind)
def test_the_page_has_the_table(kind):
    table = flink_keys.table(kind)
    page = (ROOT / "docs/configuration.md").read_text()
    assert f"\n{table}\n" in page, f"the table must be:\n{table}"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pekko.ask.timeout", "10 s"),
        ("taskmanager.numberOfTaskSlots", "4"),
        ("jobmanager.memory.process.size", "1600m"),
        ("python.fn-execution.bundle.size", "1000"),
        ("metrics.reporter.prom.factory.class", "org.apache.Prometheus"),
        ("metrics.reporter.prom.port", "9249"),
        ("kubernetes.pod-template-file.default", "/pod.yaml"),
        ("akka.framesize", "10485760b"),
        ("env.java.opts", "-Xmx1g"),
    ],
)
def test_what_has_no_meaning_is_accepted(key, value):
    check_keys({key: value})
    assert kind_of(key) is Kind.NO_MEANING


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("high-availability.type", "zookeeper", "pipeline.jobid"),
        ("high-availability", "kubernetes", "pipeline.jobid"),
        ("security.kerberos.login.keytab", "/etc/k.keytab", "no Kerberos"),
        ("security.ssl.rest.enabled", "true", "TLS"),
        ("execution.checkpointing.storage", "com.example.Storage", "no other storage"),
        ("state.backend.type", "forst", "expected hashmap or rocksdb"),
        ("state.backend.rocksdb.options-factory", "com.example.F", "Java's"),
        ("external-resource.gpu.amount", "1", "spark.task.resource"),
        ("s3.endpoint", "http://minio:9000", "AWS_ENDPOINT_URL"),
        ("containerized.taskmanager.env.TZ", "UTC", "spark.executorEnv"),
        ("fs.default-scheme", "hdfs://namenode", "scheme"),
        ("pipeline.jars", "file:///mine.jar", "no Java"),
        ("state.backend.rocksdb.compaction.style", "FIFO", "expected one of LEVEL"),
    ],
)
def test_what_would_be_a_lie_is_refused(key, value, says):
    env = StreamExecutionEnvironment()
    env.from_collection([1]).print()
    env._configuration.set_string(key, value)
    with pytest.raises(ConfigurationError, match=says) as caught:
        env._assemble(None)
    assert str(caught.value).startswith(f"{key}: ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("high-availability.type", "NONE"),
        ("security.ssl.rest.enabled", "false"),
        ("execution.checkpointing.create-subdir", "true"),
        ("execution.state-recovery.without-channel-state.checkpoint-id", "-1"),
    ],
)
def test_what_flink_does_by_default_may_be_asked_for(key, value):
    assert kind_of(key) is Kind.REFUSED and refusal(key, value) is None
    check_keys({key: value})


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("pekko.ask.timeuot", "pekko.ask.timeout"),
        ("jobmanager.rpc.adress", "jobmanager.rpc.address"),
        ("kubernetes.nonsense.nowhere", None),
        ("execution.checkpointing.intervall", "execution.checkpointing.interval"),
    ],
)
def test_a_key_that_flink_does_not_have_is_an_error(key, near):
    with pytest.raises(ConfigurationError, match="unknown configuration key") as caught:
        check_keys({key: "1"})
    assert near is None or str(caught.value).endswith(f"did you mean {near}?")


FLINKS = """
env:
  java:
    opts:
      all: --add-exports=java.base/sun.net.util=ALL-UNNAMED
jobmanager:
  bind-host: localhost
  rpc:
    address: localhost
    port: 6123
  memory.process.size: 1600m
  execution.failover-strategy: region
taskmanager:
  bind-host: localhost
  host: localhost
  numberOfTaskSlots: 1
  memory.process.size: 1728m
parallelism.default: 2
high-availability.type: NONE
state:
  backend.type: hashmap
rest:
  address: localhost
  bind-address: localhost
  port: 8081
io.tmp.dirs: /tmp
classloader:
  resolve-order: child-first
pipeline:
  jars:
    - file:///opt/flink/lib/flink-sql-connector-kafka.jar
    - file:///opt/flink/lib/flink-connector-jdbc.jar
  global-job-parameters:
    region: north
kubernetes.jobmanager.labels: {team: pay}
"""


def test_the_file_of_a_flink_cluster_starts_a_job(tmp_path, caplog):
    path = tmp_path / "config.yaml"
    path.write_text(FLINKS)
    file = Configuration.from_dict(values_of(read_config_file(path)))
    with local_environment(configuration=file) as env, caplog.at_level(logging.WARNING):
        assert env.get_parallelism() == 2
        assert env.get_config().get_global_job_parameters() == {"region": "north"}
        found = list(env.from_collection([1, 2]).map(lambda n: n * 2).execute_and_collect())
        assert sorted(found) == [2, 4]
        list(env.from_collection([3]).execute_and_collect())
    [said] = [text for text in caplog.messages if "without a meaning here" in text]
    for key in ("jobmanager.rpc.address", "taskmanager.numberOfTaskSlots", "rest.port"):
        assert key in said
    assert "parallelism.default" not in said and "io.tmp.dirs" not in said


def test_lists_and_maps_of_flinks_may_be_written_as_yaml(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(FLINKS)
    values = values_of(read_config_file(path))
    assert values["pipeline.jars"].split(";")[0].endswith("kafka.jar")
    assert values["kubernetes.jobmanager.labels"] == '{"team": "pay"}'
    path.write_text("parallelism.default: [1, 2]\n")
    with pytest.raises(ConfigurationError, match="expected a single value, not a list"):
        read_config_file(path)
