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
        self._lock = threading.Lock()

    def submit(self, job: Job, listener: ResultListener) -> JobRunner:
        """Start a job. What can be refused is refused here, before anything is started."""
        if job.store is not None:
            job.store.prepare()
        with self._lock:
            if job.id in self._runners and not self._runners[job.id].result.done():
                raise ProgramError(f"a job with id {job.id} is already running here")
            runner = JobRunner(job, self._resources, listener)
            self._runners[job.id] = runner
        runner.start()
        return runner

    def jobs(self) -> dict[str, JobRunner]:
        """Every job that was submitted here, by id."""
        with self._lock:
            return dict(self._runners)
