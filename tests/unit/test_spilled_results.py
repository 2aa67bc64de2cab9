"""Results that wait for a checkpoint go to a file when they are many."""

from __future__ import annotations

import functools
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import tracemalloc

import pytest
from patience import PATIENCE, until

from penstock.common import Configuration, WatermarkStrategy
from penstock.common.clock import SystemClock
from penstock.connectors.client_sinks import MESSAGE_BYTES, CollectSink
from penstock.connectors.sink import WriterContext
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import JobCancelledError, JobFailedError, StorageError
from penstock.jobmanager import checkpoints
from penstock.jobmanager.results import IN_MEMORY, ResultGate
from penstock.network.messages import Emitted
from penstock.testing import local_environment

FULL_DISK = """
    import resource

    from penstock.errors import StorageError
    from penstock.jobmanager.results import ResultGate
    from penstock.network.messages import Emitted

    # The system refuses to write on, as it does when a disk is full.
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.RLIM_INFINITY))
    gate = ResultGate(lambda uid, subtask, values: None, in_memory=0)
    try:
        for _ in range(10):
            gate.emitted(Emitted(1, (7, 0), "u", 1, [b"x" * 1_000]))
    except StorageError as error:
        print(error)
"""


@pytest.fixture
def delivered():
    return []


@pytest.fixture
def gate(delivered):
    """None of what it holds stays in memory."""
    return ResultGate(lambda _, subtask, values: delivered.append((subtask, values)), in_memory=0)


def emitted(epoch, *values, subtask=0):
    return Emitted(1, (7, subtask), "u", epoch, list(values))


def open_files():
    """Files without a name that this process has open where temporary files go."""
    found = set()
    for entry in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:  # the one of the listing itself
            continue
        if path.startswith(tempfile.gettempdir()) and path.endswith("(deleted)"):
            found.add(path)
    return found


def test_results_that_wait_are_not_held_in_memory():
    batches, size = 64, 1024 * 1024
    counted = []
    gate = ResultGate(lambda uid, subtask, values: counted.extend(map(len, values)))
    assert batches * size > 3 * IN_MEMORY
    tracemalloc.start()
    try:
        for number in range(batches):
            gate.emitted(emitted(1, bytes([number]) * size))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < IN_MEMORY + 2 * size
    gate.completed(1)
    assert counted == [size] * batches


def test_what_is_in_files_comes_in_its_order_and_when_it_is_covered(gate, delivered):
    for epoch, value in [(2, b"b"), (1, b"a"), (3, b"d"), (2, b"c")]:
        gate.emitted(emitted(epoch, value, value, subtask=epoch))
    gate.completed(1)
    gate.emitted(emitted(2, b"e", subtask=2))
    gate.completed(2)
    taken = [(subtask, list(values)) for subtask, values in delivered]
    assert taken == [(1, [b"a", b"a"]), (2, [b"b", b"b"]), (2, [b"c", b"c"]), (2, [b"e"])]
    gate.completed(3)
    assert [list(values) for _, values in delivered[4:]] == [[b"d", b"d"]]


def test_some_in_memory_and_some_in_files_keep_their_order(delivered):
    gate = ResultGate(lambda uid, subtask, values: delivered.extend(values), in_memory=1_000)
    expected = [str(number).encode() * 20 for number in range(100)]
    for value in expected:
        gate.emitted(emitted(1, value))
    gate.completed(1)
    assert delivered == expected


def test_memory_is_used_again_when_a_checkpoint_has_taken_what_was_in_it(delivered):
    gate = ResultGate(lambda uid, subtask, values: delivered.append(values), in_memory=2_000)
    for epoch in range(1, 10):
        gate.emitted(emitted(epoch, b"x" * 1_000))
        gate.completed(epoch)
    assert all(isinstance(values, list) for values in delivered)


def test_the_place_is_free_when_the_client_has_taken_the_results(gate, delivered):
    before = open_files()
    for epoch in range(1, 5):
        gate.emitted(emitted(epoch, b"x" * 1_000))
        gate.completed(epoch)
    assert len(open_files() - before) == 4
    delivered.clear()
    assert open_files() <= before


def test_a_file_that_nobody_will_read_is_gone(gate):
    before = open_files()
    for epoch in range(1, 50):
        gate.emitted(emitted(epoch, b"x" * 1_000))
    assert len(open_files() - before) == 1
    gate.forget()
    assert open_files() <= before


def test_after_a_restart_the_new_results_count(gate, delivered):
    gate.emitted(emitted(1, b"old"))
    gate.forget()
    gate.emitted(emitted(1, b"new"))
    gate.completed(1)
    assert [list(values) for _, values in delivered] == [[b"new"]]


def test_a_full_disk_is_said_in_words():
    program = textwrap.dedent(FULL_DISK)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout, run.stderr
    for part in ("results that wait for a checkpoint", tempfile.gettempdir(), "File too large"):
        assert part in run.stdout
    assert "TMPDIR" in run.stdout


def test_a_folder_that_is_not_there_is_said_in_words(gate, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(StorageError, match=r"absent.*No such file"):
        gate.emitted(emitted(1, b"x"))


def test_a_message_of_large_records_has_few_of_them():
    """What one message brings is written at once, by the thread that does everything else."""
    messages = []
    context = WriterContext(
        "job", "u", 1, 0, 1, SystemClock(), lambda values, _: messages.append(values), lambda: True
    )
    writer = CollectSink().create_writer(context)
    expected = [bytes([number]) * 300_000 for number in range(100)] + [b"small"] * 1_000
    for value in expected:
        writer.write(value)
    writer.flush()
    assert [pickle.loads(value) for values in messages for value in values] == expected
    assert max(sum(map(len, values)) for values in messages) < MESSAGE_BYTES + 300_100
    assert max(map(len, messages)) == 256, "small ones travel together"


# --- whole jobs -------------------------------------------------------------------------------


@pytest.fixture
def none_in_memory(monkeypatch):
    monkeypatch.setattr(checkpoints, "ResultGate", functools.partial(ResultGate, in_memory=0))


def numbers(env, last):
    source = NumberSequenceSource(0, last)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")


@pytest.mark.parametrize("seed", range(1, 5))
def test_every_record_comes_once_through_files_and_failures(none_in_memory, seed):
    before = open_files()
    with local_environment(seed=seed, faults=True) as env:
        env.set_parallelism(2)
        assert sorted(numbers(env, 2_000).execute_and_collect()) == list(range(2_001))
        assert env.faults
    assert open_files() <= before


def test_a_job_fails_with_the_reason_where_there_is_no_room(none_in_memory, monkeypatch, tmp_path):
    settings = {"execution.checkpointing.interval": "10 ms", "restart-strategy.type": "none"}
    with local_environment(configuration=Configuration.from_dict(settings)) as env:
        results = numbers(env, 10**12).execute_and_collect()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
        with pytest.raises(JobFailedError, match=r"results that wait for a checkpoint.*absent"):
            for _ in results:
                pass


def test_nothing_is_left_of_a_cancelled_job(none_in_memory):
    before = open_files()
    settings = Configuration.from_dict({"execution.checkpointing.interval": "1000 d"})
    with local_environment(configuration=settings) as env:
        results = numbers(env, 10**12).execute_and_collect()
        until(lambda: open_files() - before, "results are in a file")
        results.job_client.cancel().result(PATIENCE)
        with pytest.raises(JobCancelledError):
            results.job_client.get_job_execution_result().result(PATIENCE)
        assert open_files() <= before
