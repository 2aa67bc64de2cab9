"""A running job changes its parallelism: what changes, what stays, and when it is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from patience import PATIENCE

from penstock.common import Configuration, IntCounter, WatermarkStrategy
from penstock.common.job_status import JobStatus
from penstock.datastream import MapFunction
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import InvalidParallelismError, ProgramError, RescaleError
from penstock.testing import local_environment
from penstock.testing.local_environment import LocalEnvironment

BELOW = "execution.checkpointing."
KEYS = 7
NUMBERS = 50_000


def environment(**more: str) -> Any:
    values = {BELOW + "interval": "10 ms", **more}
    return local_environment(seed=3, configuration=Configuration.from_dict(values))


@pytest.fixture
def env() -> Iterator[LocalEnvironment]:
    with environment() as env:
        yield env


class Seen(MapFunction):
    """Counts its records in an accumulator."""

    def open(self, runtime_context: Any) -> None:
        self._seen = IntCounter()
        runtime_context.add_accumulator("seen", self._seen)

    def map(self, value: Any) -> Any:
        self._seen.add(1)
        return value


class OnlyBelow(MapFunction):
    """Cannot be opened at a parallelism of `limit` or more."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def open(self, runtime_context: Any) -> None:
        parallelism = runtime_context.get_number_of_parallel_subtasks()
        if parallelism >= self._limit:
            raise RuntimeError(f"cannot be {parallelism}")

    def map(self, value: Any) -> Any:
        return value


def counting(env: LocalEnvironment, numbers: int = NUMBERS, function: Any = None) -> Any:
    """Start a job that writes the running count of every key to files."""
    env.set_parallelism(2)
    source = NumberSequenceSource(0, numbers - 1)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("source")
    ones = stream.map(function or Seen()).map(lambda n: (n % KEYS, 1)).uid("ones")
    counts = ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    files = FileSink.for_row_format(f"{env.storage}/out", _line).build()
    counts.uid("counts").sink_to(files).uid("files").set_parallelism(1)
    return env.execute_async("counting")


def _line(value: Any) -> bytes:
    return f"{value[0]} {value[1]}\n".encode()


def written(env: LocalEnvironment) -> list[str]:
    return sorted(
        line
        for path, data in env.filesystem.files.items()
        if path.startswith("/out/") and not path.rsplit("/", 1)[1].startswith(".")
        for line in data.decode().splitlines()
    )


def expected(numbers: int = NUMBERS) -> list[str]:
    counts = Counter(n % KEYS for n in range(numbers))
    return sorted(f"{key} {i + 1}" for key, count in counts.items() for i in range(count))


def parallelisms(job: Any) -> dict[str, int]:
    return {node.uid: node.parallelism for vertex in job.graph.vertices for node in vertex.nodes}


def test_it_goes_on_at_each_parallelism_as_the_same_job(env: LocalEnvironment) -> None:
    job = counting(env)
    job_id, ids = job.get_job_id(), []
    for parallelism in (3, 1, 4):
        job.rescale(parallelism).result(PATIENCE)
        assert parallelisms(job)["counts"] == parallelisms(job)["ones"] == parallelism
        assert parallelisms(job)["files"] == 1, "it has a parallelism of its own"
        ids.append(job.trigger_checkpoint().result(PATIENCE))
    assert ids == sorted(set(ids)), "the ids of checkpoints only grow"
    result = job.get_job_execution_result().result(PATIENCE)
    assert written(env) == expected()
    assert result.get_job_id() == job_id
    assert result.get_accumulator_result("seen") == NUMBERS, "each record once"
    progress = job.progress()
    assert (progress.attempt, progress.restarts) == (4, 0), "it counts as no failure"
    assert JobStatus.FAILING not in env.simulation.statuses


def test_it_runs_at_the_new_parallelism_when_the_future_is_done(env: LocalEnvironment) -> None:
    job = counting(env, 10**9)
    job.rescale(4).result(PATIENCE)
    assert len(env.simulation.master.progress().slots) == 4
    assert job.get_job_status().result() is JobStatus.RUNNING


def test_checkpoints_in_the_drivers_memory_will_do() -> None:
    with environment() as env:
        assert BELOW + "dir" not in env._values()
        job = counting(env)
        job.rescale(3).result(PATIENCE)
        job.get_job_execution_result().result(PATIENCE)
        assert written(env) == expected()


def test_the_same_parallelism_is_no_change(env: LocalEnvironment) -> None:
    job = counting(env, 10**9)
    job.rescale(2).result(PATIENCE)
    job.rescale(2).result(PATIENCE)
    assert env.simulation.master.progress().attempt <= 1


def test_a_restart_keeps_the_new_parallelism(env: LocalEnvironment) -> None:
    job = counting(env)
    job.rescale(3).result(PATIENCE)
    runner = env._runners[-1]
    runner._at_next_tick(lambda: runner.simulation.master.fail(RuntimeError("on purpose")))
    job.get_job_execution_result().result(PATIENCE)
    assert job.progress().restarts == 1
    assert parallelisms(job)["counts"] == 3
    assert written(env) == expected()


# --- refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [0, -1])
def test_below_one_nothing_runs(env: LocalEnvironment, parallelism: int) -> None:
    job = counting(env, 10**9)
    with pytest.raises(InvalidParallelismError, match="runs nothing"):
        job.rescale(parallelism).result(PATIENCE)
    assert not job.get_job_execution_result().done()


def test_above_the_largest_parallelism_there_are_no_key_groups(env: LocalEnvironment) -> None:
    env.set_max_parallelism(4)
    job = counting(env, 10**9)
    with pytest.raises(InvalidParallelismError, match="is not between 1 and its max parallelism 4"):
        job.rescale(5).result(PATIENCE)
    assert not job.get_job_execution_result().done()


def test_too_few_cores_are_noticed_before_anything_is_stopped(env: LocalEnvironment) -> None:
    job = counting(env)
    env.simulation.cores = 2
    with pytest.raises(RescaleError, match="the job was not rescaled: simulated: too few cores"):
        job.rescale(3).result(PATIENCE)
    job.get_job_execution_result().result(PATIENCE)
    assert job.progress().attempt == 1, "it went on as before"
    assert written(env) == expected()


def test_without_checkpoints_there_is_nothing_to_go_on_from() -> None:
    with local_environment(seed=3) as env:
        job = counting(env, 10**9)
        with pytest.raises(RescaleError, match=r"it has no checkpoints; set execution\.check"):
            job.rescale(3).result(PATIENCE)


def test_a_job_that_has_ended_stays_as_it_is(env: LocalEnvironment) -> None:
    job = counting(env, 10)
    job.get_job_execution_result().result(PATIENCE)
    with pytest.raises(RescaleError, match="it is finished"):
        job.rescale(3).result(PATIENCE)


def test_where_every_operator_has_its_own_parallelism_there_is_none_to_change(
    env: LocalEnvironment,
) -> None:
    env.from_collection(range(10)).print().set_parallelism(1)
    job = env.execute_async("fixed")
    with pytest.raises(ProgramError, match="every operator has a parallelism of its own"):
        job.rescale(3).result(PATIENCE)


def test_one_change_at_a_time(env: LocalEnvironment) -> None:
    job = counting(env, 10**9)
    first, second = job.rescale(3), job.rescale(4)
    with pytest.raises(RescaleError, match="it is being rescaled already"):
        second.result(PATIENCE)
    first.result(PATIENCE)
    assert parallelisms(job)["counts"] == 3


def test_a_job_that_is_cancelled_meanwhile_says_so(env: LocalEnvironment) -> None:
    job = counting(env, 10**9)
    asked = job.rescale(3)
    job.cancel()
    with pytest.raises(RescaleError, match="it is canceled"):
        asked.result(PATIENCE)


# --- half-way ---------------------------------------------------------------------------------


def test_slots_that_do_not_come_up_are_no_harm(env: LocalEnvironment) -> None:
    job = counting(env)
    runner = env._runners[-1]
    while not runner.simulation.processes:
        pass
    runner.simulation.later_cores = 2
    with pytest.raises(RescaleError, match="went back to how it ran before: simulated: no core"):
        job.rescale(3).result(PATIENCE)
    result = job.get_job_execution_result().result(PATIENCE)
    assert parallelisms(job)["counts"] == 2
    assert written(env) == expected()
    assert result.get_accumulator_result("seen") == NUMBERS
    assert job.progress().restarts == 0


def test_a_function_that_cannot_be_opened_there_is_no_harm(env: LocalEnvironment) -> None:
    job = counting(env, function=OnlyBelow(3))
    with pytest.raises(RescaleError, match=r"went back to how it ran before: .*cannot be 3"):
        job.rescale(3).result(PATIENCE)
    job.rescale(1).result(PATIENCE)
    job.get_job_execution_result().result(PATIENCE)
    assert parallelisms(job)["counts"] == 1
    assert written(env) == expected()


def test_a_savepoint_that_waits_is_taken_afterwards(env: LocalEnvironment) -> None:
    job = counting(env, 10**9)
    asked = job.rescale(3)
    path = job.trigger_savepoint(f"{env.storage}/savepoints").result(PATIENCE)
    asked.result(PATIENCE)
    assert path


# --- among faults -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_among_faults(seed: int) -> None:
    with local_environment(seed=seed, faults=True) as env:
        job = counting(env)
        for parallelism in (3, 1, 2):
            asked = job.rescale(parallelism)
            try:
                asked.result(PATIENCE)
            except RescaleError:
                continue
        job.get_job_execution_result().result(PATIENCE)
        assert written(env) == expected()
