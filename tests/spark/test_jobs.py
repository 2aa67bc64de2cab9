"""Whole jobs on a local Spark session: what they compute, how they end, what they leave behind."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import job_parts
import psutil
import pytest
from job_parts import (
    Count,
    RaiseOnce,
    Sleep,
    Ticker,
    WithSubtask,
    as_line,
    check_counts,
    check_ticks,
    environment,
    is_slot,
    key_of,
    records_in,
    running,
    slot_pids,
    visible_lines,
)
from patience import PATIENCE, until
from pyspark.sql import SparkSession

from penstock.common import JobStatus, WatermarkStrategy
from penstock.common.settings import RuntimeSettings
from penstock.connectors import QueueEnumerator, Source, SourceReader
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import (
    CheckpointDirectoryError,
    JobCancelledError,
    JobFailedError,
    NotEnoughSlotsError,
    ProgramError,
    RecordError,
    ResultShapeError,
    UnsupportedKeyError,
    UserFunctionError,
)

pytestmark = pytest.mark.usefixtures("session")

# Functions of this module travel by value: slots cannot import a test module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

NO_WATERMARKS = WatermarkStrategy.no_watermarks()
RECORDS = 5_000


def numbers(env: StreamExecutionEnvironment, count: int = RECORDS, name: str = "n") -> DataStream:
    return env.from_source(NumberSequenceSource(0, count - 1), NO_WATERMARKS, name)


def ticks(env: StreamExecutionEnvironment, stop: Path, rate: float = 2_000) -> DataStream:
    return env.from_source(Ticker(stop, rate), NO_WATERMARKS, "ticks")


def counted(stream: DataStream) -> DataStream:
    return stream.key_by(key_of).process(Count())


def failure_of(stream: DataStream) -> JobFailedError:
    """Run the stream's job, which must fail."""
    with pytest.raises(JobFailedError) as failed:
        list(stream.execute_and_collect())
    return failed.value


# --- what jobs compute ------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("checkpointed", [False, True], ids=["plain", "checkpoints"])
def test_a_keyed_count(parallelism: int, checkpointed: bool, tmp_path: Path) -> None:
    env = environment(parallelism, tmp_path / "checkpoints" if checkpointed else None)
    results = list(counted(numbers(env)).execute_and_collect())
    check_counts(results, range(RECORDS))


def test_a_parallelism_per_operator() -> None:
    env = environment(2)
    stream = numbers(env).map(WithSubtask())
    stream = stream.map(WithSubtask()).set_parallelism(3)
    stream = stream.key_by(lambda seen: seen[1][1]).map(WithSubtask()).set_parallelism(5)
    stream = stream.map(WithSubtask()).set_parallelism(1)
    results = stream.execute_and_collect()
    seen = [(a, b, c, d, number) for d, (c, (b, (a, number))) in results]
    *subtasks, records = zip(*seen, strict=True)
    # Readers ask for their splits: one of two may have been the first every time.
    assert set(subtasks[0]) <= {0, 1}
    assert [set(those) for those in subtasks[1:]] == [set(range(n)) for n in (3, 5, 1)]
    assert sorted(records) == list(range(RECORDS))


def test_several_sources_and_a_union(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("".join(f"{n}\n" for n in range(2_000, 3_000)))
    env = environment(2)
    first = env.from_collection(range(1_000))
    second = env.from_source(NumberSequenceSource(1_000, 1_999), NO_WATERMARKS, "sequence")
    third = env.read_text_file(str(tmp_path / "lines.txt")).map(int)
    results = list(counted(first.union(second, third)).execute_and_collect())
    check_counts(results, range(3_000))


def test_a_diamond() -> None:
    env = environment(2)
    source = numbers(env)
    even = source.filter(lambda n: n % 2 == 0).rebalance().map(lambda n: n)
    odd = source.filter(lambda n: n % 2 == 1).map(lambda n: n)
    results = list(counted(even.union(odd)).execute_and_collect())
    check_counts(results, range(RECORDS))


def test_branches_do_not_see_each_other_s_changes() -> None:
    def spoil(record: dict[str, int]) -> dict[str, int]:
        record["n"] = -1
        return record

    env = environment(2)
    source = env.from_source(
        DataGeneratorSource(lambda n: {"n": n, "nested": [n]}, 1_000), NO_WATERMARKS, "dicts"
    )
    spoilt = source.map(spoil).filter(lambda record: record["n"] >= 0)
    whole = source.map(lambda record: record["n"])
    spread = source.rebalance().map(lambda record: record["n"])
    results = Counter(spoilt.union(whole, spread).execute_and_collect())
    assert results == Counter(dict.fromkeys(range(1_000), 2))


def test_a_reduction_is_not_changed_by_what_follows() -> None:
    def spoil(record: dict[str, int]) -> int:
        return record.pop("n")

    env = environment(2)
    ones = env.from_collection([{"n": 1}] * 100)
    sums = ones.key_by(lambda _: 0).reduce(lambda a, b: {"n": a["n"] + b["n"]})
    assert list(sums.map(spoil).execute_and_collect()) == list(range(1, 101))


def test_broadcast_reaches_every_subtask() -> None:
    env = environment(3)
    stream = env.from_collection(range(100)).broadcast().map(WithSubtask())
    results = sorted(stream.execute_and_collect())
    assert results == [(subtask, n) for subtask in range(3) for n in range(100)]


def test_custom_partitioning_decides_the_subtask() -> None:
    env = environment(3)
    stream = numbers(env, 300).partition_custom(lambda key, count: (key + 1) % count, lambda n: n)
    results = sorted(stream.map(WithSubtask()).execute_and_collect(), key=lambda pair: pair[1])
    assert results == [((n + 1) % 3, n) for n in range(300)]


def test_a_partitioner_out_of_range_is_refused() -> None:
    env = environment(2)
    stream = numbers(env).partition_custom(lambda key, count: count, lambda n: n).map(str)
    error = failure_of(stream)
    assert isinstance(error.__cause__, ResultShapeError)
    assert "the partitioner returned 2" in str(error)


def test_rebalance_takes_turns() -> None:
    env = environment(3)
    stream = env.from_collection(range(3_000)).rebalance().map(WithSubtask())
    results = list(stream.execute_and_collect())
    assert sorted(n for _, n in results) == list(range(3_000))
    assert Counter(subtask for subtask, _ in results) == {0: 1_000, 1: 1_000, 2: 1_000}


def test_slot_sharing_groups_have_slots_of_their_own() -> None:
    env = environment(2)
    # Spread evenly: of two readers one may be up first and read everything.
    spread = numbers(env).rebalance()
    stream = spread.map(lambda n: (n, job_parts.pid_of_slot(n))).disable_chaining()
    stream = stream.map(lambda pair: (*pair, job_parts.pid_of_slot(pair)))
    stream = stream.slot_sharing_group("other")
    results = list(stream.execute_and_collect())
    assert sorted(n for n, _, _ in results) == list(range(RECORDS))
    upper, lower = {pid for _, pid, _ in results}, {pid for _, _, pid in results}
    assert (len(upper), len(lower), len(upper & lower)) == (2, 2, 0)


def test_a_limit_takes_no_more_than_it_needs() -> None:
    """Of a stream that makes its second record minutes after the first, one can be had."""
    env = environment(1)
    slow = env.from_source(DataGeneratorSource(lambda n: n, None, 0.005), NO_WATERMARKS, "slow")
    assert slow.execute_and_collect(limit=1) == [0]


# --- files, the terminal ----------------------------------------------------------------------


@pytest.mark.parametrize("checkpointed", [False, True], ids=["plain", "checkpoints"])
def test_files_in_and_files_out(session: SparkSession, checkpointed: bool, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for part in range(4):
        lines = "".join(f"{n}\n" for n in range(part, 20_000, 4))
        (source / f"part-{part}").write_text(lines)
    (source / ".hidden").write_text("not a number\n")
    env = environment(2, tmp_path / "checkpoints" if checkpointed else None)
    stream = counted(env.read_text_file(str(source)).map(int)).map(as_line)
    stream.sink_to(FileSink.for_row_format(str(out)).build())
    env.execute("files")

    rows = session.read.text(str(out)).collect()
    check_counts((row.value.split() for row in rows), range(20_000))
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]
    if checkpointed:
        assert not list((tmp_path / "checkpoints").iterdir()), "a finished job leaves none behind"


def test_print_prints_in_this_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    env = environment(2)
    env.from_collection(["a", "b", "c", "d"]).rebalance().map(str.upper).print("out")
    env.execute()
    lines = sorted(capsys.readouterr().out.splitlines())
    assert lines == ["out:1> A", "out:1> C", "out:2> B", "out:2> D"]


def test_a_pipe_that_nobody_reads_is_pressure_and_no_death() -> None:
    env = environment(2, settings={"heartbeat.timeout": "5 s"})
    numbers = DataGeneratorSource(lambda n: "x" * 500, 10**12)
    env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
    reader, writer = os.pipe()

    def read() -> None:
        while os.read(reader, 1 << 20):
            pass

    def pressed_s() -> float:
        return max((m.backpressured_ns for m in job.progress().metrics.values()), default=0) / 1e9

    def records() -> int:
        return sum(m.records_in for m in job.progress().metrics.values())

    reading = threading.Thread(target=read, daemon=True)
    with os.fdopen(writer, "w") as stream, contextlib.redirect_stdout(stream):
        job = env.execute_async()
        try:
            until(lambda: pressed_s() > 11, "that it stands for twice heartbeat.timeout")
            assert job.progress().restarts == 0
            before = records()
            reading.start()
            until(lambda: records() > before + 1000, "that it goes on")
            assert job.progress().restarts == 0
        finally:
            job.cancel().result(PATIENCE)
    reading.join()
    os.close(reader)


# --- clients ----------------------------------------------------------------------------------


def test_a_job_in_the_background_finishes(tmp_path: Path) -> None:
    env = environment(2)
    stop = tmp_path / "stop"
    counted(ticks(env, stop)).filter(lambda _: False).print()
    job = env.execute_async("background")
    progress = running(job)
    assert job.get_job_status().result() is JobStatus.RUNNING
    assert all(is_slot(pid) for pid in slot_pids(progress))
    stop.touch()
    result = job.get_job_execution_result().result(timeout=PATIENCE)
    assert result.get_job_id() == job.get_job_id()
    assert job.get_job_status().result() is JobStatus.FINISHED
    until(lambda: not any(map(is_slot, slot_pids(progress))), "no slot is left")


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in a long call"])
def test_a_cancelled_job_leaves_nothing_behind(busy: bool, tmp_path: Path) -> None:
    env = environment(2, tmp_path / "checkpoints")
    stream = ticks(env, tmp_path / "stop")
    if busy:
        stream = stream.rebalance().map(Sleep(600))
    stream.filter(lambda _: False).print()
    job = env.execute_async()
    pids = slot_pids(running(job))
    job.cancel().result(timeout=PATIENCE)
    assert job.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        job.get_job_execution_result().result()
    until(lambda: not any(map(is_slot, pids)), "no slot is left")


def test_closing_the_iterator_cancels_the_job(tmp_path: Path) -> None:
    env = environment(2)
    with ticks(env, tmp_path / "stop").execute_and_collect() as results:
        assert next(results) >= 0
        job = results.job_client
    assert job.get_job_status().result() is JobStatus.CANCELED


def test_a_slow_client_slows_the_job_down() -> None:
    env = environment(1)
    with numbers(env, 50_000_000).execute_and_collect() as results:
        assert next(results) == 0

        def stands_still() -> bool:
            before = records_in(results.job_client.progress(), 0)
            time.sleep(1)
            return 0 < before == records_in(results.job_client.progress(), 0)

        until(stands_still, "the source stops")
        assert records_in(results.job_client.progress(), 0) < 1_000_000


# --- several jobs in one session --------------------------------------------------------------


def test_jobs_do_not_disturb_each_other(session: SparkSession, tmp_path: Path) -> None:
    outs = [tmp_path / "first", tmp_path / "second"]
    jobs = []
    for out in outs:
        env = environment(2, out / "checkpoints")
        sink = FileSink.for_row_format(str(out / "files")).build()
        counted(ticks(env, out / "stop")).map(as_line).sink_to(sink)
        jobs.append(env.execute_async(out.name))
    env = environment(2)
    ticks(env, tmp_path / "stop").map(lambda n: 1 // (500 - n)).print()
    failing = env.execute_async("failing")
    for job in jobs:
        running(job)

    assert session.range(1_000, numPartitions=2).selectExpr("sum(id)").first()[0] == 499_500
    with pytest.raises(JobFailedError, match="ZeroDivisionError"):
        failing.get_job_execution_result().result(timeout=PATIENCE)
    assert [job.get_job_status().result() for job in jobs] == [JobStatus.RUNNING] * 2
    assert session.sparkContext.parallelize(range(10), 2).map(lambda n: n + 1).sum() == 55
    for job, out in zip(jobs, outs, strict=True):
        (out / "stop").touch()
        job.get_job_execution_result().result(timeout=PATIENCE)
        assert check_ticks(out / "files", out / "stop") > 500
        assert job.progress().attempt == 1


_USERS_SESSION = """
import os, sys
from pathlib import Path
# Spark's workers run a Python that has other packages than the driver's.
os.environ["PYSPARK_PYTHON"] = os.path.join(sys.base_prefix, "bin", "python3")
os.environ.pop("PYTHONPATH")
from pyspark.sql import SparkSession
from job_parts import *
from penstock.common import WatermarkStrategy
from penstock.errors import JobFailedError

spark = SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
folder = Path(sys.argv[1])

def start(parallelism):
    env = environment(parallelism, folder / "checkpoints")
    source = env.from_source(Ticker(folder / "stop", 1000), WatermarkStrategy.no_watermarks(), "t")
    source.key_by(key_of).process(Count()).filter(lambda _: False).print()
    return env.execute_async()

job = start(3)
pids = slot_pids(running(job, checkpoints=1))
refused = start(2)
try:
    refused.get_job_execution_result().result(300)
except JobFailedError as error:
    print(refused.progress().attempt, error)
print(spark.range(100).count())
os.kill(pids[0], 9)
running(job, attempt=2)
print(spark.range(100).count())
(folder / "stop").touch()
job.get_job_execution_result().result(300)
print(job.get_job_status().result().value, spark.range(100).count())
"""


def test_a_session_that_the_user_made(run_driver: Any, tmp_path: Path) -> None:
    out, _ = run_driver(_USERS_SESSION, str(tmp_path))
    refusal, *lines = out.splitlines()
    assert refusal.startswith("0 ")
    assert "the job needs 2 slots and 1 of the Spark session's 4 are free" in refusal
    assert lines == ["100", "100", "FINISHED 100"]


# --- failures and restarts --------------------------------------------------------------------


def test_a_user_s_exception_restarts_the_job_in_place(tmp_path: Path) -> None:
    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 1,
        "restart-strategy.fixed-delay.delay": "100 ms",
    }
    env = environment(2, tmp_path / "checkpoints", settings=settings)
    stop, out = tmp_path / "stop", tmp_path / "out"
    stream = ticks(env, stop).map(RaiseOnce(3_000, tmp_path / "raised"))
    counted(stream).map(as_line).sink_to(FileSink.for_row_format(str(out)).build())
    job = env.execute_async()
    before = running(job)
    after = running(job, attempt=2)
    assert (before.attempt, after.attempt, after.restarts) == (1, 2, 1)
    assert after.slots == before.slots, "the same processes"
    running(job, attempt=2, checkpoints=after.completed_checkpoints + 4)
    stop.touch()
    job.get_job_execution_result().result(timeout=PATIENCE)
    assert check_ticks(out, stop) > 3_000


def test_a_killed_slot_is_launched_again(tmp_path: Path) -> None:
    # So many records between two checkpoints that there are unfinished files to clear away.
    env = environment(2, tmp_path / "checkpoints", interval="500 ms")
    stop, out = tmp_path / "stop", tmp_path / "out"
    stream = counted(ticks(env, stop, rate=20_000)).map(as_line)
    stream.sink_to(FileSink.for_row_format(str(out)).build())
    job = env.execute_async()
    before = running(job, checkpoints=2)
    until(lambda: list(out.glob(".*")), "there is an unfinished file")
    killed = before.slots[1][1]
    os.kill(killed, signal.SIGKILL)
    after = running(job, attempt=2, checkpoints=before.completed_checkpoints + 2)
    assert after.restarts == 1
    # The other process left in good order, and Spark may have given it to a new slot.
    assert killed not in slot_pids(after)
    stop.touch()
    job.get_job_execution_result().result(timeout=PATIENCE)
    assert check_ticks(out, stop) > 0
    until(lambda: not any(map(is_slot, slot_pids(before))), "no old slot is left")


def divide(n: int) -> float:
    return 1 / (700 - n)


def test_without_restarts_the_user_sees_their_own_frames_first() -> None:
    env = environment(2, settings={"restart-strategy.type": "none"})
    error = failure_of(numbers(env).rebalance().map(divide).name("Inverse"))
    cause = error.__cause__
    assert isinstance(cause, UserFunctionError)
    assert cause.origin.operator == "Inverse"
    assert (cause.origin.subtask, cause.origin.parallelism) == (700 // 2 % 2, 2)
    assert cause.origin.record == "700"
    assert str(error).startswith("job 'Penstock Streaming Job' failed: ZeroDivisionError: ")
    frames = [line for line in str(cause).splitlines() if line.startswith("  File")]
    assert len(frames) == 1 and frames[0].endswith("in divide"), "only the user's own"
    text = "".join(traceback.format_exception(error)).lower()
    assert text.index("in divide") < text.index("jobfailederror")
    assert not [word for word in ("py4j", "zmq", "barrier", "java") if word in text], text


def test_restarts_are_counted(tmp_path: Path) -> None:
    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 2,
        "restart-strategy.fixed-delay.delay": "10 ms",
    }
    env = environment(1, settings=settings)
    numbers(env).map(divide).filter(lambda _: False).print()
    job = env.execute_async()
    with pytest.raises(JobFailedError):
        job.get_job_execution_result().result(timeout=PATIENCE)
    assert job.get_job_status().result() is JobStatus.FAILED
    assert job.progress().attempt == 3


def test_too_few_cores_are_named_in_one_line() -> None:
    env = environment(100)
    error = failure_of(numbers(env))
    assert isinstance(error.__cause__, NotEnoughSlotsError)
    assert "the job needs 100 slots and the Spark session has" in str(error)
    assert len(str(error).splitlines()) == 1


# --- bad inputs -------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpointed", [False, True], ids=["plain", "checkpoints"])
def test_an_empty_collection(checkpointed: bool, tmp_path: Path) -> None:
    env = environment(2, tmp_path / "checkpoints" if checkpointed else None)
    assert list(counted(env.from_collection([])).execute_and_collect()) == []


class Failing(Source):
    """Reads 999 records and fails at the next."""

    def create_enumerator(self, context: Any, restored: Any) -> QueueEnumerator:
        return QueueEnumerator([0])

    def create_reader(self, context: Any) -> SourceReader:
        return FailingReader()


class FailingReader(SourceReader):
    def __init__(self) -> None:
        self._next: int | None = None

    def add_splits(self, splits: list[Any]) -> None:
        (self._next,) = splits

    def poll(self, limit: int) -> list[Any] | None:
        return None if self._next is None else [self._record()]

    def _record(self) -> int:
        self._next += 1
        if self._next == 1_000:
            raise OSError("the disk is on fire")
        return self._next

    def snapshot(self) -> list[Any]:
        return [self._next]


def test_a_source_that_fails_on_its_thousandth_record() -> None:
    env = environment(1)
    stream = env.from_source(Failing(), NO_WATERMARKS, "flaky")
    seen: list[int] = []
    with pytest.raises(JobFailedError, match="OSError: the disk is on fire") as failed:
        seen.extend(stream.execute_and_collect())
    assert seen == list(range(1, len(seen) + 1)) and len(seen) < 1_000
    cause = failed.value.__cause__
    assert isinstance(cause, UserFunctionError)
    assert cause.origin.operator.startswith("Source: flaky")
    assert "in _record" in cause.user_traceback and "penstock/runtime" not in cause.user_traceback


@pytest.mark.parametrize("parallelism", [1, 2])
def test_equal_keys_are_one_key(parallelism: int) -> None:
    big = "k" * 1_000_000
    values = [None, 1, 1.0, True, big, None, big, "1"]
    env = environment(parallelism)
    stream = env.from_collection(values).key_by(lambda value: value).process(Count())
    counts: Counter[Any] = Counter()
    for key, count, _ in stream.execute_and_collect():
        counts[key] = max(counts[key], count)
    assert counts == {None: 2, 1: 3, big: 2, "1": 1}


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    ("key", "says"), [(float("nan"), "NaN is not equal to itself"), ([1], "list")]
)
def test_keys_that_are_none_name_the_operator(parallelism: int, key: Any, says: str) -> None:
    env = environment(parallelism)
    stream = env.from_collection(range(10)).map(lambda n: (n, key)).name("Pairs")
    error = failure_of(stream.key_by(lambda pair: pair[1]).process(Count()))
    assert isinstance(error.__cause__, UnsupportedKeyError)
    assert says in str(error)
    assert "operator 'Pairs'" in str(error)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_record_that_cannot_be_pickled(parallelism: int) -> None:
    env = environment(parallelism)
    stream = env.from_collection(range(10)).map(lambda n: lambda: n).name("Closures")
    error = failure_of(stream.rebalance().map(lambda closure: closure()))
    assert isinstance(error.__cause__, RecordError)
    assert "cannot be pickled" in str(error) and "operator 'Closures'" in str(error)


def test_a_record_of_50_megabytes_passes() -> None:
    env = environment(2)
    stream = env.from_collection([1, 2]).map(lambda n: bytes([n]) * 50_000_000)
    stream = stream.rebalance().map(lambda record: (len(record), record[-1]))
    assert sorted(stream.execute_and_collect()) == [(50_000_000, 1), (50_000_000, 2)]
    env = environment(2)
    [record] = env.from_collection([1]).map(lambda n: b"x" * 50_000_000).execute_and_collect()
    assert record == b"x" * 50_000_000


def reuse_one_object(count: int) -> Iterator[dict[str, Any]]:
    record: dict[str, Any] = {"n": 0, "nested": {"n": 0}}
    for n in range(count):
        record["n"] = n
        record["nested"]["n"] = n
        yield record


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_record_is_what_it_was_when_emitted(parallelism: int) -> None:
    env = environment(parallelism)
    stream = env.from_collection([1_000]).flat_map(reuse_one_object).rebalance()
    stream = stream.map(lambda record: (record["n"], record["nested"]["n"]))
    assert sorted(stream.execute_and_collect()) == [(n, n) for n in range(1_000)]


@pytest.mark.parametrize(
    ("returned", "says"), [("abc", "a str was returned"), (5, "not a list, a generator or None")]
)
def test_a_function_that_returns_the_wrong_shape(returned: Any, says: str) -> None:
    env = environment(1)
    error = failure_of(env.from_collection([1]).flat_map(lambda _: returned).name("Split"))
    assert isinstance(error.__cause__, ResultShapeError)
    assert says in str(error) and "operator 'Split'" in str(error)


def test_a_missing_file_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"there is no file or folder .*/nowhere"):
        environment().read_text_file(str(tmp_path / "nowhere"))


def test_an_unwritable_checkpoint_directory_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    env = environment(1, tmp_path / "file" / "checkpoints")
    opened = tmp_path / "opened"
    numbers(env).map(lambda n: opened.touch()).print()
    with pytest.raises(CheckpointDirectoryError, match="cannot be used"):
        env.execute_async()
    assert not opened.exists()


def test_checkpoints_without_a_directory_do(tmp_path: Path) -> None:
    """They are kept by the driver, and as good as others for as long as it lives."""
    env = environment(2)
    env.enable_checkpointing(100)
    out = tmp_path / "out"
    stream = ticks(env, tmp_path / "stop").map(RaiseOnce(2_000, tmp_path / "raised"))
    counted(stream).map(as_line).sink_to(FileSink.for_row_format(str(out)).build())
    job = env.execute_async()
    after = running(job, attempt=2)
    assert after.completed_checkpoints > 0
    running(job, attempt=2, checkpoints=after.completed_checkpoints + 4)
    (tmp_path / "stop").touch()
    job.get_job_execution_result().result(timeout=PATIENCE)
    assert check_ticks(out, tmp_path / "stop") > 2_000


# --- pressure and fairness --------------------------------------------------------------------


def under_way(senders: int, receivers: int) -> int:
    """How many records can be between senders and receivers when each sends to all.

    Per channel: the buffers that have credit, one that waits for it, one that gathers, one in the
    receiver's hands. And what each sender took in its last step.
    """
    settings = RuntimeSettings()
    in_channels = senders * receivers * (settings.credits + 3) * settings.buffer_records
    return in_channels + senders * settings.step_records


def test_a_slow_operator_slows_its_source_down() -> None:
    env = environment(2)
    source = env.from_source(DataGeneratorSource(lambda n: n), NO_WATERMARKS, "fast")
    source.rebalance().map(Sleep(0.005)).filter(lambda _: False).print()
    job = env.execute_async()
    progress = running(job)
    while records_in(progress, 1) < 1_500:
        ahead = records_in(progress, 0) - records_in(progress, 1)
        assert ahead <= under_way(senders=2, receivers=2)
        time.sleep(0.1)
        progress = job.progress()
    metrics = job.progress().metrics.items()
    job.cancel().result(timeout=PATIENCE)
    for subtask, m in metrics:
        total = m.busy_ns + m.backpressured_ns + m.idle_ns
        if subtask.vertex == 0:
            assert m.backpressured_ns > 0.5 * total, m
        else:
            assert m.busy_ns > 0.5 * total, m
            assert m.records_in > 100


def explode(count: int) -> Iterator[str]:
    for n in range(count):
        yield f"{n:0400d}"


def test_a_million_records_of_one_are_never_in_memory_at_once() -> None:
    env = environment(2)
    stream = env.from_collection([1_000_000]).flat_map(explode).rebalance().map(len)
    stream.filter(lambda length: length != 400).print()
    job = env.execute_async()
    slots = [psutil.Process(pid) for pid in slot_pids(running(job))]
    most = 0
    while not job.get_job_execution_result().done():
        try:
            most = max(most, *(slot.memory_info().rss for slot in slots))
        except psutil.NoSuchProcess:
            break
        time.sleep(0.05)
    job.get_job_execution_result().result(timeout=PATIENCE)
    # All of them would take 450 MB; a slot as such takes some 60 MB.
    assert 0 < most < 200_000_000


def test_neither_of_two_sources_gets_ahead() -> None:
    def mostly_one_slot(n: int) -> int:
        return 0 if n % 10 else n

    env = environment(2)
    first = env.from_source(DataGeneratorSource(lambda n: n), NO_WATERMARKS, "first")
    second = env.from_source(DataGeneratorSource(lambda n: n), NO_WATERMARKS, "second")
    stream = first.union(second).key_by(mostly_one_slot).reduce(lambda a, b: b).map(Sleep(0.0005))
    stream.filter(lambda _: False).print()
    job = env.execute_async()
    progress = running(job)
    # More than can be under way: a source that was left out would be that far behind.
    while records_in(progress, 2) < 1.5 * under_way(senders=2, receivers=2):
        ahead = abs(records_in(progress, 0) - records_in(progress, 1))
        assert ahead <= under_way(senders=2, receivers=2)
        time.sleep(0.1)
        progress = job.progress()
    job.cancel().result(timeout=PATIENCE)


def test_nothing_is_visible_before_a_checkpoint_covers_it(tmp_path: Path) -> None:
    out, stop = tmp_path / "out", tmp_path / "stop"
    env = environment(2, tmp_path / "checkpoints", interval="1 h")
    stream = counted(ticks(env, stop)).map(as_line)
    stream.sink_to(FileSink.for_row_format(str(out)).build())
    job = env.execute_async()
    running(job)
    until(lambda: records_in(job.progress(), 0) > 2_000, "there is output")
    assert not visible_lines(out)
    stop.touch()
    job.get_job_execution_result().result(timeout=PATIENCE)
    assert check_ticks(out, stop) > 2_000
