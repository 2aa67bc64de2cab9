"""The changelog under the simulator: what is logged between checkpoints is in them, once.

The programs and faults are those of `test_simulation`.
"""

from __future__ import annotations

from typing import Any

import pytest
from planted_bugs import WRONG, Bugs, finds, problem_of
from seed_frame import chunks, verify

from penstock.checkpoint.handles import OperatorSnapshot
from penstock.runtime.change_log import ChangeLog
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.runtime.segment_chain import SegmentChain
from penstock.state.generations import Generations
from penstock.testing.scenarios import MANY_RESTORES, Scenario, changelog_scenario


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(12, 150))
def test_every_seed_gives_the_result_of_the_model(seeds: range) -> None:
    verify("changelog", seeds)


@pytest.mark.full
def test_the_seeds_go_on_from_what_was_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[str] = []
    original = RuntimeKeyedFunction.restore

    def restore(self: RuntimeKeyedFunction, snapshot: OperatorSnapshot, store: Any) -> None:
        pieces.extend(handle.path for handle in snapshot.segments if "-log-" in handle.path)
        original(self, snapshot, store)

    monkeypatch.setattr(RuntimeKeyedFunction, "restore", restore)
    for seed in range(1, 60, 2):
        changelog_scenario(seed).run().verify()
    assert len(pieces) > 30, "too few restores read pieces of the changelog"


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by(WRONG)
def what_was_logged_is_not_in_the_chain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SegmentChain, "logged", lambda self, mark, piece: None)


@BUGS.shown_by(WRONG)
def a_piece_counts_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    original = ChangeLog.write

    def write(self: ChangeLog) -> None:
        original(self)
        if self._under_way:
            self._operator.state.confirm(2**62)

    patch.setattr(ChangeLog, "write", write)


@BUGS.shown_by(WRONG)
def an_earlier_cut_takes_the_place_of_a_later_one(patch: pytest.MonkeyPatch) -> None:
    original = SegmentChain.confirm

    def confirm(self: SegmentChain, mark: int) -> bool:
        self._logged.clear()
        return original(self, mark)

    patch.setattr(SegmentChain, "confirm", confirm)


@BUGS.shown_by(WRONG)
def changes_of_a_checkpoint_under_way_are_left_out(patch: pytest.MonkeyPatch) -> None:
    def changed(self: Generations) -> set[Any]:
        return set(self._newest_keys)

    patch.setattr(Generations, "changed", changed)


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_found(name: str) -> None:
    look = problem_of(lambda seed: Scenario(seed, MANY_RESTORES, changelog=True))
    finds(*BUGS[name], look, range(200))
