"""The driver dies in the middle of a savepoint, a stop, a change of parallelism.

Afterwards either the old or the new state of affairs: the next start of the job goes on, and every
record counts once. What exists of a savepoint is whole, or is none.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from planned_driver import PATIENCE, PlannedDriver

from penstock.checkpoint.savepoints import open_snapshot
from penstock.errors import CheckpointError

SAVEPOINT = [
    "its first part is written",
    "its manifest is to be written",
    "its manifest is written",
]
STOP = [*SAVEPOINT, "it is a checkpoint of the job", "all is committed"]
RESCALE = [
    "every subtask is held",
    "the checkpoint is complete",
    "the old slots are gone",
    "the new slots are there",
    "the new slots run",
]
COMPLETE = {"its manifest is written", "it is a checkpoint of the job", "all is committed"}
"""From these points on there is a savepoint."""
SETTINGS = {"pipeline.jobid": "counting"}


def whole_savepoints(folder: Path) -> list[Path]:
    """The savepoints that exist; each can be read from end to end."""
    whole = []
    for path in (folder / "savepoints").glob("savepoint-*"):
        try:
            snapshot = open_snapshot(str(path))
        except CheckpointError:
            continue
        for handle in snapshot.metadata.segments():
            snapshot.store.read_whole(handle)
        whole.append(path)
    return whole


def die(folder: Path, act: str, point: str) -> None:
    with PlannedDriver(folder, 2, [act], point, **SETTINGS) as driver:
        driver.wait_killed(PATIENCE)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("act", "point"),
    [
        *(("savepoint", point) for point in SAVEPOINT),
        *(("stop", point) for point in STOP),
        *(("rescale 3", point) for point in RESCALE),
    ],
)
def test_the_next_start_goes_on(tmp_path: Path, act: str, point: str) -> None:
    die(tmp_path, act, point)
    assert len(whole_savepoints(tmp_path)) == (point in COMPLETE)
    # The program has the parallelism that it had, whatever the job ran at.
    with PlannedDriver(tmp_path, 2, **SETTINGS) as driver:
        driver.wait_for(lambda now: now["completed"] >= 1, "a checkpoint")
        assert driver.finish()["records"] > 100


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_after_a_stop_another_job_may_go_on_from_the_savepoint(tmp_path: Path) -> None:
    die(tmp_path, "stop", "all is committed")
    [savepoint] = whole_savepoints(tmp_path)
    settings = {"pipeline.jobid": "other", "execution.state-recovery.path": str(savepoint)}
    with PlannedDriver(tmp_path, 2, **settings) as driver:
        driver.wait_for(lambda now: now["completed"] >= 1, "a checkpoint")
        assert driver.finish()["records"] > 100


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_job_that_was_rescaled_goes_on_at_another_parallelism(tmp_path: Path) -> None:
    """The driver dies some time after the change, when checkpoints have the new layout."""
    with PlannedDriver(tmp_path, 2, ["rescale 3"], **SETTINGS) as driver:
        now = driver.wait_for(lambda now: now.get("done"), "the change")
        driver.recovered({**now, "attempt": 1})
        driver.kill()
    with PlannedDriver(tmp_path, 2, ["rescale 1"], **SETTINGS) as driver:
        driver.wait_for(lambda now: now.get("done"), "the other change")
        assert driver.finish()["records"] > 100
