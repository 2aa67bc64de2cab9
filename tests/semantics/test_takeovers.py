"""Drivers that take a job over from others that are dead, paused, or still at work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted_bugs import GONE, HANGS, TWICE, Bugs, finds, problem_of
from seed_frame import chunks, verify

from penstock.checkpoint import lineage
from penstock.checkpoint.generations import Generations
from penstock.checkpoint.metadata import CheckpointMetadata, encode_metadata
from penstock.checkpoint.store import CheckpointStore
from penstock.connectors import file_sink
from penstock.testing import takeovers
from penstock.testing.faults import FaultRates
from penstock.testing.takeovers import Fate, TakeoverScenario

MANY_FAULTS = FaultRates(manifest_error=0.2, crash=0.003, storage_error=0.01, budget=30)


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(15, 300))
def test_whoever_comes_last_finishes_the_job(seeds: range) -> None:
    verify("takeover", seeds)


@pytest.mark.full
def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [TakeoverScenario(seed).run() for seed in range(60)]
    taken_over = [scenario for scenario in scenarios if scenario.fates]
    assert len(taken_over) > 30
    for fate in Fate:
        assert sum(fate in scenario.fates for scenario in scenarios) >= 8
    restored = [scenario for scenario in taken_over if scenario.simulation.restored]
    assert len(restored) > 15, "too few go on from a checkpoint"


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by(f"{TWICE}|driver .* is")
def nobody_looks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Generations, "check", lambda self, mine: None)


@BUGS.shown_by(TWICE)
def a_driver_looks_before_it_writes(patch: pytest.MonkeyPatch) -> None:
    def complete(self: CheckpointStore, metadata: CheckpointMetadata) -> bool:
        fs, path = self._metadata_path(metadata.checkpoint)
        self.check_current()
        data = encode_metadata(replace(metadata, generation=self.generation))
        return fs.create(path, data) or self._is_mine(metadata.checkpoint)

    patch.setattr(CheckpointStore, "complete", complete)


@BUGS.shown_by(f"{GONE}|{HANGS}")
def nobody_notes_where_it_begins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Generations, "note_start", lambda self, mine, checkpoint: None)


@BUGS.shown_by(f"is written twice|{HANGS}")
def every_driver_counts_its_attempts_from_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lineage, "attempts_before", lambda generation: 0)


@BUGS.shown_by(f"{GONE}|{HANGS}")
def a_superseded_driver_aborts_the_output_of_its_successor(patch: pytest.MonkeyPatch) -> None:
    def note_start(self: CheckpointStore, checkpoint: int) -> None:
        self._generations().note_start(self.generation, checkpoint)

    patch.setattr(CheckpointStore, "note_start", note_start)
    patch.setattr(CheckpointStore, "abandon", lambda self, checkpoint: True)
    patch.setattr(file_sink, "is_unfinished", lambda name, owner, last: name.startswith(owner))


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeovers, "_MOST_TICKS", 60_000)
    finds(*BUGS[name], problem_of(lambda seed: TakeoverScenario(seed, MANY_FAULTS)), range(300))
