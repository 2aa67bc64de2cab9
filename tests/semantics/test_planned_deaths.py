"""The driver dies at every point of a savepoint, a stop and a rescale, and the job goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted_bugs import LOST, WRONG, Bugs, finds, problem_of, recovery_does_not_commit_again
from seed_frame import chunks, verify

from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.checkpoint.store import CheckpointStore
from penstock.common.filesystem import Content, parts_of
from penstock.jobmanager.checkpoints import Checkpoints
from penstock.jobmanager.completion import Completion, Plan
from penstock.testing.faults import FaultRates
from penstock.testing.planned_deaths import PLANS, PlannedDeathScenario

QUIET = FaultRates()
"""Nothing else goes wrong: it is the point that finds the bug."""
EVERY = len(PLANS)
"""So many seeds later the same is planned."""


@pytest.mark.parametrize("seeds", chunks(EVERY, 10 * EVERY, size=EVERY))
def test_every_record_counts_once_and_a_savepoint_is_whole_or_none(seeds: range) -> None:
    verify("planned-death", seeds)


@pytest.mark.parametrize("plan", range(EVERY), ids=map(" - ".join, PLANS))
def test_the_driver_does_die_there(plan: int) -> None:
    for seed in range(plan, 10 * EVERY, EVERY):
        scenario = PlannedDeathScenario(seed)
        scenario.run().verify()
        if scenario.died:
            assert (scenario.act, scenario.point) == PLANS[plan]
            return
    pytest.fail("10 seeds did not come to the point")


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by("exists and is not whole")
def a_part_of_a_savepoint_counts_before_it_is_stored(patch: pytest.MonkeyPatch) -> None:
    original = CheckpointStore.write_segment

    def write(self: CheckpointStore, name: str, content: Content) -> str:
        parts = list(parts_of(content))
        return original(self, name, parts[:-1] if self.job_id.startswith("savepoint-") else parts)

    patch.setattr(CheckpointStore, "write_segment", write)


@BUGS.shown_by("and the savepoint exists: True")
def the_manifest_of_a_savepoint_is_written_first(patch: pytest.MonkeyPatch) -> None:
    original = SavepointLocation.store

    def store(self: SavepointLocation) -> CheckpointStore:
        self.complete(CheckpointMetadata("job", 1, 1, 0, {}, {}, {}))
        return original(self)

    patch.setattr(SavepointLocation, "store", store)


@BUGS.shown_by(WRONG)
def a_savepoint_is_no_checkpoint_of_the_job(patch: pytest.MonkeyPatch) -> None:
    original = Completion.begin

    def begin(self: Completion, plan: Plan) -> None:
        original(self, plan if plan.copy is None else replace(plan, store=None))

    patch.setattr(Completion, "begin", begin)


@BUGS.shown_by("there is no savepoint|and the savepoint exists: False")
def a_savepoint_has_no_copy_yet_when_all_is_committed(patch: pytest.MonkeyPatch) -> None:
    original = Completion.begin

    def begin(self: Completion, plan: Plan) -> None:
        original(self, replace(plan, copy=None))

    patch.setattr(Completion, "begin", begin)


@BUGS.shown_by(WRONG)
def a_job_is_held_by_a_checkpoint_that_does_not_exist(patch: pytest.MonkeyPatch) -> None:
    original = Completion.begin

    def begin(self: Completion, plan: Plan) -> None:
        held = isinstance(self._outcome, Checkpoints) and self._outcome._holding.is_held(
            plan.metadata.checkpoint
        )
        original(self, replace(plan, store=None) if held else plan)

    patch.setattr(Completion, "begin", begin)


BUGS.shown_by(LOST)(recovery_does_not_commit_again)


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str) -> None:
    look = problem_of(lambda seed: PlannedDeathScenario(seed, QUIET))
    finds(*BUGS[name], look, range(20 * EVERY))
