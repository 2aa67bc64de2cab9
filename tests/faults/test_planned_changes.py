"""The driver dies in the middle of a savepoint, a stop, a change of parallelism.

Afterwards either the old or the new state of affairs: the next start of the job goes on, and every
record counts once. What exists of a savepoint is whole, or is none. This is one point of each, on
a real Spark; `tests/semantics/test_planned_deaths.py` has all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from planned_driver import PATIENCE, PlannedDriver

from penstock.checkpoint.savepoints import open_snapshot
from penstock.errors import CheckpointError

pytestmark = pytest.mark.full("kills")

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


@pytest.mark.parametrize(
    ("act", "point", "savepoints"),
    [
        ("savepoint", "its manifest is to be written", 0),
        ("stop", "its manifest is written", 1),
        # The next driver finds what the new slots, which were about to run, have opened.
        ("rescale 3", "the new slots run", 0),
    ],
)
def test_the_next_start_goes_on(tmp_path: Path, act: str, point: str, savepoints: int) -> None:
    with PlannedDriver(tmp_path, 2, [act], point, **SETTINGS) as driver:
        driver.wait_killed(PATIENCE)
    assert len(whole_savepoints(tmp_path)) == savepoints
    # The program has the parallelism that it had, whatever the job ran at.
    with PlannedDriver(tmp_path, 2, **SETTINGS) as driver:
        driver.wait_for(lambda now: now["completed"] >= 1, "a checkpoint")
        assert driver.finish()["records"] > 100
