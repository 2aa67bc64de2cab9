"""Paths of HDFS lead to WebHDFS if somebody says where it is."""

from __future__ import annotations

import pytest

from penstock.common import Configuration
from penstock.common.filesystem import filesystem_for
from penstock.common.hdfs_address import webhdfs_uri
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ConfigurationError

SITE = """<configuration>
  <property><name>dfs.replication</name><value>1</value></property>
  <property><name>dfs.namenode.http-address</name><value>namenode:9871</value></property>
</configuration>"""


@pytest.fixture(autouse=True)
def no_hadoop(monkeypatch):
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)


def store_of(**values):
    values = {
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": "hdfs://namenode:8020/checkpoints",
        "state.savepoints.dir": "hdfs://namenode:8020/savepoints",
        **values,
    }
    env = StreamExecutionEnvironment(Configuration.from_dict(values))
    env.from_collection([1]).print()
    job = env._assemble(None)
    return job.store.directory, job.savepoint_directory


@pytest.mark.parametrize(
    "key", ["penstock.hdfs.http-address", "flink.hadoop.dfs.namenode.http-address"]
)
def test_a_key_says_where(key):
    checkpoints, savepoints = store_of(**{key: "namenode:9870"})
    assert checkpoints == "webhdfs://namenode:9870/checkpoints"
    assert savepoints == "webhdfs://namenode:9870/savepoints"


def test_the_configuration_of_hadoop_says_where(tmp_path, monkeypatch):
    (tmp_path / "hdfs-site.xml").write_text(SITE)
    there = "webhdfs://namenode:9871/checkpoints"
    assert store_of(**{"env.hadoop.conf.dir": str(tmp_path)})[0] == there
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert store_of()[0] == there
    assert webhdfs_uri("hdfs:///x") == "webhdfs://namenode:9871/x"
    file_system, path = filesystem_for("hdfs://namenode/a/b")
    assert (type(file_system).__name__, path) == ("WebHdfsFileSystem", "/a/b")


def test_otherwise_it_is_said_what_to_write(tmp_path):
    with pytest.raises(ConfigurationError) as caught:
        store_of()
    assert "write webhdfs://namenode:9870/checkpoints" in str(caught.value)
    assert "set penstock.hdfs.http-address to namenode:9870" in str(caught.value)
    with pytest.raises(ConfigurationError, match="write webhdfs://namenode:9870/x"):
        filesystem_for("hdfs://namenode:8020/x")
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigurationError, match=r"hdfs-site\.xml cannot be read"):
        webhdfs_uri("hdfs://namenode/x", None, str(tmp_path))
