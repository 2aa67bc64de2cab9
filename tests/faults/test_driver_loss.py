"""The driver is killed, again and again; the next start of the same job id goes on."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from counting_driver import CountingDriver

pytestmark = pytest.mark.full("kills")

SEED = 11


@pytest.mark.timeout(1500)
def test_the_driver_is_killed_at_random_moments(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kills = 20 if request.config.getoption("--long") else 3
    chance = random.Random(SEED)
    settings = {"pipeline.jobid": "counting"}
    seen = 0
    for kill in range(kills):
        with CountingDriver(tmp_path, parallelism=2, **settings) as driver:
            if kill % 3 == 2:
                # While it starts: before, in the middle of, or after recovery.
                time.sleep(8 * chance.random())
            else:
                driver.wait_for(lambda now: now["completed"] >= 1, "a checkpoint")
                time.sleep(chance.choice([0, chance.random()]))
            seen = max(seen, *_ids(tmp_path), 0)
            driver.kill()
    with CountingDriver(tmp_path, parallelism=2, **settings) as driver:
        driver.wait_for(lambda now: now["completed"] >= 1, "a checkpoint of the last driver")
        assert min(_ids(tmp_path)) > 0 and max(_ids(tmp_path)) > seen, "ids go on, too"
        end = driver.finish()
    assert end["records"] > 500
    [mark] = (tmp_path / "checkpoints" / "counting").iterdir()
    assert mark.name.startswith("generation-"), "all else is deleted when the job has finished"


def _ids(folder: Path) -> list[int]:
    return [int(path.name[4:]) for path in folder.glob("checkpoints/counting/chk-*")]


def test_a_driver_that_was_only_paused_finds_out(tmp_path: Path) -> None:
    settings = {"pipeline.jobid": "counting"}
    with CountingDriver(tmp_path, parallelism=2, **settings) as paused:
        paused.wait_for(lambda now: now["completed"] >= 2, "two checkpoints")
        os.kill(paused.pid, signal.SIGSTOP)
        try:
            with CountingDriver(tmp_path, parallelism=2, **settings) as driver:
                driver.wait_for(lambda now: now["completed"] >= 2, "checkpoints of the second")
                os.kill(paused.pid, signal.SIGCONT)
                end = paused.wait_for(lambda now: "ended" in now, "the first ends")
                assert end["ended"] == "FAILED"
                assert "the job was taken over" in end["error"]
                assert driver.finish()["records"] > 500
        finally:
            os.kill(paused.pid, signal.SIGCONT)
