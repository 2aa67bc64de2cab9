"""Savepoints: taken, copied elsewhere, restored by other jobs, disposed of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from patience import PATIENCE
from totals_job import (
    BELOW,
    KEYS,
    NUMBERS,
    after_some,
    as_line,
    environment,
    expected,
    stopped,
    totals,
    written,
)

from penstock.checkpoint.savepoints import dispose, open_snapshot
from penstock.common import WatermarkStrategy
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import CheckpointError, CorruptCheckpointError, JobFailedError, StorageError
from penstock.testing import local_environment
from penstock.testing.local_environment import LocalEnvironment


@pytest.fixture
def env() -> Iterator[LocalEnvironment]:
    with environment() as env:
        yield env


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_a_job_stops_and_goes_on_at_another_parallelism(parallelism: int) -> None:
    with environment() as env:
        job = totals(env, NUMBERS)
        after_some(job)
        path = job.stop_with_savepoint(False, f"{env.storage}/savepoints").result(PATIENCE)
        job.get_job_execution_result().result(PATIENCE)
        before = written(env)
        assert 0 < len(before) < NUMBERS, "what lies before the savepoint is committed"
        totals(env, NUMBERS, parallelism, path).get_job_execution_result().result(PATIENCE)
        assert env.simulation.restored
        assert written(env) == expected(NUMBERS)


def test_after_a_savepoint_the_job_goes_on(env: LocalEnvironment) -> None:
    job = totals(env, NUMBERS)
    after_some(job)
    path = job.trigger_savepoint(f"{env.storage}/savepoints").result(PATIENCE)
    assert open_snapshot(path).metadata.committables.get("files") is not None
    job.get_job_execution_result().result(PATIENCE)
    assert written(env) == expected(NUMBERS)
    assert path.startswith(f"{env.storage}/savepoints/savepoint-")


def test_a_savepoint_is_whole_in_itself_and_may_be_moved(env: LocalEnvironment) -> None:
    job = totals(env, NUMBERS)
    after_some(job)
    path = job.stop_with_savepoint(False, f"{env.storage}/savepoints").result(PATIENCE)
    job.get_job_execution_result().result(PATIENCE)
    files = env.filesystem.files
    folder = path.removeprefix(env.storage)
    for name in [name for name in files if name.startswith(folder)]:
        files["/elsewhere/mine" + name.removeprefix(folder)] = files.pop(name)
    assert not any(name.startswith(("/checkpoints", "/savepoints")) for name in files)
    moved = f"{env.storage}/elsewhere/mine"
    totals(env, NUMBERS, 3, moved).get_job_execution_result().result(PATIENCE)
    assert written(env) == expected(NUMBERS)


def test_two_jobs_from_one_savepoint_and_the_first_goes_on(env: LocalEnvironment) -> None:
    job = totals(env, NUMBERS)
    after_some(job)
    path = job.trigger_savepoint(f"{env.storage}/savepoints").result(PATIENCE)
    job.get_job_execution_result().result(PATIENCE)
    for parallelism, out in ((1, "a"), (3, "b")):
        totals(env, NUMBERS, parallelism, path, out).get_job_execution_result().result(PATIENCE)
    # Each goes on where the savepoint was, and ends where the others end.
    assert written(env, "a") == written(env, "b")
    assert 0 < len(written(env, "a")) < NUMBERS
    last = NUMBERS - 1
    assert set(expected(NUMBERS)) >= set(written(env, "a")) >= {f"{last % KEYS} {1 + last // KEYS}"}
    assert written(env) == expected(NUMBERS)


def test_what_a_savepoint_covers_is_committed_and_marked(env: LocalEnvironment) -> None:
    job = totals(env, 10**9, **{BELOW + "interval": "1 h"})
    while not any(metrics.records_in for metrics in job.progress().metrics.values()):
        assert not job.get_job_execution_result().done()
    path = job.trigger_savepoint(f"{env.storage}/savepoints").result(PATIENCE)
    covered = open_snapshot(path).metadata.committables["files"]
    assert covered
    assert all(part["from"] not in env.filesystem.files for part in covered)
    assert len(written(env)) > 0
    assert open_snapshot(path).is_committed()
    job.cancel().result(PATIENCE)


def test_the_job_does_not_need_the_copy(env: LocalEnvironment) -> None:
    """The savepoint is gone when the job has to go on from its checkpoint."""
    job = totals(env, NUMBERS, **{BELOW + "interval": "1 h"})
    while not any(metrics.records_in for metrics in job.progress().metrics.values()):
        assert not job.get_job_execution_result().done()
    path = job.trigger_savepoint(f"{env.storage}/savepoints").result(PATIENCE)
    dispose(path)
    simulation = env.simulation
    # In the simulation's own thread, which may be in the midst of a turn of that process.
    env._runners[-1]._at_next_tick(
        lambda: simulation.crash(next(iter(simulation.processes.values())))
    )
    job.get_job_execution_result().result(PATIENCE)
    assert job.progress().restarts == 1
    assert written(env) == expected(NUMBERS)


def test_without_checkpoints_there_are_savepoints_too() -> None:
    with local_environment(seed=5) as env:
        source = NumberSequenceSource(0, NUMBERS - 1)

        def start(parallelism: int, path: str | None) -> Any:
            env.set_parallelism(parallelism)
            if path is not None:
                env._configuration.set_string("execution.state-recovery.path", path)
            stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
            counts = stream.map(lambda n: (n % KEYS, 1)).key_by(lambda pair: pair[0])
            counts = counts.reduce(lambda a, b: (a[0], a[1] + b[1]))
            counts.sink_to(FileSink.for_row_format(f"{env.storage}/out", as_line).build())
            return env.execute_async("no checkpoints")

        job = start(2, None)
        path = job.stop_with_savepoint(False, f"{env.storage}/savepoints").result(PATIENCE)
        job.get_job_execution_result().result(PATIENCE)
        start(3, path).get_job_execution_result().result(PATIENCE)
        assert written(env) == expected(NUMBERS)


def test_a_directory_must_be_known(env: LocalEnvironment) -> None:
    job = totals(env, 10**9)
    with pytest.raises(CheckpointError, match=r"set state\.savepoints\.dir"):
        job.trigger_savepoint().result(PATIENCE)
    with pytest.raises(CheckpointError, match="ends with the process"):
        job.trigger_savepoint("memory:///savepoints").result(PATIENCE)
    job.cancel().result(PATIENCE)
    with pytest.raises(CheckpointError, match="the job is CANCELED"):
        job.trigger_savepoint(f"{env.storage}/savepoints").result(PATIENCE)


def test_the_configured_directory_is_used(env: LocalEnvironment) -> None:
    job = totals(env, 10**9, **{"state.savepoints.dir": f"{env.storage}/mine"})
    assert job.trigger_savepoint().result(PATIENCE).startswith(f"{env.storage}/mine/savepoint-")
    job.cancel().result(PATIENCE)


class AtTheEnd(KeyedProcessFunction):
    """Says every key once, when event time ends."""

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer((1 << 63) - 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[int]:
        yield ctx.get_current_key()


def test_drained_every_timer_fires_before_the_job_ends() -> None:
    with environment() as env:
        env._configuration.set_string(BELOW + "dir", f"{env.storage}/checkpoints")
        source = NumberSequenceSource(0, 10**9)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        keyed = stream.key_by(lambda n: n % 3)
        files = FileSink.for_row_format(f"{env.storage}/out", lambda n: f"{n}\n".encode()).build()
        keyed.process(AtTheEnd()).sink_to(files)
        job = env.execute_async("drained")
        after_some(job)
        assert written(env) == []
        job.stop_with_savepoint(True, f"{env.storage}/savepoints").result(PATIENCE)
        job.get_job_execution_result().result(PATIENCE)
        assert written(env) == ["0", "1", "2"]


def test_a_savepoint_that_fails_leaves_the_job_running(env: LocalEnvironment) -> None:
    job = totals(env, NUMBERS)
    env.filesystem.create = _refusing(  # type: ignore[method-assign]
        "/savepoints/", env.filesystem.create
    )
    directory = f"{env.storage}/savepoints"
    with pytest.raises(CheckpointError, match="savepoint failed"):
        job.trigger_savepoint(directory).result(PATIENCE)
    with pytest.raises(CheckpointError, match="savepoint failed"):
        job.stop_with_savepoint(False, directory).result(PATIENCE)
    job.get_job_execution_result().result(PATIENCE)
    assert job.progress().restarts == 0
    assert written(env) == expected(NUMBERS)


def _refusing(where: str, create: Callable[..., bool]) -> Any:
    def refuse(path: str, *parts: bytes) -> bool:
        if where in path:
            raise StorageError(f"cannot create {path}: No space left on device")
        return create(path, *parts)

    return refuse


def test_disposing_leaves_nothing(env: LocalEnvironment) -> None:
    path = stopped(env)
    dispose(path)
    assert not any(name.startswith("/savepoints") for name in env.filesystem.files)
    with pytest.raises(CheckpointError, match="there is no savepoint or checkpoint"):
        dispose(path)


def test_what_is_claimed_is_the_jobs_own(env: LocalEnvironment) -> None:
    path = stopped(env)
    claim = {"execution.state-recovery.claim-mode": "CLAIM"}
    totals(env, NUMBERS, 3, path, **claim).get_job_execution_result().result(PATIENCE)
    assert written(env) == expected(NUMBERS)
    assert not any(name.startswith("/savepoints") for name in env.filesystem.files)


def test_what_is_not_claimed_stays(env: LocalEnvironment) -> None:
    path = stopped(env)
    before = {n: d for n, d in env.filesystem.files.items() if n.startswith("/savepoints")}
    totals(env, NUMBERS, 3, path).get_job_execution_result().result(PATIENCE)
    assert before == {n: d for n, d in env.filesystem.files.items() if n.startswith("/savepoints")}


def test_a_damaged_savepoint_is_refused(env: LocalEnvironment) -> None:
    path = stopped(env)
    name = next(n for n in env.filesystem.files if n.startswith("/savepoints") and "shared" in n)
    env.filesystem.files[name] = env.filesystem.files[name][:-1]
    job = totals(env, NUMBERS, 2, path)
    with pytest.raises(JobFailedError) as failed:
        job.get_job_execution_result().result(PATIENCE)
    assert isinstance(failed.value.__cause__, CorruptCheckpointError)
    assert "savepoint" in str(failed.value) and "cut short" in str(failed.value)


@pytest.mark.parametrize(("first", "second"), [("hashmap", "rocksdb"), ("rocksdb", "hashmap")])
def test_a_savepoint_of_one_backend_is_restored_by_another(first: str, second: str) -> None:
    key = "state.backend.type"
    with environment() as env:
        job = totals(env, NUMBERS, **{key: first})
        after_some(job)
        path = job.stop_with_savepoint(False, f"{env.storage}/savepoints").result(PATIENCE)
        job.get_job_execution_result().result(PATIENCE)
        totals(env, NUMBERS, 3, path, **{key: second}).get_job_execution_result().result(PATIENCE)
        assert env.simulation.restored
        assert written(env) == expected(NUMBERS)
