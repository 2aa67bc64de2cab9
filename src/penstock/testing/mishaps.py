"""What goes wrong in a simulation beside its storage: slots die or freeze, messages stand still.

One fault a tick at most, as often as the rates of the run say, while its budget lasts.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.simulated import SimulatedProcess
    from penstock.testing.simulator import Simulation

MASTER = (0, 0)
"""In the place of a process: the driver. Launches are counted from 1."""
_STALL = 8_000
"""As long as anything waits for an answer, in milliseconds."""


class Mishaps:
    """The faults of one run."""

    def __init__(self, simulation: Simulation, rng: random.Random) -> None:
        self._simulation = simulation
        self._rng = rng
        self.crash_tick = 0
        """A slot dies at this tick, whatever the rates say."""

    def happen(self) -> None:
        """Break something, or most often nothing."""
        simulation = self._simulation
        if simulation.budget.left <= 0 or not simulation.processes:
            return
        rates = simulation.rates
        chance = self._rng.random()
        if chance < rates.crash or simulation.ticks == self.crash_tick:
            process = self._any_process()
            simulation.fault(f"killed slot {process.key}")
            simulation.crash(process)
        elif chance < rates.crash + rates.freeze:
            self._freeze(self._any_process())
        elif chance < rates.crash + rates.freeze + rates.slow:
            self._stall()
        elif chance < rates.crash + rates.freeze + rates.slow + rates.expiry:
            self._expire()

    def _any_process(self) -> SimulatedProcess:
        simulation = self._simulation
        return simulation.processes[self._rng.choice(sorted(simulation.processes))]

    def _freeze(self, process: SimulatedProcess) -> None:
        if process.frozen:
            return

        def thaw() -> None:
            process.frozen = False
            process.awake = True

        self._simulation.fault(f"froze slot {process.key}")
        process.frozen = True
        self._simulation.at(self._rng.randrange(1, 40_000), thaw)

    def _stall(self) -> None:
        simulation, rng = self._simulation, self._rng
        ways: list[tuple[str, Any]]
        ways = [("frame", pair) for pair, frames in simulation.network.items() if frames]
        ways += [(way, key) for key in simulation.processes for way in ("up", "down", "storage")]
        way = rng.choice([*ways, ("storage", MASTER)])
        simulation.fault(f"nothing moves: {way[0]} {way[1]}")
        # Mostly short, now and then longer than any timeout.
        longest = rng.choice((50, 500, _STALL, 3 * _STALL))
        simulation.stalled[way] = simulation.clock.now + rng.randrange(1, longest)

    def _expire(self) -> None:
        # As if the clock of the JobMaster had run faster: any moment may be too late.
        checkpoints = self._simulation.master._checkpoints
        waiting = [p.id for p in checkpoints._coordinator.pending.values() if not p.writing]
        if waiting:
            self._simulation.fault(f"gave checkpoint {waiting[0]} up")
            checkpoints.given_up(waiting[0], "simulated: it expired")
