"""Event time in whole programs, quiet and under faults: the answer is that of a plain loop."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from planted_bugs import TWICE, WRONG, Bugs, finds
from seed_frame import chunks, replayable

from penstock.checkpoint.handles import MIN_WATERMARK, SubtaskSnapshot
from penstock.common import Configuration
from penstock.runtime.windowing.emission import LateRecords
from penstock.state.hashmap import HashMapBackend
from penstock.state.timers import TimerQueue
from penstock.testing import FaultRates, local_environment
from penstock.testing.event_programs import KINDS, EventCase

CASES = 264
FAULTS = FaultRates(
    crash=0.001, crash_soon=0.3, storage_error=0.003, expiry=0.001, slow=0.003, budget=4
)
RESTORES = FaultRates(crash_soon=0.5, crash=0.003, expiry=0.002, budget=8)
"""So many that most runs go back to a checkpoint."""

restored: list[int] = []


def run(case: EventCase, seed: int, faults: FaultRates | bool, **settings: str) -> Counter[object]:
    interval = (10, 30, 200)[seed % 3]
    settings = {"pipeline.auto-watermark-interval": f"{interval} ms", **settings}
    configuration = Configuration.from_dict(settings)
    with local_environment(seed, faults, configuration) as env:
        found = Counter(case.build(env).execute_and_collect())
        restored.append(len(env.simulation.restored))
        return found


@pytest.mark.parametrize("seeds", chunks(100, 2000, size=190))
def test_the_answer_is_that_of_a_plain_loop(seeds: range) -> None:
    for seed in seeds:
        with replayable(seed):
            case = EventCase.random(seed)
            assert run(case, seed, False) == case.answer(), case


@pytest.mark.parametrize("seeds", chunks(40, CASES, size=40, first=1000))
def test_faults_change_nothing(seeds: range) -> None:
    for seed in seeds:
        with replayable(seed):
            case = EventCase.random(seed)
            assert run(case, seed, FAULTS) == case.answer(), case


def test_jobs_do_go_back_to_a_checkpoint() -> None:
    restored.clear()
    for seed in range(1000, 1020):
        run(EventCase.random(seed), seed, FAULTS)
    assert sum(map(bool, restored)) >= 2


def test_the_cases_are_of_every_kind() -> None:
    kinds = Counter(EventCase.random(seed).kind for seed in range(CASES))
    assert set(kinds) == set(KINDS) and min(kinds.values()) > CASES / len(KINDS) / 2
    late = [EventCase.random(seed) for seed in range(CASES)]
    assert sum(bool(case._late()) for case in late if case.kind == "late") > kinds["late"] / 2


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by(WRONG)
def watermarks_are_not_restored(patch: pytest.MonkeyPatch) -> None:
    original = SubtaskSnapshot.from_json

    def from_json(value: Any) -> SubtaskSnapshot:
        return replace(original(value), watermark=MIN_WATERMARK)

    patch.setattr(SubtaskSnapshot, "from_json", staticmethod(from_json))


@BUGS.shown_by(WRONG)
def event_timers_are_lost(patch: pytest.MonkeyPatch) -> None:
    original = HashMapBackend.restore

    def restore(self: HashMapBackend, blocks: Any) -> None:
        original(self, [block for block in blocks if block.state != "__event_timers"])

    patch.setattr(HashMapBackend, "restore", restore)


@BUGS.shown_by(WRONG)
def timers_that_fired_come_back(patch: pytest.MonkeyPatch) -> None:
    original = TimerQueue.pop_due

    def pop_due(self: TimerQueue, until: int) -> tuple[int, Any] | None:
        due = original(self, until)
        if due is not None:
            self._changed.discard(due[1])
        return due

    patch.setattr(TimerQueue, "pop_due", pop_due)


@BUGS.shown_by(WRONG)
def windows_come_back_empty(patch: pytest.MonkeyPatch) -> None:
    original = HashMapBackend.restore

    def restore(self: HashMapBackend, blocks: Any) -> None:
        original(self, [block for block in blocks if block.state.startswith("__event_timers")])

    patch.setattr(HashMapBackend, "restore", restore)


@BUGS.shown_by(TWICE)
def late_records_count_twice(patch: pytest.MonkeyPatch) -> None:
    original = LateRecords.met

    def met(self: LateRecords, *late: Any) -> Any:
        return [*original(self, *late), *original(self, *late)]

    patch.setattr(LateRecords, "met", met)


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str) -> None:
    # A bug may fail every attempt; the faults alone fail fewer than that.
    few = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "20",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }

    def look(seed: int) -> str | None:
        case = EventCase.random(seed)
        found, answer = run(case, seed, RESTORES, **few), case.answer()
        missing, extra = (answer - found).total(), (found - answer).total()
        return f"missing {missing} records, too many {extra} records" if missing or extra else None

    finds(*BUGS[name], look, range(1000, 1000 + CASES))
