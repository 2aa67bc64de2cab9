"""Kill, freeze, corrupt, interrupt: the files of an exactly-once sink hold every record once.

Tests of what one kill does to a job are in tests/spark; here it is many, at random moments, and
what is not a clean death.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from clusters import local_cluster, one_at_a_time
from counting_driver import CountingDriver
from job_parts import (
    Count,
    Ticker,
    as_line,
    check_output,
    check_ticks,
    environment,
    is_slot,
    key_of,
    running,
    slot_pids,
    ticked,
    visible_lines,
)
from patience import PATIENCE, until
from slot_driver import gone

from penstock.common import JobClient, JobStatus, WatermarkStrategy
from penstock.datastream.connectors.file_system import FileSink

pytestmark = pytest.mark.full("kills")

SEED = 20
SLOT_KILLS, EXECUTOR_KILLS = 16, 4


@one_at_a_time
def test_many_kills_at_random_moments(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rounds = 3 if request.config.getoption("--long") else 1
    victims = ["slot"] * SLOT_KILLS * rounds + ["executor"] * EXECUTOR_KILLS * rounds
    chance = random.Random(SEED)
    chance.shuffle(victims)
    with CountingDriver(tmp_path, parallelism=4, **local_cluster(2, 2)) as driver:
        now = driver.wait_for(lambda now: now["completed"] >= 1, "a checkpoint")
        assert len(now["slots"]) == 4
        for victim in victims:
            # Sometimes as soon as there is somebody to kill, before a checkpoint or even a record.
            time.sleep(chance.choice([0, chance.random(), 2 * chance.random()]))
            pids = now["slots"] if victim == "slot" else driver.executors()
            _kill(chance.choice(pids))
            now = driver.next_attempt(now)
        end = driver.finish()
    assert end["restarts"] >= len(victims)
    assert end["records"] > 1_000


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pytest.fail(f"process {pid} was gone before it was killed")


# --- in a session of this process -------------------------------------------------------------


def counting(
    folder: Path, sources: int = 2, interval: str = "200 ms", settings: dict[str, Any] | None = None
) -> JobClient:
    """Ticks, counted by key, into files of `folder`, until a file `stop` is there."""
    env = environment(2, folder / "checkpoints", interval, settings=settings)
    source = Ticker(folder / "stop", 1_000)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "ticks")
    stream = stream.set_parallelism(sources).key_by(key_of).process(Count()).map(as_line)
    stream.sink_to(FileSink.for_row_format(str(folder / "out")).build())
    return env.execute_async("counting")


def finish(job: JobClient, folder: Path) -> Any:
    (folder / "stop").touch()
    return job.get_job_execution_result().result(timeout=PATIENCE)


@pytest.mark.usefixtures("session")
def test_a_frozen_slot_that_wakes_up_changes_nothing(tmp_path: Path) -> None:
    settings = {"heartbeat.interval": "200 ms", "heartbeat.timeout": "2 s"}
    job = counting(tmp_path, settings=settings)
    before = running(job, checkpoints=2)
    frozen = before.slots[1][1]
    os.kill(frozen, signal.SIGSTOP)
    try:
        until(lambda: job.get_job_status().result() is JobStatus.RESTARTING, "it is given up")
    finally:
        os.kill(frozen, signal.SIGCONT)
    after = running(job, attempt=2, checkpoints=before.completed_checkpoints + 2)
    # It left in time to be given, as an idle process, to the next launch; or it was killed.
    until(lambda: not is_slot(frozen) or frozen in slot_pids(after), "the frozen slot has left")
    finish(job, tmp_path)
    assert check_ticks(tmp_path / "out", tmp_path / "stop") > 0


@pytest.mark.usefixtures("session")
def test_strangers_are_ignored_and_counted(tmp_path: Path) -> None:
    job = counting(tmp_path)
    pids = slot_pids(running(job, checkpoints=1))
    ports = [
        connection.laddr.port
        for pid in pids
        for connection in psutil.Process(pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(ports) == 2
    rubbish = random.Random(SEED).randbytes(10_000)
    for port in ports:
        for data in (b"GET / HTTP/1.1\r\n\r\n", rubbish, b""):
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(data)
                stranger.settimeout(2)
                with contextlib.suppress(OSError):
                    assert len(stranger.recv(1_000)) < 100, "a greeting at most"
    until(lambda: job.progress().strangers >= 4, "strangers are counted")
    assert job.get_job_status().result() is JobStatus.RUNNING
    finish(job, tmp_path)
    assert job.progress().attempt == 1
    assert check_ticks(tmp_path / "out", tmp_path / "stop") > 0


def cut_short(manifest: Path) -> None:
    manifest.write_bytes(manifest.read_bytes()[:-20])


def alter(manifest: Path) -> None:
    text = manifest.read_text()
    assert '"next":' in text, "the position of the source"
    manifest.write_text(text.replace('"next":', '"next":1'))


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(("damage", "says"), [(cut_short, "is cut short"), (alter, "was altered")])
def test_a_damaged_checkpoint_is_passed_over(damage: Any, says: str, tmp_path: Path) -> None:
    # One source: its records come in the same order again, and so do the same lines.
    settings = {"execution.checkpointing.num-retained": 3}
    job = counting(tmp_path, sources=1, interval="3 s", settings=settings)
    running(job, checkpoints=2)
    progress = running(job, checkpoints=job.progress().completed_checkpoints + 1)
    [folder] = (tmp_path / "checkpoints").iterdir()
    manifests = sorted(folder.glob("chk-*/_metadata"), key=lambda path: int(path.parent.name[4:]))
    assert len(manifests) == 3
    damage(manifests[-1])
    os.kill(progress.slots[0][1], signal.SIGKILL)
    running(job, attempt=2)
    committed = set(visible_lines(tmp_path / "out"))
    result = finish(job, tmp_path)
    damaged = manifests[-1].parent.name[4:]
    assert any(
        f"checkpoint {damaged} cannot be used" in note and says in note for note in result.notes
    )
    # The damaged checkpoint's output had been committed, so what it covers comes a second time;
    # the state is that of the one before, so nothing else does and every count is right.
    lines = Counter(visible_lines(tmp_path / "out"))
    assert set(lines.values()) == {1, 2}
    once = tmp_path / "once"
    once.mkdir()
    (once / "lines").write_text("\n".join(lines))
    # The second attempt may have ended before it came as far as the first.
    made = range(max(len(ticked(tmp_path / "stop")), len(committed)))
    assert len(made) > 2_000
    check_output(once, made)


# --- the driver -------------------------------------------------------------------------------


def test_slots_do_not_outlive_a_killed_driver(tmp_path: Path) -> None:
    with CountingDriver(tmp_path, parallelism=2, rate=1_000) as driver:
        slots = driver.wait_for(lambda now: now["completed"] >= 2, "two checkpoints")["slots"]
        assert len(slots) == 2 and all(map(is_slot, slots))
        driver.kill()
        until(lambda: gone(slots), "the slots are gone")
        files = sorted((tmp_path / "out").iterdir())
        time.sleep(1)
        assert sorted((tmp_path / "out").iterdir()) == files, "nobody goes on writing"


_SLEEPER = """
import sys
from pathlib import Path
from job_parts import Sleep, environment
from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.number_seq import NumberSequenceSource

class Tell:
    def __init__(self, folder): self.folder = folder
    def __call__(self, n):
        import os
        Path(self.folder, str(os.getpid())).touch()
        return n

env = environment(2)
source = env.from_source(NumberSequenceSource(0, 9), WatermarkStrategy.no_watermarks(), "n")
source.map(Tell(sys.argv[1])).map(Sleep(600)).print()
env.execute()
"""


def test_ctrl_c_ends_a_job_that_sleeps(start_driver: Any, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    driver: subprocess.Popen[str] = start_driver(_SLEEPER, str(pids))
    until(lambda: len(list(pids.iterdir())) == 2, "both slots sleep")
    slots = [int(path.name) for path in pids.iterdir()]
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
    _, err = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == -signal.SIGINT
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert "py4j" not in err.lower() and "zmq" not in err.lower(), err
    until(lambda: gone(slots), "no slot is left")
