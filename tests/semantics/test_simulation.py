"""A thousand random programs, each run under the simulator with faults, against a plain model.

Every seed must end with the job finished, with exactly the output of the model, and with nothing
left over. A seed that fails is printed with the command that replays it. More seeds:

    PENSTOCK_SEEDS=100000 pytest tests/semantics/test_simulation.py -n 2
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.checkpoint.handles import SegmentHandle
from penstock.runtime.segment_chain import Handles, SegmentChain
from penstock.testing.scenarios import Scenario

SEEDS = int(os.environ.get("PENSTOCK_SEEDS", "1200"))
CHUNK = 50
FIRST_SEEDS = range(0, SEEDS, CHUNK)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand failures on purpose need not be logged."""
    caplog.set_level("CRITICAL", logger="penstock")


@pytest.mark.timeout(CHUNK * 20)
@pytest.mark.parametrize("first", FIRST_SEEDS)
def test_every_seed_gives_the_result_of_the_model(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS)):
        try:
            Scenario(seed).run().verify()
        except Exception as error:
            pytest.fail(
                f"seed {seed}: {type(error).__name__}: {str(error)[:2000]}\n"
                f"replay it with: python -m penstock.testing {seed}"
            )


def test_the_seeds_reach_what_they_are_meant_to_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    compacted: list[bool] = []
    original = SegmentChain.end_compaction

    def end(self: SegmentChain, old: Handles, new: SegmentHandle | None) -> None:
        compacted.append(new is not None)
        original(self, old, new)

    monkeypatch.setattr(SegmentChain, "end_compaction", end)
    # Seeds among which a compaction fails, which is rare: chosen with aligned checkpoints.
    scenarios = [Scenario(seed, unaligned=False).run() for seed in range(120, 270)]
    completed = [s.simulation.master.progress().completed_checkpoints for s in scenarios]
    assert sum(count >= 3 for count in completed) > 150 * 0.35, "too few checkpoints per run"
    assert sum(bool(s.simulation.restored) for s in scenarios) > 150 * 0.15, "too few restores"
    assert sum(bool(s.simulation.faults) for s in scenarios) > 150 * 0.3, "too few faults"
    assert sum(compacted) > 150, "too few compactions"
    assert not all(compacted), "a compaction must fail now and then"
    crashed = [f for s in scenarios for f in s.simulation.faults if "-merged" in f]
    assert crashed, "something must go wrong while a merged segment is written or deleted"
    held = [s for s in scenarios if any("HoldBack" in line for line in s.program.lines)]
    assert sum(bool(s.simulation.restored) for s in held) > 2, "operator state is not restored"
    finished_clean = [s for s in scenarios if not s.simulation.faults]
    assert finished_clean, "some runs must have no faults at all"


@pytest.mark.parametrize("seed", [7, 28, 239])
def test_the_same_seed_gives_the_same_run(seed: int) -> None:
    first, second = Scenario(seed).run(), Scenario(seed).run()
    assert first.simulation.trace == second.simulation.trace
    assert first.simulation.faults == second.simulation.faults
    assert first.filesystem.files.keys() == second.filesystem.files.keys()


@pytest.mark.parametrize("seed", [28, 735])
def test_a_run_does_not_depend_on_the_process_that_it_runs_in(seed: int) -> None:
    """Hashes of strings differ from process to process; a seed must be replayable in any."""

    def replay(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "penstock.testing", str(seed)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    told = replay("1")
    assert "all is well" in told
    assert "digest" in told
    assert told == replay("2")


def test_the_replay_says_how_it_is_used() -> None:
    command = [sys.executable, "-m", "penstock.testing", "no-number"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "SEED" in done.stderr
