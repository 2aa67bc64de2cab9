"""Whole programs in one process."""

from __future__ import annotations

import pytest
from patience import PATIENCE

from penstock.common import Configuration, IntCounter, JobStatus, Types, WatermarkStrategy
from penstock.connectors import QueueEnumerator, Source, SourceReader
from penstock.datastream import (
    KeyedProcessFunction,
    MapFunction,
    StreamExecutionEnvironment,
    job_client,
)
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import JobCancelledError, JobFailedError, ProgramError
from penstock.testing import FaultRates, LocalEnvironment, local_environment


class Count(KeyedProcessFunction):
    def open(self, runtime_context) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.seen = runtime_context.get_metrics_group().counter("seen")
        self.accumulator = IntCounter()
        runtime_context.add_accumulator("records", self.accumulator)

    def process_element(self, value, ctx):
        self.seen.inc()
        self.accumulator.add(1)
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


def counts(env):
    return env.from_collection(range(90)).key_by(lambda n: n % 3).process(Count())


COUNTED = [(key, count) for key in range(3) for count in range(1, 31)]


def endless(env):
    source = DataGeneratorSource(lambda n: n, rate_per_second=1000)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")


def test_a_program_runs_and_gives_its_records() -> None:
    with local_environment() as env:
        env.set_parallelism(2)
        assert sorted(counts(env).execute_and_collect()) == COUNTED


def test_a_result_has_metrics_accumulators_and_the_time_it_took(capsys) -> None:
    with local_environment() as env:
        env.set_parallelism(2)
        counts(env).print()
        result = env.execute("counts")
    assert len(capsys.readouterr().out.splitlines()) == 90
    assert result.get_all_accumulator_results() == {"records": 90}
    assert sum(m.value for m in result.metrics if m.name == "seen") == 90
    assert result.get_net_runtime() > 0


@pytest.mark.parametrize("seed", range(12))
def test_a_program_survives_what_a_seed_has_in_mind(seed: int) -> None:
    with local_environment(seed, faults=True) as env:
        env.set_parallelism(2)
        assert sorted(counts(env).execute_and_collect()) == COUNTED, env.faults


def test_faults_happen_when_asked_for_only() -> None:
    faults = 0
    for seed in range(6):
        with local_environment(seed, faults=FaultRates(crash=0.01, budget=2)) as env:
            assert len(list(counts(env).execute_and_collect())) == 90
            faults += len(env.faults)
        with local_environment(seed) as env:
            list(counts(env).execute_and_collect())
            assert env.faults == []
    assert faults > 0


def test_jobs_with_faults_run_one_after_another_and_each_has_its_own() -> None:
    rates = FaultRates(crash=0.05, storage_error=0.05, budget=2)
    with local_environment(1, faults=rates) as env:
        for _ in range(5):
            assert sorted(counts(env).execute_and_collect()) == COUNTED
            assert 1 <= len(env.faults) <= 2
        endless(env).print()
        env.execute_async()
        with pytest.raises(ProgramError, match="one job at a time"):
            counts(env).execute_and_collect()


def test_a_seed_decides_the_run() -> None:
    def digest(seed: int) -> str:
        with local_environment(seed, faults=True) as env:
            env.set_parallelism(2)
            list(counts(env).execute_and_collect())
            return env.simulation.digest()

    assert digest(1) == digest(1) != digest(2)


def main() -> list:
    """A program as users write it."""
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"parallelism.default": 2})
    )
    assert env.get_parallelism() == 2
    return sorted(counts(env).execute_and_collect())


def test_a_program_that_makes_its_own_environment_runs_here_too() -> None:
    with local_environment():
        assert main() == COUNTED
    made = StreamExecutionEnvironment.get_execution_environment()
    assert not isinstance(made, LocalEnvironment)


def test_an_endless_program_can_be_looked_at_and_left() -> None:
    with local_environment() as env:
        assert endless(env).execute_and_collect(limit=3) == [0, 1, 2]
        endless(env).filter(lambda n: False).print()
        client = env.execute_async()
        assert not client.get_job_execution_result().done()
        client.cancel().result(PATIENCE)
        assert client.get_job_status().result() is JobStatus.CANCELED
        with pytest.raises(JobCancelledError):
            client.get_job_execution_result().result()


class Notice(MapFunction):
    def open(self, runtime_context) -> None:
        self.seen = runtime_context.get_metrics_group().counter("seen")
        self.total = IntCounter()
        runtime_context.add_accumulator("total", self.total)

    def map(self, value):
        self.seen.inc()
        self.total.add(1)
        return value


def test_metrics_of_a_running_job_can_be_read() -> None:
    with local_environment() as env:
        records = endless(env).map(Notice()).execute_and_collect()
        client = records.job_client
        seen = 0
        while not seen:
            next(records)
            seen = sum(m.value for m in client.metrics() if m.name == "seen")
        assert client.get_accumulators().result()["total"] >= seen


_failed: list[int] = []


class FailOnce(Notice):
    def map(self, value):
        if value == 50 and not _failed:
            _failed.append(value)
            raise RuntimeError("once")
        return super().map(value)


def test_metrics_and_accumulators_count_the_last_attempt_only() -> None:
    _failed.clear()
    restart = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": 1}
    with local_environment(configuration=Configuration.from_dict(restart)) as env:
        env.from_collection(range(90)).map(FailOnce()).filter(lambda n: False).print()
        result = env.execute()
        assert env.simulation.master.progress().restarts == 1
    assert result.get_accumulator_result("total") == 90
    assert [m.value for m in result.metrics] == [90]


def test_what_still_runs_at_the_end_of_the_block_is_ended() -> None:
    with local_environment() as env:
        endless(env).print()
        client = env.execute_async()
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_ctrl_c_is_passed_on_when_nothing_of_the_job_is_left(monkeypatch) -> None:
    wait, waits = job_client._wait, []

    def interrupted_once(ended) -> None:
        waits.append(ended)
        if len(waits) == 1:
            raise KeyboardInterrupt
        wait(ended)

    monkeypatch.setattr(job_client, "_wait", interrupted_once)
    with local_environment() as env:
        endless(env).filter(lambda n: False).print()
        job = env.execute_async()
        with pytest.raises(KeyboardInterrupt):
            job.result()
        assert job.get_job_status().result() is JobStatus.CANCELED


def test_a_failure_is_told_as_on_a_cluster() -> None:
    with local_environment() as env:
        env.from_collection([1, 0]).map(lambda n: 1 // n).name("Divide").print()
        with pytest.raises(JobFailedError, match=r"Divide"):
            env.execute()


def test_files_can_be_written_to_storage_that_takes_part_in_the_faults() -> None:
    with local_environment(3, faults=True) as env:
        sink = FileSink.for_row_format(f"{env.storage}/out", lambda n: f"{n}\n".encode()).build()
        env.from_collection(range(50)).sink_to(sink)
        env.execute()
        files = env.filesystem.files
        visible = [p for p in files if p.startswith("/out/") and not p.startswith("/out/.")]
        lines = [line for path in visible for line in files[path].decode().splitlines()]
    assert sorted(map(int, lines)) == list(range(50))


def test_the_simulation_is_there_when_a_job_is() -> None:
    with local_environment() as env, pytest.raises(ProgramError, match="no job has been started"):
        _ = env.simulation


class Watched(Source):
    """A hundred numbers; its reader tells how far it has come."""

    def create_enumerator(self, context, restored):
        return QueueEnumerator(restored if restored is not None else [0])

    def create_reader(self, context):
        return WatchedReader(context.metrics)


class WatchedReader(SourceReader):
    def __init__(self, metrics):
        self.left = []
        metrics.gauge("position", lambda: self.left[0] if self.left else 100)

    def add_splits(self, splits):
        self.left.extend(splits)

    def poll(self, limit):
        if not self.left or self.left[0] == 100:
            self.left.clear()
            return None
        self.left[0] += 1
        return [self.left[0]]

    def snapshot(self):
        return list(self.left)


def test_a_reader_has_metrics():
    with local_environment(seed=4) as env:
        stream = env.from_source(Watched(), WatermarkStrategy.no_watermarks(), "watched")
        stream.set_parallelism(1).map(str).print()
        result = env.execute()
    assert [(m.name, m.value) for m in result.metrics] == [("position", 100)]
