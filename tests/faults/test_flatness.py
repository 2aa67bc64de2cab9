"""Nothing grows with time, restarts or jobs: memory, open files, threads."""

from __future__ import annotations

import statistics
import threading
import time
from dataclasses import astuple, dataclass
from pathlib import Path

import psutil
import pytest
from counting_driver import CountingDriver
from job_parts import (
    Count,
    RaiseAtEach,
    Ticker,
    environment,
    key_of,
    running,
    slot_pids,
)
from patience import PATIENCE, until

from penstock.common import WatermarkStrategy
from penstock.common.job_client import JobClient
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.jobmanager.progress import Progress

pytestmark = pytest.mark.full("kills")

NO_WATERMARKS = WatermarkStrategy.no_watermarks()
WARM_UP_S, MEASURED_S = 60, 240


@dataclass(frozen=True)
class Footprint:
    """What a process takes of the machine."""

    memory: int
    files: int
    threads: int

    @staticmethod
    def of(pid: int) -> Footprint:
        process = psutil.Process(pid)
        with process.oneshot():
            return Footprint(process.memory_info().rss, process.num_fds(), process.num_threads())

    def or_more(self, other: Footprint) -> Footprint:
        """Of each thing the larger amount."""
        return Footprint(*map(max, astuple(self), astuple(other)))


@pytest.mark.long
@pytest.mark.timeout(WARM_UP_S + MEASURED_S + 180)
def test_a_steady_job_stays_as_large_as_it_is(tmp_path: Path) -> None:
    with CountingDriver(tmp_path, parallelism=2, rate=5_000) as driver:
        begun = driver.wait_for(lambda now: now["completed"] >= 1, "a checkpoint")
        time.sleep(WARM_UP_S)
        pids = [driver.pid, *begun["slots"]]
        samples: dict[int, list[Footprint]] = {pid: [] for pid in pids}
        deadline = time.monotonic() + MEASURED_S
        while time.monotonic() < deadline:
            for pid in pids:
                samples[pid].append(Footprint.of(pid))
            time.sleep(1)
        kept = list(tmp_path.glob("checkpoints/*/chk-*"))
        segments = list(tmp_path.glob("checkpoints/*/shared/*"))
        end = driver.finish()
    assert end["restarts"] == 0
    assert end["records"] > MEASURED_S * 5_000 * 0.8
    assert len(kept) <= 3 and len(segments) <= 50, "old checkpoints are deleted"
    for footprints in samples.values():
        third = len(footprints) // 3
        early, late = footprints[:third], footprints[-third:]
        grown = _median(late, "memory") - _median(early, "memory")
        assert grown < 8_000_000, f"{grown / 1e6:.1f} MB in {MEASURED_S * 2 / 3:.0f} s"
        assert max(f.files for f in late) <= max(f.files for f in early) + 2
        assert max(f.threads for f in late) <= max(f.threads for f in early) + 2


def _median(footprints: list[Footprint], what: str) -> float:
    return statistics.median(getattr(footprint, what) for footprint in footprints)


@pytest.mark.usefixtures("session")
def test_restarts_in_place_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "raised").mkdir()
    settings = {"restart-strategy.fixed-delay.delay": "10 ms"}
    env = environment(2, tmp_path / "checkpoints", settings=settings)
    source = env.from_source(Ticker(tmp_path / "stop", 1_000), NO_WATERMARKS, "ticks")
    stream = source.map(RaiseAtEach(400, tmp_path / "raised")).key_by(key_of).process(Count())
    stream.filter(lambda _: False).print()
    job = env.execute_async()
    early = running(job, attempt=5)
    before = _most_until(job, early, attempt=8)
    late = running(job, attempt=25)
    assert late.slots == early.slots, "the same processes"
    after = _most_until(job, late, attempt=28)
    job.cancel().result(timeout=PATIENCE)
    for small, large in zip(before, after, strict=True):
        assert large.files <= small.files + 2
        assert large.threads <= small.threads + 2
        assert large.memory < small.memory + 20_000_000


def _most_until(job: JobClient, begun: Progress, attempt: int) -> list[Footprint]:
    """The most that each slot takes until that attempt: one moment may be before it connects."""
    pids = slot_pids(begun)
    most = [Footprint.of(pid) for pid in pids]
    while job.progress().attempt < attempt:
        most = [seen.or_more(Footprint.of(pid)) for seen, pid in zip(most, pids, strict=True)]
        time.sleep(0.02)
    return most


@pytest.mark.usefixtures("session")
def test_jobs_that_ended_leave_nothing_behind_in_the_driver(tmp_path: Path) -> None:
    def run(jobs: int) -> Footprint:
        for number in range(jobs):
            env = environment(2, tmp_path / str(number))
            source = env.from_source(NumberSequenceSource(0, 99), NO_WATERMARKS, "numbers")
            results = list(source.key_by(key_of).process(Count()).execute_and_collect())
            assert len(results) == 100
        until(lambda: not _threads_of_jobs(), "the threads of the jobs have ended")
        return Footprint.of(psutil.Process().pid)

    before, after = run(3), run(20)
    assert after.files <= before.files + 5
    assert after.threads <= before.threads + 5
    assert after.memory < before.memory + 20_000_000


def _threads_of_jobs() -> list[str]:
    ours = [t.name for t in threading.enumerate() if t.name.startswith("penstock")]
    # The endpoint for other terminals is the driver's: one for all of its jobs.
    return [name for name in ours if name != "penstock-endpoint"]
