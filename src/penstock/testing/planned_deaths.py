"""Planned deaths: a driver dies at one exact point of a savepoint, a stop or a rescale.

    PlannedDeathScenario(4711).run().verify()

The program, its settings and its faults are those of `Scenario(seed)`; the seed also says what is
planned and at which of the `planned_points` the driver dies. Whatever was planned is asked for
until the driver is dead. Then the next driver takes the job over, in the layout that the program
has, or, where a stop has committed everything, another job goes on from the savepoint. A savepoint
is whole or there is none, and in the end the files hold every record once.
"""

from __future__ import annotations

from penstock.checkpoint.savepoints import open_snapshot
from penstock.errors import CheckpointError, PenstockError, RescaleError
from penstock.jobmanager.job import Job
from penstock.jobmanager.live_rescale import RescaleRequest
from penstock.jobmanager.savepoints import SavepointRequest
from penstock.testing.faults import FaultRates
from penstock.testing.planned_points import (
    OF_A_RESCALE,
    OF_A_SAVEPOINT,
    WITH_A_SAVEPOINT,
    dying_at,
)
from penstock.testing.simulator import MAX_TICKS
from penstock.testing.stops import StopScenario
from penstock.testing.takeovers import Fate

PLANS = (
    *(("savepoint", point) for point in OF_A_SAVEPOINT),
    *(("stop", point) for point in OF_A_SAVEPOINT),
    *(("rescale", point) for point in OF_A_RESCALE),
)
"""What is planned, and where the driver dies."""


class DriverDied(BaseException):
    """The driver is no more."""


class PlannedDeathScenario(StopScenario):
    """A scenario in which the driver dies at one point; `seed % len(PLANS)` says which."""

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        self.act, self.point = PLANS[seed % len(PLANS)]
        # A change of the layout restores aligned checkpoints only.
        self.one_layout = self.act != "rescale"
        super().__init__(seed, rates)
        self.died = False
        """Whether the driver came to the point."""
        self.wrong: list[str] = []
        """What was wrong with savepoints."""

    def _run(self) -> None:
        self.paths = []
        """The savepoint with which another job goes on."""
        self._asked = False
        self._first_asked_after = self._rng.choice((0, 1, 2))
        self.simulation.master.start()
        try:
            with dying_at(self.point, self._die):
                self._tick_to_the_end()
        except DriverDied:
            self.died = True
            self._check_savepoint()
            self._go_on()
        if self.paths:
            self.simulation = self._next_simulation(self.paths[0])
            self.simulation.master.start()
        self._asked = True
        self._tick_to_the_end()
        self._whole_savepoints()

    def _die(self) -> None:
        raise DriverDied

    def _tick_to_the_end(self) -> None:
        """Let the driver run until it dies or the job is over."""
        simulation = self.simulation
        while not simulation.over:
            assert self._ticks < MAX_TICKS, f"the job hangs: {simulation.describe()}"
            self._ticks += 1
            if not self._asked and self._may_ask():
                self._asked = True
                self._ask()
            simulation.tick()

    def _may_ask(self) -> bool:
        counts = self.simulation.master._checkpoints.counts
        return self.checkpointing and counts.completed >= self._first_asked_after

    def _ask(self) -> None:
        """Ask for what is planned; if nothing comes of it, it is asked for again."""
        master = self.simulation.master

        def answered(error: RescaleError | None) -> None:
            self._asked = False

        def taken(path: str | None, error: CheckpointError | None) -> None:
            self._asked = False
            if path is not None and self.act == "stop":
                # The driver was spared: the storage gave no answer, and the stop came true.
                self._asked = True
                self.paths.append(path)

        if self.act == "rescale":
            master.rescale(RescaleRequest(super().next_job().graph, answered))
        else:
            directory = f"{self.filesystem.uri}/savepoints"
            master.savepoint(SavepointRequest(directory, taken, stop=self.act == "stop"))

    def next_job(self) -> Job:
        """The program has the layout that it had, whatever the job ran in."""
        return self.job

    def next_fate(self) -> Fate:
        return Fate.DEAD

    def _go_on(self) -> None:
        """The next driver of the job begins; or, if all is committed, perhaps another job."""
        stopped = self.act == "stop" and self.point == "all is committed"
        if stopped and self._rng.random() < 0.5:
            path = self._under_way()
            assert path is not None, "a stop that is committed has a savepoint"
            self.paths.append(path)
            return
        self._take_over()
        while self._try_again:
            self._take_over()

    # --- savepoints ---------------------------------------------------------------------------

    def _under_way(self) -> str | None:
        """The path of the savepoint that the driver was at; None if it had been given up."""
        under_way = self.drivers[0].master._checkpoints._savepoints._under_way
        return next((savepoint.location.path for savepoint in under_way.values()), None)

    def _check_savepoint(self) -> None:
        """From a certain point on there is a savepoint, and before it there is none."""
        whole = self._whole_savepoints()
        path = self._under_way()
        if path is not None:
            exists = path in whole
            if exists != (self.point in WITH_A_SAVEPOINT):
                self.wrong.append(f"{self.point}, and the savepoint exists: {exists}")

    def _whole_savepoints(self) -> set[str]:
        """The savepoints that exist; each can be read from end to end."""
        self.filesystem.armed = False
        paths = (path.split("/") for path in list(self.filesystem.files))
        names = {path[2] for path in paths if path[1] == "savepoints"}
        found = set()
        for name in names:
            try:
                snapshot = open_snapshot(f"{self.filesystem.uri}/savepoints/{name}")
            except CheckpointError:
                continue
            found.add(snapshot.path)
            try:
                for handle in snapshot.metadata.segments():
                    snapshot.store.read_whole(handle)
            except PenstockError as error:
                self.wrong.append(f"{name} exists and is not whole: {error}")
        self.filesystem.armed = True
        return found

    def problems(self) -> list[str]:
        return self.wrong + super().problems()
