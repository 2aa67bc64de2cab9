"""A whole program in one process, without Spark: for tests of programs.

    with local_environment(seed=7, faults=True) as env:
        numbers = env.from_collection(range(100))
        assert sorted(numbers.map(lambda n: n * n).execute_and_collect()) == [...]

The program runs in the simulator: the code is that which runs on Spark, the clock is virtual, and
the seed decides what happens when. `faults=True` adds crashes, lost messages and storage errors.
Inside the block `StreamExecutionEnvironment.get_execution_environment()` gives such an environment
too, so that the `main` of a program can be called as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.common import config_options as options
from penstock.common.configuration import Configuration
from penstock.common.packing import installed, pack
from penstock.common.settings import RuntimeSettings
from penstock.datastream.invocation import Invocation, invoked
from penstock.datastream.job_client import Runner
from penstock.datastream.results import ClientResults
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ProgramError
from penstock.jobmanager.job import Job
from penstock.testing.choices import Choices
from penstock.testing.faults import FaultBudget, FaultRates, FaultyFileSystem
from penstock.testing.simulated_runner import SimulatedRunner
from penstock.testing.simulator import Simulation

COMMON_FAULTS = FaultRates(
    crash=0.002,
    crash_soon=0.05,
    freeze=0.0005,
    lost_frame=0.001,
    slow=0.001,
    storage_error=0.005,
    expiry=0.002,
    budget=5,
)
"""What `faults=True` stands for: up to five faults of every kind in a run."""


class LocalEnvironment(StreamExecutionEnvironment):
    """An environment whose jobs run in the simulator; made by `local_environment`."""

    def __init__(
        self,
        configuration: Configuration | None = None,
        seed: int = 0,
        faults: bool | FaultRates = False,
    ) -> None:
        super().__init__(configuration)
        self._seed = seed
        self._rates = _rates(faults)
        self.filesystem = FaultyFileSystem(Choices(seed)("storage"), self._rates)
        """A file system in memory that takes part in the faults: its files by path."""
        self._runners: list[SimulatedRunner] = []
        self._installed = ExitStack()
        if options.PROGRESS.key not in self._values():
            self._set(options.PROGRESS, "off")
        if self._rates.budget > 0:
            self._default_checkpoints()

    @property
    def storage(self) -> str:
        """The address of `filesystem`, for sinks and checkpoint directories."""
        return self.filesystem.uri

    @property
    def faults(self) -> list[str]:
        """What went wrong in the job that was started last, in order."""
        return self.simulation.faults

    @property
    def simulation(self) -> Simulation:
        """The run of the job that was started last."""
        if not self._runners:
            raise ProgramError("no job has been started in this environment")
        return self._runners[-1].simulation

    def close(self) -> None:
        """End every job that still runs."""
        for runner in self._runners:
            runner.end()
        self.filesystem.forget()
        self._installed.close()
        super().close()

    def _start(self, job: Job, results: ClientResults) -> Runner:
        if self._rates.budget > 0:
            # One storage, one clock that says when it fails: two jobs would upset each other.
            if any(not runner.result.done() for runner in self._runners):
                raise ProgramError("with faults an environment runs one job at a time")
            self.filesystem.budget = FaultBudget(self._rates.budget)
        job = replace(job.claimed(), settings=self._finely_cut(job.settings))
        self._install(job)
        runner = SimulatedRunner(job, self._seed, self._rates, self.filesystem, results)
        self._runners.append(runner)
        runner.start()
        return runner

    def _install(self, job: Job) -> None:
        """Make the files of a job reachable in this process until the environment is closed."""
        if job.python is not None:
            raise ProgramError(
                "python.executable: a program under test runs in the Python of the test"
            )
        if job.files:
            folder = Path(self._installed.enter_context(TemporaryDirectory(prefix="penstock-")))
            packed = [pack(file, folder) for file in job.files]
            self._installed.enter_context(installed(job.id, packed, folder))

    def _finely_cut(self, settings: RuntimeSettings) -> RuntimeSettings:
        """Small buffers and steps: the few records of a test interleave as millions would."""
        choices = Choices(self._seed)
        return replace(
            settings,
            # Threads of its own would run in an order that no seed decides.
            state=replace(settings.state, transfer_threads=1),
            credits=choices("credits").randrange(1, 5),
            buffer_records=choices("buffers").choice((2, 5, 20, 100)),
            step_records=choices("steps").choice((2, 5, 20, 100)),
        )

    def _default_checkpoints(self) -> None:
        """A program that is to survive faults needs checkpoints; its own settings win."""
        values = self._values()
        if options.CHECKPOINT_INTERVAL.read(values) is None:
            self._set(options.CHECKPOINT_INTERVAL, 10)
        if options.CHECKPOINT_DIRECTORY.read(values) is None:
            self._set(options.CHECKPOINT_DIRECTORY, f"{self.storage}/checkpoints")


@contextmanager
def local_environment(
    seed: int = 0,
    faults: bool | FaultRates = False,
    configuration: Configuration | None = None,
) -> Iterator[LocalEnvironment]:
    """An environment that runs programs in this process, and all others made inside the block.

    The same seed and program give the same run. With `faults` a checkpoint is taken every 10
    milliseconds (of simulated time) unless the program says otherwise. A configuration file is
    not read; `configuration` stands for it.
    """

    def make(given: Configuration | None) -> LocalEnvironment:
        whole = Configuration(configuration)
        if given is not None:
            whole.add_all(given)
        return LocalEnvironment(whole, seed, faults)

    # The seed decides everything, so a configuration file nearby must decide nothing.
    with _environments(make) as made, invoked(Invocation(file={})):
        yield made(None)


@contextmanager
def programs_run_here() -> Iterator[None]:
    """Inside the block the environments of programs run their jobs in this process.

    Settings come from where they come otherwise: the configuration file, the command line.
    """
    with _environments(LocalEnvironment):
        yield


_Make = Callable[[Configuration | None], LocalEnvironment]


@contextmanager
def _environments(make: _Make) -> Iterator[_Make]:
    """Inside the block every environment is made by `make`, and closed at its end."""
    made: list[LocalEnvironment] = []

    def make_one(given: Configuration | None) -> LocalEnvironment:
        made.append(make(given))
        return made[-1]

    before: Callable[[Configuration | None], StreamExecutionEnvironment] | None
    before = StreamExecutionEnvironment._make
    StreamExecutionEnvironment._make = make_one
    try:
        yield make_one
    finally:
        StreamExecutionEnvironment._make = before
        for environment in made:
            environment.close()


def _rates(faults: bool | FaultRates) -> FaultRates:
    if isinstance(faults, FaultRates):
        return faults
    return COMMON_FAULTS if faults else FaultRates()
