"""Programs by event time whose drivers are replaced: windows, joins, timers, lateness, evictors.

    EventScenario(4711).run().verify()

The program is the `EventCase` of the seed: on either state backend, with a changelog or not, with
the faults of `Scenario(seed)`. Other drivers take the job over, as in `TakeoverScenario`; with some
seeds each lays the program out differently, with the others checkpoints may be unaligned.
"""

from __future__ import annotations

from penstock.jobmanager.job import Job
from penstock.testing.choices import Choices
from penstock.testing.event_programs import EventCase
from penstock.testing.faults import FaultRates
from penstock.testing.programs import ProgramBuilder
from penstock.testing.rescales import RescaleScenario


class EventScenario(RescaleScenario):
    """A scenario about event time."""

    # A record that comes twice changes what a window holds.
    may_repeat = False

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        self.case = EventCase.random(seed)
        self.one_layout = Choices(seed)("one layout").random() < 0.5
        super().__init__(seed, rates)

    def build(self, program: ProgramBuilder) -> None:
        program.build_case(self.case)

    def next_job(self) -> Job:
        return self.job if self.one_layout else super().next_job()
