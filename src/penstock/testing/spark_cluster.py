"""A real Spark standalone cluster on loopback: one Master, n Workers, each a process to kill.

    with standalone_cluster(workers=2) as cluster:
        spark = session_for(cluster.master_url, "test", {})
        ...
        cluster.kill_worker(0)
        cluster.restart_worker(0)

Everything that the cluster started is gone when the block is left, also after an exception.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from penstock.testing.children import START_SECONDS
from penstock.testing.ports import free_ports

_MARK = "PENSTOCK_TEST_CLUSTER"

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for a JVM that does not live long: half the work to start."""


class StandaloneCluster:
    """The processes of a running cluster. Made by `standalone_cluster`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mark = uuid.uuid4().hex
        self._spark_home = _spark_home()
        self._port, self._web_port = free_ports(1)[0], free_ports(1)[0]
        self.master_url = f"spark://127.0.0.1:{self._port}"
        self._children: list[subprocess.Popen[bytes]] = []
        self.master_pid = 0
        self.worker_pids: list[int] = []
        self._worker_ports: list[int] = []
        self._worker_options: tuple[str, ...] = ()

    def start(self, workers: int, cores: int, memory: str) -> None:
        """Start Master and Workers and wait until the Workers have registered."""
        self.master_pid = self._spawn(
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", str(self._port)),
            *("--webui-port", str(self._web_port)),
        )
        self._worker_options = ("--cores", str(cores), "--memory", memory)
        for _ in range(workers):
            pid, port = self._spawn_worker()
            self.worker_pids.append(pid)
            self._worker_ports.append(port)
        self._await_workers(self._worker_ports)

    def executor_pids(self, worker: int | None = None) -> list[int]:
        """The executor JVMs, of all Workers or of the Worker with that index."""
        parents = self.worker_pids if worker is None else [self.worker_pids[worker]]
        return [
            process.pid
            for process in self._processes()
            if process.ppid() in parents and "ExecutorBackend" in " ".join(process.cmdline())
        ]

    def kill_worker(self, worker: int) -> None:
        """kill -9 the Worker with that index. Its executors notice and leave by themselves."""
        os.kill(self.worker_pids[worker], signal.SIGKILL)

    def restart_worker(self, worker: int) -> None:
        """Start a Worker in the place of the one with that index, which was killed.

        Returns when the Master has it: from then on it is given executors of applications that
        run with less than they asked for.
        """
        [killed] = [child for child in self._children if child.pid == self.worker_pids[worker]]
        killed.wait()
        self.worker_pids[worker], self._worker_ports[worker] = self._spawn_worker()
        self._await_workers([self._worker_ports[worker]])

    def kill(self, pid: int) -> None:
        """kill -9 a process of the cluster, for example one of `executor_pids`."""
        if pid not in {process.pid for process in self._processes()}:
            raise ValueError(f"process {pid} is not part of this cluster")
        os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill what is left of the cluster and wait until it is gone."""
        while left := self._processes():
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=5)
        for child in self._children:
            child.wait()  # also of those that were killed before: no zombie stays

    def _spawn_worker(self) -> tuple[int, int]:
        """A new Worker: its process id and its port, by which the Master's page names it."""
        port = free_ports(1)[0]
        pid = self._spawn(
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"),
            *(*self._worker_options, self.master_url),
        )
        return pid, port

    def _spawn(self, main_class: str, *args: str) -> int:
        log = self._folder / f"{main_class.rpartition('.')[2]}-{len(self._children)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [str(self._spark_home / "bin" / "spark-class"), main_class, *args],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C for the test is not one for the cluster
            )
        self._children.append(process)
        return process.pid  # spark-class ends in exec, so this becomes the JVM

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            _MARK: self._mark,  # executors and Python workers inherit it: how `stop` finds them
            "SPARK_DAEMON_JAVA_OPTS": os.environ.get("SPARK_DAEMON_JAVA_OPTS", _QUICK_START),
            "SPARK_HOME": str(self._spark_home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(self._folder / "work"),
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "PYSPARK_PYTHON": sys.executable,
        }

    def _await_workers(self, ports: Iterable[int]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._alive_workers().issuperset(ports):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the cluster is not up after {START_SECONDS:.0f} s")
            time.sleep(0.1)

    def _alive_workers(self) -> set[int]:
        """The ports of the Workers that the Master counts on."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self._web_port}/json/", timeout=5
            ) as answer:
                workers = json.load(answer)["workers"]
        except (OSError, ValueError):
            # Not up yet, or up but still answering with its front page.
            return set()
        return {int(worker["port"]) for worker in workers if worker["state"] == "ALIVE"}

    def _processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return bool(
                process.environ().get(_MARK) == self._mark
                and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.Error:
            return False


@contextlib.contextmanager
def standalone_cluster(
    workers: int = 2, cores: int = 2, memory: str = "1g"
) -> Iterator[StandaloneCluster]:
    """Run a Master and `workers` Workers with `cores` cores each while the block runs."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-cluster-"))
    cluster = StandaloneCluster(folder)
    try:
        cluster.start(workers, cores, memory)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _spark_home() -> Path:
    """The Spark inside the pip package; looked up without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ImportError("a standalone cluster needs the pyspark package")
    return Path(spec.origin).parent
