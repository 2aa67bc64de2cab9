"""Functions that depend on clocks and on the outside, while drivers are replaced.

    FunctionScenario(4711).run().verify()

The program is the `ClockCase` of the seed (state that expires, timers by processing time) or its
`CallCase` (asynchronous calls, which take simulated time). All else is as in `EventScenario`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from penstock.jobmanager.job import Job
from penstock.testing.call_programs import CallCase
from penstock.testing.choices import Choices
from penstock.testing.clock_programs import ClockCase
from penstock.testing.faults import FaultRates
from penstock.testing.programs import ProgramBuilder
from penstock.testing.rescales import RescaleScenario
from penstock.testing.simulator import Simulation


class FunctionScenario(RescaleScenario):
    """A scenario about expiring state, timers by the clock, or asynchronous calls."""

    # A record that comes twice changes what a state holds.
    may_repeat = False

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        choices = Choices(seed)
        calls = choices("calls or clocks").random() < 0.5
        self.case = CallCase.random(seed) if calls else ClockCase.random(seed)
        self.one_layout = choices("one layout").random() < 0.5
        super().__init__(seed, rates)
        self.simulation.simulates_calls = True

    def build(self, program: ProgramBuilder) -> None:
        program.build_observed(self.case.kind, self.case.build, self._expected)

    def _expected(self, arrived: list[Any]) -> Counter[Any]:
        if isinstance(self.case, CallCase):
            return self.case.expected(arrived, self.one_layout)
        return self.case.expected(arrived)

    def next_job(self) -> Job:
        return self.job if self.one_layout else super().next_job()

    def took_over(self, driver: Simulation) -> None:
        driver.simulates_calls = True
