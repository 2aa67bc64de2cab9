"""Live rescales: a running job changes its layout, again and again, whatever else goes wrong.

    LiveRescaleScenario(4711).run().verify()

The program, its settings and its faults are those of `Scenario(seed)`. At random moments somebody
asks that the job go on with other parallelisms and chains. Now and then the cluster has too few
cores, at once or only when the new slots are to start; now and then the driver dies, and the next
one begins with a layout of its own. Every request is answered, the job runs in the layout that the
last good answer stood for, and in the end every record is there once.
"""

from __future__ import annotations

from penstock.errors import RescaleError
from penstock.graph.execution_graph import ExecutionGraph
from penstock.jobmanager.live_rescale import RescaleRequest, same_layout
from penstock.testing.rescales import RescaleScenario
from penstock.testing.simulator import MAX_TICKS
from penstock.testing.takeovers import Fate

_RESCALES = 0.005
_IMPATIENT = 0.0003
_TAKEOVER = 0.15
"""How often a driver dies in the middle of a change."""


class LiveRescaleScenario(RescaleScenario):
    """A scenario in which the layout changes while the job runs."""

    def _run(self) -> None:
        self.answers: list[RescaleError | None] = []
        """What became of the requests that were answered."""
        self.unanswered = 0
        self._layout_now: ExecutionGraph = self.job.graph
        self._die_at: int | None = None
        changes = self._rng.choice((1, 2, 3, 5))
        self.simulation.master.start()
        while not self.simulation.over:
            assert self._ticks < MAX_TICKS, f"the job hangs: {self.simulation.describe()}"
            self._ticks += 1
            if self._die_at == self._ticks:
                self._replace_driver()
            elif len(self.answers) < changes and self._due():
                self._ask()
            else:
                self.simulation.tick()

    def _due(self) -> bool:
        """Whether somebody asks now; rarely while the last one still waits for an answer."""
        return self._rng.random() < (_IMPATIENT if self.unanswered else _RESCALES)

    def _ask(self) -> None:
        simulation, rng = self.simulation, self._rng
        graph, slots = self.next_job().graph, simulation.master.job.graph.slots
        self.unanswered += 1

        def answer(error: RescaleError | None) -> None:
            self.answers.append(error)
            self.unanswered -= 1
            simulation.cores = simulation.later_cores = None
            if error is None:
                self._layout_now = graph

        kind = rng.random()
        if kind < 0.15:
            simulation.cores = slots
        elif kind < 0.35:
            # Somebody else is faster: they are gone when the new slots are to start.
            simulation.later_cores = slots
        if self.checkpointing and kind > 1 - _TAKEOVER:
            self._die_at = self._ticks + rng.randrange(1, rng.choice((20, 200, 1000)))
        simulation.master.rescale(RescaleRequest(graph, answer))

    def _replace_driver(self) -> None:
        """The driver is no more, wherever it was; another one begins."""
        self._die_at = None
        count = len(self.drivers)
        self._take_over()
        if self._try_again:
            self._die_at = self._ticks + 1
        elif len(self.drivers) > count:
            self.unanswered = 0
            self._layout_now = self.simulation.master.job.graph

    def next_fate(self) -> Fate:
        return Fate.DEAD

    def problems(self) -> list[str]:
        problems = super().problems()
        if not self.fates and self.simulation.master.status.name == "FINISHED":
            # What goes to the client goes to one and the same.
            restarted = self.simulation.master.progress().restarts > 0
            twice = self.at_least_once or (restarted and not self.checkpointing)
            sinks = [sink for sink in self.program.sinks if sink.mark is None]
            found = [sink.differences(self.arrived(sink), twice) for sink in sinks]
            problems += [problem for problem in found if problem is not None]
        if self.unanswered:
            problems.append(f"{self.unanswered} requests were never answered")
        if not same_layout(self.simulation.master.job.graph, self._layout_now):
            problems.append("the job does not run in the layout that it was said to")
        return problems
