"""The jobs of this process, as other terminals of the same user reach them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.control.server import ControlServer
from penstock.datastream.job_client import RunningJob
from penstock.errors import ControlError

if TYPE_CHECKING:
    from penstock.datastream.job_client import Runner

log = logging.getLogger(__name__)

Jobs = Callable[[], Mapping[str, "Runner"]]
"""The jobs that were submitted in this process, by id."""

_server: ControlServer | None = None
_lock = threading.Lock()


def serve(jobs: Jobs) -> None:
    """Let other terminals reach `jobs`; done once per process, and never a reason to fail."""
    global _server
    with _lock:
        if _server is not None:
            return
        try:
            _server = ControlServer(commands(jobs))
            _server.announce()
        except OSError as error:
            log.warning("other terminals cannot reach this driver: %s", error)


def commands(jobs: Jobs) -> dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]]:
    """What can be asked for, by name."""

    def found(asked: Mapping[str, Any]) -> RunningJob:
        runner = jobs().get(asked["job"])
        if runner is None:
            raise ControlError(f"there is no job {asked['job']}")
        return RunningJob(runner)

    def list_jobs(_: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"jobs": [_described(job_id, runner) for job_id, runner in jobs().items()]}

    def savepoint(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"path": found(asked).trigger_savepoint(asked.get("directory")).result()}

    def stop(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        job = found(asked)
        ended = job.get_job_execution_result()
        path = job.stop_with_savepoint(bool(asked.get("drain")), asked.get("directory")).result()
        ended.result()
        return {"path": path}

    def rescale(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        found(asked).rescale(int(asked["parallelism"])).result()
        return {}

    def cancel(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        found(asked).cancel().result()
        return {}

    return {
        "list": list_jobs,
        "savepoint": savepoint,
        "stop": stop,
        "rescale": rescale,
        "cancel": cancel,
    }


def _described(job_id: str, runner: Runner) -> dict[str, Any]:
    status = runner.status()
    ended = status.is_terminal_state()
    return {"id": job_id, "name": runner.job.name, "status": status.name, "ended": ended}
