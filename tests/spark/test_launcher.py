"""Slots are started together, end together, and leave no process behind."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import slot_entries
from clusters import one_at_a_time
from patience import until
from pyspark.sql import SparkSession
from slot_driver import Launched, gone

from penstock.common.listening import Listening
from penstock.errors import NotEnoughSlotsError, SparkLaunchError
from penstock.spark.capacity import Capacity, wait_for_slots
from penstock.spark.launcher import SparkLauncher


def test_slots_run_and_end(launcher: SparkLauncher, tmp_path: Path) -> None:
    launched = Launched(launcher, slot_entries.report, tmp_path)
    assert launched.end() is None
    assert [report["host"] for report in launched.reports()] == ["127.0.0.1", "127.0.0.1"]
    assert launcher.listening() == Listening("127.0.0.1")


def test_processes_are_reused_and_leak_no_thread(launcher: SparkLauncher, tmp_path: Path) -> None:
    # Idle processes take turns, and other tests may have left many: go on until one comes again.
    pids: list[int] = []
    for attempt in range(100):
        launched = Launched(launcher, slot_entries.report, tmp_path / str(attempt), slots=1)
        assert launched.end() is None
        [report] = launched.reports()
        assert sorted(report["threads"]) == ["MainThread", "penstock-slot-watch"]
        if report["pid"] in pids:
            return
        pids.append(report["pid"])
    pytest.fail(f"{len(pids)} launches, each in a process of its own")


def test_cancel_ends_the_slots(launcher: SparkLauncher, tmp_path: Path) -> None:
    launched = Launched(launcher, slot_entries.stay, tmp_path)
    pids = launched.pids()
    launched.handle.cancel()
    launched.handle.cancel()
    error = launched.end()
    assert isinstance(error, SparkLaunchError)
    assert "cancelled" in str(error)
    until(lambda: gone(pids), "cancelled slots are gone")
    assert not launched.ends_again()


def test_cancel_before_spark_has_seen_the_job(launcher: SparkLauncher, tmp_path: Path) -> None:
    launched = Launched(launcher, slot_entries.stay, tmp_path)
    launched.handle.cancel()
    assert isinstance(launched.end(), SparkLaunchError)


def test_a_killed_slot_ends_the_launch(launcher: SparkLauncher, tmp_path: Path) -> None:
    launched = Launched(launcher, slot_entries.stay, tmp_path)
    pids = launched.pids()
    os.kill(pids[0], signal.SIGKILL)
    error = launched.end()
    assert isinstance(error, SparkLaunchError)
    assert str(error).startswith("a slot's process died and left no word: it was killed")
    until(lambda: gone(pids), "the siblings are gone")


def test_an_exception_ends_the_launch(launcher: SparkLauncher, tmp_path: Path) -> None:
    launched = Launched(launcher, slot_entries.fail_in_slot_1, tmp_path)
    pids = launched.pids()
    error = launched.end()
    assert str(error) == "slot 1 failed with ValueError: bad record on two lines"
    assert isinstance(error, SparkLaunchError)
    assert error.__cause__ is not None
    until(lambda: gone(pids), "the siblings are gone")


def test_a_slot_dies_with_its_parent(launcher: SparkLauncher, tmp_path: Path) -> None:
    launched = Launched(launcher, slot_entries.stay, tmp_path)
    pids = launched.pids()
    daemon = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(daemon, signal.SIGKILL)
    until(lambda: gone(pids), "the slots of a dead daemon are gone")
    assert isinstance(launched.end(), SparkLaunchError)


def test_launches_and_spark_jobs_beside_each_other(
    session: SparkSession, launcher: SparkLauncher, tmp_path: Path
) -> None:
    first = Launched(launcher, slot_entries.stay, tmp_path / "first")
    second = Launched(launcher, slot_entries.stay, tmp_path / "second")
    first_pids, second_pids = first.pids(), second.pids()
    assert not set(first_pids) & set(second_pids)
    assert session.range(100, numPartitions=2).count() == 100

    first.handle.cancel()
    first.end()
    until(lambda: gone(first_pids), "the first launch is gone")
    assert not any(gone([pid]) for pid in second_pids), "the second launch runs on"
    assert session.sparkContext.parallelize([1, 2], 2).map(lambda x: x + 1).sum() == 5
    second.handle.cancel()
    second.end()
    until(lambda: gone(second_pids), "the second launch is gone")


def test_too_few_cores_are_named_at_once(launcher: SparkLauncher) -> None:
    with pytest.raises(NotEnoughSlotsError, match=r"needs 5000 slots .* has \d+: lower the"):
        launcher.check_capacity(5000)


def test_an_entry_must_be_importable(launcher: SparkLauncher, tmp_path: Path) -> None:
    with pytest.raises((AttributeError, pickle.PicklingError)):
        Launched(launcher, lambda slot, host, payload: None, tmp_path)


_LOCAL_CLUSTER = """
import shutil, sys
from pathlib import Path
import pyspark, slot_entries
from clusters import local_cluster
from patience import until
from slot_driver import Launched, gone
from penstock.spark.launcher import SparkLauncher
from penstock.spark.session import session_for

settings = local_cluster(2, 2)
session = session_for(settings["spark.master"], "test", settings)
launcher = SparkLauncher(session)
launcher.check_capacity(4)
launched = Launched(launcher, slot_entries.stay, Path(sys.argv[1]), slots=4)
pids = launched.pids()
launched.handle.cancel()
launched.end()
until(lambda: gone(pids), "slots are gone")
print(len(set(pids)), launched.reports()[0]["host"])
app = session.sparkContext.applicationId
session.stop()
shutil.rmtree(Path(pyspark.__file__).parent / "work" / app, ignore_errors=True)
"""


@one_at_a_time
@pytest.mark.full
def test_local_cluster(run_driver, tmp_path: Path) -> None:
    out, err = run_driver(_LOCAL_CLUSTER, str(tmp_path / "slots"))
    assert out.split() == ["4", "127.0.0.1"]
    assert len(err.splitlines()) <= 1


_QUIET = """
import os, sys
from pathlib import Path
import slot_entries
from patience import until
from slot_driver import Launched, gone
from penstock.spark.launcher import SparkLauncher
from penstock.spark.session import session_for

launcher = SparkLauncher(session_for(None, "test", {}))
for what in ("cancel", "kill", "raise"):
    entry = slot_entries.fail_in_slot_1 if what == "raise" else slot_entries.stay
    launched = Launched(launcher, entry, Path(sys.argv[1], what))
    pids = launched.pids()
    print(what, file=sys.stderr)
    if what == "cancel":
        launched.handle.cancel()
    if what == "kill":
        os.kill(pids[0], 9)
    launched.end()
    until(lambda: gone(pids), "slots are gone")
"""


def test_the_terminal_stays_quiet(run_driver, tmp_path: Path) -> None:
    _, err = run_driver(_QUIET, str(tmp_path / "slots"))
    lines = err.splitlines()
    assert lines[-3:] == ["cancel", "kill", "raise"], err
    assert len(lines) <= 4, err


_LAUNCH_AND_STAY = """
import sys, time
from pathlib import Path
import slot_entries
from slot_driver import Launched
from penstock.spark.launcher import SparkLauncher
from penstock.spark.session import session_for

launched = Launched(
    SparkLauncher(session_for(None, "test", {})), slot_entries.stay, Path(sys.argv[1])
)
print(*launched.pids(), flush=True)
time.sleep(3600)
"""


def test_slots_die_with_the_driver(start_driver, tmp_path: Path) -> None:
    driver = start_driver(_LAUNCH_AND_STAY, str(tmp_path / "slots"))
    pids = [int(pid) for pid in driver.stdout.readline().split()]
    assert len(pids) == 2
    assert not gone(pids)
    driver.kill()
    until(lambda: gone(pids), "slots of a killed driver are gone")


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def capacity_over_time(
    *steps: tuple[float, int, int],
) -> tuple[Callable[[], Capacity], FakeTime]:
    """A probe from (from when, total, busy), and the time it runs on."""
    time = FakeTime()

    def probe() -> Capacity:
        return [Capacity(total, busy) for since, total, busy in steps if since <= time.now][-1]

    return probe, time


@pytest.mark.parametrize(
    ("steps", "enough_after"),
    [
        ([(0, 4, 0)], 0),
        ([(0, 0, 0), (20, 4, 0)], 20),
        ([(0, 0, 0), (20, 2, 0), (23, 4, 0)], 23),
        ([(0, 4, 3), (2, 4, 0)], 2),
    ],
    ids=["at once", "late executors", "executors one by one", "a job that ends"],
)
def test_waits_for_capacity(steps: list[tuple[float, int, int]], enough_after: float) -> None:
    probe, time = capacity_over_time(*steps)
    wait_for_slots(4, probe, may_grow=True, clock=lambda: time.now, sleep=time.sleep)
    assert time.now == pytest.approx(enough_after, abs=0.2)


@pytest.mark.parametrize(
    ("steps", "may_grow", "says", "after"),
    [
        ([(0, 2, 0)], False, "needs 4 slots and the Spark session has 2", 0),
        ([(0, 2, 0)], True, "needs 4 slots and the Spark session has 2", 5),
        ([(0, 4, 3)], False, "1 of the Spark session's 4 are free", 5),
        ([(0, 0, 0)], True, "no Spark executor has registered", 30),
    ],
)
def test_gives_up_on_capacity(
    steps: list[tuple[float, int, int]], may_grow: bool, says: str, after: float
) -> None:
    probe, time = capacity_over_time(*steps)
    with pytest.raises(NotEnoughSlotsError, match=says):
        wait_for_slots(4, probe, may_grow=may_grow, clock=lambda: time.now, sleep=time.sleep)
    assert time.now == pytest.approx(after, abs=0.2)


def test_no_thread_is_left_in_the_driver(launcher: SparkLauncher, tmp_path: Path) -> None:
    assert Launched(launcher, slot_entries.report, tmp_path).end() is None
    until(
        lambda: not [t for t in threading.enumerate() if t.name.startswith("penstock-job")],
        "the launch's threads have ended",
    )
