"""Unaligned checkpoints under the simulator: what was under way counts once, whatever goes wrong.

The programs and faults are those of `test_simulation`, with barriers that overtake.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import pytest
from planted_bugs import WRONG, Bugs, finds, problem_of
from seed_frame import chunks, replayable, verify

from penstock.common import Configuration
from penstock.network.elements import Barrier
from penstock.runtime.barriers import Barriers
from penstock.runtime.gate import InputGate
from penstock.runtime.in_flight import InFlight
from penstock.runtime.input_channel import InputChannel
from penstock.runtime.intake import Intake
from penstock.runtime.output import Output, OutputChannel
from penstock.runtime.stepping import Stepping
from penstock.testing import local_environment, simulator
from penstock.testing.event_programs import EventCase
from penstock.testing.faults import FaultRates
from penstock.testing.scenarios import MANY_RESTORES, Scenario


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(15, 400))
def test_every_seed_gives_the_result_of_the_model(seeds: range) -> None:
    verify("unaligned", seeds)


@pytest.mark.full
def test_the_seeds_restore_what_was_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    original = InputGate._poll_restored

    def poll_restored(self: InputGate) -> Any:
        batch = original(self)
        batches.append(0 if batch is None else len(batch))
        return batch

    monkeypatch.setattr(InputGate, "_poll_restored", poll_restored)
    runs = [Scenario(seed, MANY_RESTORES, unaligned=True).run() for seed in range(60)]
    restored = [run for run in runs if run.simulation.restored_in_flight]
    assert len(restored) > 15, "too few runs go on from records under way"
    assert sum(batches) > 200, "too few records under way are processed again"
    later = [run for run in restored if run.job.checkpoints.overtakes_after_ms]
    assert len(later) > 3, "too few become unaligned by the aligned timeout"


# --- event time -------------------------------------------------------------------------------

EVENT_FAULTS = FaultRates(crash_soon=0.2, crash=0.002, expiry=0.002, budget=6)


def run_case(seed: int) -> tuple[bool, int]:
    """Run a program by event time: whether its answer is right, and how often it went on."""
    case = EventCase.random(seed)
    settings = Configuration.from_dict(
        {
            "execution.checkpointing.unaligned.enabled": "true",
            "execution.checkpointing.aligned-checkpoint-timeout": f"{(0, 0, 5)[seed % 3]} ms",
            "pipeline.auto-watermark-interval": f"{(10, 30)[seed % 2]} ms",
        }
    )
    with local_environment(seed, EVENT_FAULTS, settings) as env:
        found = Counter(case.build(env).execute_and_collect())
        return found == case.answer(), len(env.simulation.restored_in_flight)


@pytest.mark.parametrize("seeds", chunks(20, 100, size=40))
def test_event_time_goes_on_where_it_was(seeds: range) -> None:
    for seed in seeds:
        with replayable(seed):
            right, _ = run_case(seed)
            assert right, EventCase.random(seed)


def test_event_time_does_go_on_from_what_was_under_way() -> None:
    assert sum(run_case(seed)[1] for seed in range(20)) > 4


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by(WRONG)
def a_half_consumed_batch_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Intake, "rest", lambda self: [])


@BUGS.shown_by(WRONG)
def a_half_consumed_batch_is_recorded_whole(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Intake, "rest", lambda self: self._slice + self._batch[self._position :])


@BUGS.shown_by(WRONG)
def a_cut_is_made_in_the_middle_of_a_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stepping, "_is_between", lambda self: True)


@BUGS.shown_by(WRONG)
def what_gathers_in_a_buffer_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    def waiting(self: Output) -> dict[OutputChannel, list[Any]]:
        return {channel: channel.waiting() for channel in self.channels if channel.waiting()}

    patch.setattr(Output, "waiting", waiting)


@BUGS.shown_by(WRONG)
def what_waits_is_recorded_by_both_ends(patch: pytest.MonkeyPatch) -> None:
    # The barrier stays behind what waits, which the sender has recorded all the same.
    patch.setattr(OutputChannel, "overtake", OutputChannel.control)


@BUGS.shown_by(WRONG)
def what_is_queued_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    original = InputChannel.before
    patch.setattr(InputChannel, "before", lambda *args: ([], original(*args)[1]))


@BUGS.shown_by(WRONG)
def what_still_arrives_is_not_recorded(patch: pytest.MonkeyPatch) -> None:
    original = InFlight.opened

    def opened(self: InFlight, channel: Any) -> None:
        original(self, channel)
        self.add = lambda channel, elements: None  # type: ignore[method-assign]

    patch.setattr(InFlight, "opened", opened)


@BUGS.shown_by(WRONG)
def recording_ends_with_the_first_barrier(patch: pytest.MonkeyPatch) -> None:
    original = InputGate.cut

    def cut(self: InputGate, in_flight: InFlight, batch: list[Any]) -> None:
        original(self, in_flight, batch)
        self._stop_recording()
        in_flight._open.clear()

    patch.setattr(InputGate, "cut", cut)


@BUGS.shown_by(WRONG)
def new_records_come_before_those_that_were_under_way(patch: pytest.MonkeyPatch) -> None:
    original = InputGate.poll

    def poll(self: InputGate) -> Any:
        if not self._readable:
            return original(self)
        hidden, self._restored = self._restored, deque()
        found = original(self)
        self._restored = hidden
        return found

    patch.setattr(InputGate, "poll", poll)


@BUGS.shown_by(WRONG)
def what_a_pulled_barrier_overtook_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    original = OutputChannel.pull
    patch.setattr(OutputChannel, "pull", lambda *args: original(*args)[:0])


@BUGS.shown_by(WRONG)
def a_subtask_acknowledges_before_its_barriers_have_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InFlight, "leaves_by", lambda self, channels: None)
    original = Barriers._time_is_up

    def time_is_up(self: Barriers, trigger: Any) -> None:
        original(self, trigger)
        for output in self._outputs:
            for channel in output.channels:
                if channel.holds(trigger.checkpoint):
                    channel.pull(Barrier(trigger.checkpoint, trigger.confirmed, None, 0))

    patch.setattr(Barriers, "_time_is_up", time_is_up)


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "MAX_TICKS", 20_000)
    look = problem_of(lambda seed: Scenario(seed, MANY_RESTORES, unaligned=True))
    finds(*BUGS[name], look, range(300))


def watermarks_are_restored_before_their_records(patch: pytest.MonkeyPatch) -> None:
    original = InFlight.data

    def data(self: InFlight, edges: Any) -> Any:
        for recorded in self._recorded.values():
            recorded.sort(key=lambda element: isinstance(element, bytes))
        return original(self, edges)

    patch.setattr(InFlight, "data", data)


def test_some_seed_finds_the_bug_of_watermarks_restored_before_their_records() -> None:
    bug = watermarks_are_restored_before_their_records
    answer = lambda seed: None if run_case(seed)[0] else "a wrong answer"  # noqa: E731
    finds(bug, "a wrong answer", answer, range(300))
