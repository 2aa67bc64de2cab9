"""State that expires, timers by the clock and asynchronous calls, while drivers are replaced."""

from __future__ import annotations

from typing import Any

import pytest
from planted_bugs import LOST, WRONG, Bugs, finds, problem_of
from seed_frame import chunks, verify

from penstock.network.elements import Watermark
from penstock.runtime.async_operator import RuntimeAsync
from penstock.runtime.async_queue import AsyncQueue, _Segment
from penstock.runtime.operators import RuntimeFunction
from penstock.state.ttl import _ExpiringSingle
from penstock.testing import takeovers
from penstock.testing.call_programs import ANSWERED, SILENT, CallCase
from penstock.testing.clock_programs import STATES, TIMERS, ClockCase, writes
from penstock.testing.function_scenarios import FunctionScenario


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(20, 45))
def test_every_function_sees_what_it_must(seeds: range) -> None:
    verify("function", seeds)


@pytest.mark.full
def test_the_seeds_reach_what_they_are_meant_to_reach() -> None:
    scenarios = [FunctionScenario(seed) for seed in range(100, 220)]
    for scenario in scenarios:
        scenario.run().verify()
    moved = [s for s in scenarios if s.fates and s.simulation.restored]
    calls = {f"{order} calls{rest}" for order in ("ordered", "unordered") for rest in _AFTER_CALLS}
    restored = [s for s in scenarios if any(driver.restored for driver in s.drivers)]
    assert {s.case.kind for s in restored} == {*STATES, TIMERS, *calls}
    for about in (ClockCase, CallCase):
        mine = [s for s in moved if isinstance(s.case, about)]
        assert {s.job.settings.state.backend for s in mine} == {"hashmap", "rocksdb"}
        assert any(s.job.settings.changelog_ms for s in mine)
        assert any(s.job.checkpoints.overtakes_after_ms is not None for s in mine)
        assert any(s.layouts[0] != s.layouts[-1] for s in mine)
    seen = [record for s in moved if isinstance(s.case, CallCase) for record in _records(s)]
    assert {how for record in seen for how in (ANSWERED, SILENT) if how in repr(record)} == {
        *(ANSWERED, SILENT)
    }
    assert any(map(_expired, restored)), "no value has expired"


_AFTER_CALLS = ("", " before windows")


def _records(scenario: FunctionScenario) -> list[Any]:
    return [record for sub in scenario.arrived(scenario.program.sinks[0]) for record in sub]


def _expired(scenario: FunctionScenario) -> bool:
    """Whether a key that had been written is seen to be empty."""
    case = scenario.case
    if not isinstance(case, ClockCase) or case.kind == TIMERS or case.shows_expired:
        return False
    written: set[str] = set()
    for key, number, _, seen in sorted(_records(scenario), key=lambda record: record[1]):
        if seen in (None, ()) and key in written:
            return True
        written |= {key} if writes(number) else set()
    return False


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by(WRONG)
def a_read_that_renews_an_entry_is_no_change(patch: pytest.MonkeyPatch) -> None:
    original = _ExpiringSingle._read

    def read(self: Any) -> Any:
        known = set(self._changed)
        value = original(self)
        if self._key_context.key in self._entries and self._key_context.key not in known:
            self._changed.discard(self._key_context.key)
        return value

    patch.setattr(_ExpiringSingle, "_read", read)


@BUGS.shown_by(LOST)
def calls_under_way_are_not_in_the_checkpoint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RuntimeAsync, "cut", RuntimeFunction.cut)


@BUGS.shown_by(LOST)
def results_of_calls_pass_a_watermark(patch: pytest.MonkeyPatch) -> None:
    original = AsyncQueue.control

    def control(self: AsyncQueue, element: Any) -> None:
        if self._ordered or not isinstance(element, Watermark):
            original(self, element)
            return
        ahead = _Segment()
        ahead.control = element
        self._segments.appendleft(ahead)

    patch.setattr(AsyncQueue, "control", control)


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeovers, "_MOST_TICKS", 60_000)
    finds(*BUGS[name], problem_of(FunctionScenario), range(400))
