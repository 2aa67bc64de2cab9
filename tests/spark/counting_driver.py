"""A driver in a process of its own that counts ticks, and the test's view of it.

As a program it runs one job (`Ticker` -> key_by -> `Count` -> exactly-once files) and prints a
line of JSON about it many times a second; `CountingDriver` starts it and reads the lines.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyspark
from job_parts import Count, Ticker, as_line, check_ticks, environment, key_of
from patience import until
from pyspark import SparkContext

from penstock.common import JobClient, WatermarkStrategy
from penstock.datastream.connectors.file_system import FileSink
from penstock.errors import PenstockError


class CountingDriver:
    """A running driver. Leave the block to end it, whatever has become of it."""

    program = __file__

    def __init__(
        self,
        folder: Path,
        parallelism: int,
        rate: float = 1_000,
        more: dict[str, Any] | None = None,
        patience: float = 90,
        **settings: Any,
    ) -> None:
        """`patience` is how many seconds it may take to come to what is waited for."""
        self.folder = folder
        self._patience = patience
        folder.mkdir(parents=True, exist_ok=True)
        self._stderr = (folder / "stderr").open("w+")
        options = {
            "folder": str(folder),
            "parallelism": parallelism,
            "rate": rate,
            "settings": settings,
            **(more or {}),
        }
        self._process = subprocess.Popen(
            self._launch_command(sys.executable, self.program, json.dumps(options)),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            start_new_session=True,
        )
        self.latest: dict[str, Any] = {"status": "", "attempt": 0, "slots": [], "completed": 0}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _launch_command(self, *command: str) -> list[str]:
        """The command that runs `command` where the driver is to run."""
        return list(command)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.latest = json.loads(line)

    def __enter__(self) -> CountingDriver:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._stderr.close()
        if "application" in self.latest:
            # Where local-cluster puts its executors' logs.
            work = Path(pyspark.__file__).parent / "work" / self.latest["application"]
            shutil.rmtree(work, ignore_errors=True)

    # --- looking ------------------------------------------------------------------------------

    def wait_for(self, condition: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
        """Wait until `condition` holds of the latest picture of the job; that picture."""

        def holds() -> dict[str, Any] | None:
            latest = self.latest
            if condition(latest):
                return latest
            assert self._process.poll() is None and "ended" not in latest, self.story()
            return None

        try:
            return until(holds, what, self._patience)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None

    def next_attempt(self, after: dict[str, Any]) -> dict[str, Any]:
        """Wait until a later attempt than the one of `after` has all its slots."""
        return self.wait_for(
            lambda now: now["attempt"] > after["attempt"] and now["slots"],
            f"another attempt than {after['attempt']}",
        )

    def recovered(self, after: dict[str, Any]) -> dict[str, Any]:
        """Wait until a later attempt than the one of `after` has completed a checkpoint."""
        return self.wait_for(
            lambda now: (
                now["attempt"] > after["attempt"]
                and now["completed"] > after["completed"]
                and now["status"] == "RUNNING"
            ),
            f"a checkpoint after attempt {after['attempt']}",
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def executors(self) -> list[int]:
        """The executor JVMs of a local-cluster, which are children of the driver's."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        return [child.pid for child in children if "ExecutorBackend" in _command(child)]

    def story(self) -> str:
        self._stderr.flush()
        return f"{self.latest}\n{(self.folder / 'stderr').read_text()[-4000:]}"

    # --- ending -------------------------------------------------------------------------------

    def kill(self) -> None:
        """kill -9 the driver's Python."""
        self._process.kill()

    def wait_killed(self, timeout: float = 60) -> None:
        """Wait until the driver has been killed, by itself or somebody else."""
        assert self._process.wait(timeout) == -signal.SIGKILL, self.story()

    def finish(self) -> dict[str, Any]:
        """Let the source end; what became of the job, its output checked."""
        (self.folder / "stop").touch()
        end = self.wait_for(lambda now: "ended" in now, "the job ends")
        assert end["ended"] == "FINISHED", self.story()
        end["records"] = check_ticks(self.folder / "out", self.folder / "stop")
        return end


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def start(options: dict[str, Any]) -> JobClient:
    """Start the job."""
    folder = Path(options["folder"])
    env = environment(
        options["parallelism"], folder / "checkpoints", "200 ms", settings=options["settings"]
    )
    source = Ticker(folder / "stop", options["rate"])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "ticks")
    stream = stream.key_by(key_of).process(Count()).map(as_line)
    stream.sink_to(FileSink.for_row_format(str(folder / "out")).build())
    return env.execute_async("counting")


def report(job: JobClient, more: Callable[[], dict[str, Any]] = dict) -> None:
    """Say how the job is until it has ended, and what there is `more` to say."""
    result = job.get_job_execution_result()
    context = SparkContext._active_spark_context
    said: dict[str, Any] = {}
    while "ended" not in said:
        done = result.done()
        progress = job.progress()
        said = {
            "status": progress.status.value,
            "attempt": progress.attempt,
            "restarts": progress.restarts,
            "completed": progress.completed_checkpoints,
            "slots": [pid for _, pid in progress.slots.values()],
            "places": list(progress.slots.values()),
            "application": context.applicationId if context is not None else "",
            **more(),
        }
        if done:
            said["ended"] = job.get_job_status().result().value
            error = result.exception()
            said["error"] = str(error) if isinstance(error, PenstockError) else repr(error)
        print(json.dumps(said), flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    report(start(json.loads(sys.argv[1])))
