"""A real HDFS on loopback: a namenode and a datanode, each a process.

Their programs are in one jar of the version of the Hadoop client that Spark comes with.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from penstock.common.filesystem import filesystem_for
from penstock.errors import StorageError
from penstock.spark.java import ensure_java
from penstock.spark.packages import fetch_jars, own_jars
from penstock.testing.children import START_SECONDS, die_with_parent
from penstock.testing.kafka.jars import cache_folder
from penstock.testing.ports import free_ports

_CLIENT = "hadoop-client-api-"
_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


@contextlib.contextmanager
def hdfs_server() -> Iterator[str]:
    """Its address, as `webhdfs://127.0.0.1:port`; gone with everything in it afterwards."""
    jars = f"{_servers_jar()}{os.pathsep}{own_jars()}/*"
    with tempfile.TemporaryDirectory(prefix="penstock-hdfs-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        rpc, web = free_ports(2)
        _configure(folder, rpc, web)
        _java(folder, jars, _NAMENODE, "-format", "-nonInteractive").wait(START_SECONDS)
        servers = [_java(folder, jars, _NAMENODE), _java(folder, jars, _DATANODE)]
        try:
            address = f"webhdfs://127.0.0.1:{web}"
            _await_writes(address, servers, folder / "log")
            yield address
        finally:
            for server in servers:
                server.send_signal(signal.SIGKILL)
                server.wait()


def _servers_jar() -> Path:
    """The jar with the servers, fetched once."""
    [client] = own_jars().glob(f"{_CLIENT}*.jar")
    version = client.stem.removeprefix(_CLIENT)
    name = f"hadoop-client-minicluster-{version}.jar"
    kept = cache_folder() / "hdfs" / name
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="penstock-jars-") as scratch:
            package = f"org.apache.hadoop:hadoop-client-minicluster:{version}"
            fetched = fetch_jars([package], Path(scratch)) / f"org.apache.hadoop_{name}"
            partial = kept.with_name(f"{name}.{os.getpid()}.partial")
            shutil.copyfile(fetched, partial)
            partial.replace(kept)
    return kept


def _configure(folder: Path, rpc: int, web: int) -> None:
    sites = {
        "core-site.xml": {
            "fs.defaultFS": f"hdfs://127.0.0.1:{rpc}",
            "hadoop.tmp.dir": str(folder / "data"),
        },
        "hdfs-site.xml": {
            "dfs.namenode.http-address": f"127.0.0.1:{web}",
            "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.http.address": "127.0.0.1:0",
            "dfs.datanode.ipc.address": "127.0.0.1:0",
            "dfs.datanode.hostname": "127.0.0.1",
            "dfs.replication": "1",
            "dfs.permissions.enabled": "false",
        },
    }
    for file, settings in sites.items():
        properties = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in settings.items()
        )
        (folder / file).write_text(f"<configuration>{properties}</configuration>")


def _java(folder: Path, jars: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
    ensure_java()
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    classpath = f"{folder}{os.pathsep}{jars}"
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [java, "-Xmx192m", "-cp", classpath, program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent if sys.platform == "linux" else None,
        )


def _await_writes(address: str, servers: list[subprocess.Popen[bytes]], log: Path) -> None:
    """Wait until a file can be written: the datanode must have joined."""
    deadline = time.monotonic() + START_SECONDS
    while not _takes_a_file(address):
        assert all(server.poll() is None for server in servers), log.read_text()[-2000:]
        assert time.monotonic() < deadline, "HDFS does not answer"
        time.sleep(0.2)


def _takes_a_file(address: str) -> bool:
    try:
        return filesystem_for(address)[0].create(f"/probe-{uuid.uuid4().hex}", b"")
    except StorageError:
        return False
