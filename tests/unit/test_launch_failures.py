"""What Spark says of a launch that failed: in one line, and whether another launch could do."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from patience import PATIENCE

from penstock.common import Configuration
from penstock.common.listening import Listening
from penstock.datastream.results import ClientResults
from penstock.errors import JobFailedError, SparkLaunchError
from penstock.jobmanager.launching import SlotLaunch
from penstock.jobmanager.resource_manager import ResourceManager
from penstock.jobmanager.runner import JobRunner
from penstock.spark.failures import from_spark
from penstock.testing import local_environment

FAILED = "Job aborted due to stage failure: Could not recover from a failed barrier ResultStage. "
CRASHED = f"{FAILED}Python worker exited unexpectedly (crashed): "
REST = "\n\n\tat org.apache.spark.X"
TRACE = """Fatal Python error: Segmentation fault

Thread 0x2 (most recent call first):
  File "threading.py", line 982 in run

Current thread 0x1 (most recent call first):
  File "job.py", line 5 in parse
  File "<chain 3: Parse -> Count>", line 9 in loop
  File "worker.py", line 1 in main
"""
TOLD = """a slot's process died in 'Parse -> Count': Fatal Python error: Segmentation fault
Current thread 0x1 (most recent call first):
  File "job.py", line 5 in parse"""
WORKER = FAILED + "org.apache.spark.api.python.PythonException: "


@pytest.mark.parametrize(
    ("says", "means"),
    [
        (
            "Job 3 cancelled because SparkContext was shut down",
            "the Spark session was stopped",
        ),
        (
            f'{FAILED}java.io.IOException: Cannot run program "/no/python3": error=2, No such file',
            "/no/python3, cannot be executed: set PYSPARK_PYTHON",
        ),
        (
            f"{WORKER}[X] Python in worker has different version: 3.9 than that in driver: 3.11.",
            "Spark runs slots with Python 3.9 and the driver is Python 3.11: set",
        ),
        (
            f"{WORKER}Traceback\n  File\nModuleNotFoundError: No module named 'penstock'\n",
            "cannot import Penstock: No module named 'penstock'",
        ),
    ],
    ids=["stopped", "no Python", "another Python", "no Penstock"],
)
def test_what_no_launch_would_overcome(says: str, means: str) -> None:
    error = from_spark(says)
    assert error.lasting
    assert means in str(error)


@pytest.mark.parametrize(
    ("says", "means"),
    [
        ("Job 3 cancelled part of cancelled job tag x", "the Spark job was cancelled"),
        (f"{FAILED}Python worker exited unexpectedly (crashed)", "a slot's process died"),
        (f"{CRASHED}{TRACE}{REST}", TOLD),
        (
            f"{CRASHED}{REST}",
            "a slot's process died and left no word: it was killed from outside, ",
        ),
        (
            f"{WORKER}SlotFailure: slot 1 failed with ValueError: no\n",
            "slot 1 failed with ValueError: no",
        ),
    ],
)
def test_what_may_pass(says: str, means: str) -> None:
    error = from_spark(says)
    assert not error.lasting
    assert str(error).startswith(means)


class Cluster:
    """Refuses every launch, or the second one."""

    def __init__(self, errors: list[Exception]) -> None:
        self.errors = errors

    def check_capacity(self, slots: int, held: int = 0) -> None: ...

    def listening(self) -> Listening:
        return Listening("127.0.0.1")

    def launch(self, launch: SlotLaunch, on_end: Any) -> Any:
        threading.Thread(target=on_end, args=(self.errors.pop(0),)).start()


def entry(slot: int, host: str, payload: bytes) -> None: ...


@pytest.mark.parametrize("before", [[], [RuntimeError("gone")]], ids=["at first", "later"])
def test_a_launch_that_is_refused_ends_the_job_at_once(before: list[Exception]) -> None:
    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000000",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }
    cluster = Cluster([*before, SparkLaunchError("there is no Python", lasting=True)])
    with local_environment(configuration=Configuration.from_dict(settings)) as env:
        env.from_collection([1, 2, 3]).print()
        job = env._assemble("refused")
        runner = JobRunner(job, ResourceManager(cluster, entry, entry), ClientResults())
        runner.start()
        error = runner.result.exception(PATIENCE)
    assert isinstance(error, JobFailedError)
    assert str(error) == "job 'refused' failed: there is no Python"
    assert isinstance(error.__cause__, SparkLaunchError)
    assert cluster.errors == []
    assert runner.progress().restarts == len(before)
