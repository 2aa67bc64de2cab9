"""A Spark standalone cluster whose master, workers and drivers are on hosts of their own."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import job_parts
import patience
import psutil
from clusters import EXECUTORS
from counting_driver import CountingDriver
from hosts import Host, Network
from patience import until

from penstock.testing.children import die_with_parent

CORES = 2
"""Of every worker."""
_PORT = 7077


class Cluster:
    """A master, and workers, as many as are started."""

    def __init__(
        self, net: Network, domain: str | None = None, conf: Mapping[str, str] | None = None
    ) -> None:
        """With `domain`, hosts are called by names that end in it; else by their addresses."""
        self.net = net
        self._domain = domain
        self._conf = dict(conf or {})
        self._starts = 0
        self.master = net.host("master")
        self.master_url = f"spark://{self.call(self.master)}:{_PORT}"
        self._log = self._start(
            self.master,
            "org.apache.spark.deploy.master.Master",
            *("--host", self.call(self.master), "--port", str(_PORT)),
        )

    def call(self, host: Host) -> str:
        """What others call the host."""
        return host.address if self._domain is None else f"{host.name}{self._domain}"

    def start_worker(self, host: Host) -> None:
        """Start a worker on the host; returns when the master has it."""
        before = self._registered(host)
        self._start(
            host,
            "org.apache.spark.deploy.worker.Worker",
            *("--host", self.call(host), "--cores", str(CORES), "--memory", "1g"),
            self.master_url,
        )
        until(lambda: self._registered(host) > before, f"the master has {host.name}'s worker")

    def settings(self) -> dict[str, str]:
        """The settings of a driver's session on this cluster."""
        return {"spark.master": self.master_url, **EXECUTORS, **self._conf}

    def _registered(self, host: Host) -> int:
        return self._log.read_text().count(f"Registering worker {self.call(host)}:")

    def _start(self, host: Host, main_class: str, *args: str) -> Path:
        self._starts += 1
        properties = host.folder / "tmp" / "spark.conf"  # the host's /tmp/spark.conf
        properties.write_text("".join(f"{key} {value}\n" for key, value in self._conf.items()))
        home = spark_home()
        log = host.folder / f"{main_class.rpartition('.')[2]}-{self._starts}.log"
        command = [str(home / "bin" / "spark-class"), main_class]
        with log.open("wb") as out:
            subprocess.Popen(
                host.enter(*command, "--properties-file", "/tmp/spark.conf", *args),
                env={
                    **os.environ,
                    "SPARK_HOME": str(home),
                    "SPARK_WORKER_DIR": "/tmp/work",
                    "SPARK_LOCAL_DIRS": "/tmp/local",
                    "PYSPARK_PYTHON": sys.executable,
                },
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        return log


def spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


class HostedDriver(CountingDriver):
    """A counting driver on a host of its own, which it has for itself."""

    def __init__(
        self, host: Host, cluster: Cluster, folder: Path, parallelism: int, **settings: Any
    ) -> None:
        self._host = host
        # Workers are started without the tests' search path, as a user's are.
        program = {"python.files": f"{job_parts.__file__},{patience.__file__}"}
        settings = {**cluster.settings(), **program, **settings}
        super().__init__(folder, parallelism, patience=300, **settings)

    def _launch_command(self, *command: str) -> list[str]:
        return self._host.enter(*command)

    def kill(self) -> None:
        """kill -9 the driver's Python."""
        for process in self._host.named("counting_driver"):
            process.kill()

    def __exit__(self, *exc_info: object) -> None:
        self._host.kill_all()
        super().__exit__(*exc_info)


def slots_on(now: dict[str, Any], host: Host) -> list[psutil.Process]:
    """The slots of a driver's picture that run on the host."""
    there = host.processes()
    names = (host.address, host.name, f"{host.name}.net")
    return [there[pid] for called, pid in now["places"] if called in names and pid in there]


def kill(process: psutil.Process) -> None:
    os.kill(process.pid, signal.SIGKILL)
