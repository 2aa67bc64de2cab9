"""Storage that is full, gone, or shared by mistake: what a job does about it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import CheckpointDirectoryError, ProgramError, StorageError
from penstock.jobmanager.dispatcher import Dispatcher
from penstock.jobmanager.resource_manager import ResourceManager
from penstock.testing import local_environment
from penstock.testing.local_environment import LocalEnvironment

BELOW = "execution.checkpointing."


def counting(env: LocalEnvironment) -> Any:
    """A job with state that runs until it is cancelled."""
    env._configuration.set_string(BELOW + "dir", f"{env.storage}/checkpoints")
    source = NumberSequenceSource(0, 10**12)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    stream.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).filter(lambda _: False).print()
    return env.execute_async("counting")


def wait_for(job: Any, holds: Callable[[Any], bool]) -> Any:
    while not holds(job.progress()):
        assert not job.get_job_execution_result().done(), "it ended before that"
    return job.progress()


@pytest.mark.parametrize("what", ["", "/_metadata", "/shared/"])
def test_a_full_disk_fails_checkpoints_and_not_the_job(what: str) -> None:
    configuration = Configuration.from_dict({BELOW + "interval": "10 ms"})
    with local_environment(seed=3, configuration=configuration) as env:
        job = counting(env)
        wait_for(job, lambda now: now.completed_checkpoints >= 2)
        create, full = env.filesystem.create, threading.Event()

        def refuse(path: str, data: bytes) -> bool:
            if full.is_set() and what in path:
                raise StorageError(f"cannot create {path}: No space left on device")
            return create(path, data)

        env.filesystem.create = refuse  # type: ignore[method-assign]
        full.set()
        before = wait_for(job, lambda now: now.failed_checkpoints >= 3)
        reasons = [record.reason or "" for record in before.checkpoints]
        assert any("No space left on device" in reason for reason in reasons)
        full.clear()
        done = before.completed_checkpoints
        after = wait_for(job, lambda now: now.completed_checkpoints >= done + 3)
        assert after.restarts == 0, "the job went on"
        newest, damaged = env.simulation.job.store.newest()  # type: ignore[union-attr]
        assert newest is not None and damaged == []
        job.cancel().result(30)
        left = [path for path in env.filesystem.files if "/checkpoints/" in path]
        assert left == [], "also what nobody knew of is deleted"


_LIMITED = """
import resource, signal, sys
from penstock.checkpoint.store import CheckpointStore
from penstock.errors import StorageError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
store = CheckpointStore(sys.argv[1], "job")
store.prepare()
store.write_segment("small", bytes(1_000))
try:
    store.write_segment("large", bytes(1_000_000))
except StorageError as error:
    print(error)
store.write_segment("large", bytes(10_000))
"""


def test_a_file_that_does_not_fit_leaves_nothing_half(tmp_path: Path) -> None:
    """On a real file system that refuses in the middle of a write."""
    command = [sys.executable, "-c", _LIMITED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"cannot create {tmp_path}/job/shared/large: File too large\n"
    sizes = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert sizes == {"small": 1_000, "large": 10_000}


def test_storage_that_is_full_at_the_start_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = Configuration.from_dict({BELOW + "interval": "10 ms"})
    with local_environment(configuration=configuration) as env:

        def refuse(path: str, data: bytes) -> bool:
            raise StorageError(f"cannot create {path}: No space left on device")

        env.filesystem.create = refuse  # type: ignore[method-assign]
        with pytest.raises(CheckpointDirectoryError, match="No space left on device; choose"):
            counting(env)


# --- one job id, two jobs ---------------------------------------------------------------------


class _NoCluster:
    """Never starts a slot."""

    def check_capacity(self, slots: int) -> None:
        threading.Event().wait()

    def launch(self, *args: Any) -> Any:
        raise AssertionError("nothing is launched")

    def host(self) -> str:
        return "127.0.0.1"


class _NoListener:
    def deliver(self, uid: str, subtask: int, values: list[Any]) -> None: ...

    def backlog(self) -> int:
        return 0


def test_two_jobs_with_one_id_in_one_session_the_second_is_refused(tmp_path: Path) -> None:
    with local_environment() as env:
        env._configuration.set_string(BELOW + "interval", "1 s")
        env._configuration.set_string(BELOW + "dir", str(tmp_path))
        env.from_collection([1]).print()
        job = env._assemble("one", "the-id")
    dispatcher = Dispatcher(ResourceManager(_NoCluster(), lambda *args: None))
    runner = dispatcher.submit(job, _NoListener())
    with pytest.raises(ProgramError, match="a job with id the-id is already running here"):
        dispatcher.submit(job, _NoListener())
    store = runner.job.store
    assert store is not None
    store.check_current()
    assert CheckpointStore(str(tmp_path), "the-id").claim().generation == 2
    runner.cancel()
    assert runner.join(30)
