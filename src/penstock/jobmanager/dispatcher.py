"""The Dispatcher: takes jobs, starts a JobMaster for each, and knows them by id."""

from __future__ import annotations

import threading

from penstock.errors import ProgramError
from penstock.jobmanager.job import Job
from penstock.jobmanager.resource_manager import ResourceManager
from penstock.jobmanager.runner import JobRunner, ResultListener


class Dispatcher:
    """The jobs of one driver on one cluster; each runs without regard to the others."""

    def __init__(self, resources: ResourceManager) -> None:
        self._resources = resources
        self._runners: dict[str, JobRunner] = {}
        self._starting: set[str] = set()
        self._lock = threading.Lock()

    def submit(self, job: Job, listener: ResultListener) -> JobRunner:
        """Start a job. What can be refused is refused here, before anything is started."""
        with self._lock:
            running = job.id in self._runners and not self._runners[job.id].result.done()
            if running or job.id in self._starting:
                raise ProgramError(
                    f"a job with id {job.id} is already running here: an id belongs to one job, "
                    "so cancel that one or choose another id"
                )
            self._starting.add(job.id)
        try:
            # Not before it is known that no job of ours has the id: it would be superseded.
            runner = JobRunner(job.claimed(), self._resources, listener)
            with self._lock:
                self._runners[job.id] = runner
        finally:
            with self._lock:
                self._starting.discard(job.id)
        runner.start()
        return runner

    def jobs(self) -> dict[str, JobRunner]:
        """Every job that was submitted here, by id."""
        with self._lock:
            return dict(self._runners)
