"""The other terminal's end: which jobs there are, and what is to become of one."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.control.drivers import Driver, drivers
from penstock.errors import ControlError


@dataclass(frozen=True)
class FoundJob:
    """A job of some driver of this user."""

    driver: Driver
    id: str
    name: str
    status: str
    ended: bool


def find_jobs() -> list[FoundJob]:
    """All jobs of all drivers of this user on this machine that answer."""
    found = []
    for driver in drivers():
        if not driver.is_here:
            continue
        try:
            jobs = ask(driver, "list")["jobs"]
        except ControlError:
            # A driver that is just ending, or a process that has got the number of a dead one.
            continue
        found += [FoundJob(driver, j["id"], j["name"], j["status"], j["ended"]) for j in jobs]
    return found


def find_job(wanted: str) -> FoundJob:
    """The job with this id, or the only running one whose id begins so or that has this name."""
    jobs = find_jobs()
    running = [job for job in jobs if not job.ended]
    for fits in (
        [job for job in running if job.id == wanted],
        [job for job in jobs if job.id == wanted],
        [job for job in running if job.id.startswith(wanted) or job.name == wanted],
    ):
        if len(fits) == 1:
            return fits[0]
        if fits:
            ids = ", ".join(job.id for job in fits)
            raise ControlError(f"{wanted} may be any of the jobs {ids}: give the whole id")
    hosts = ", ".join(sorted({driver.host for driver in elsewhere()}))
    there = f"; drivers on {hosts} may have it: ask there" if hosts else ""
    raise ControlError(f"no job {wanted} runs here; `penstock list` shows those that do{there}")


def elsewhere() -> list[Driver]:
    """The drivers of this user on other hosts, as far as the folder that they share tells."""
    return [driver for driver in drivers() if not driver.is_here]


def ask(driver: Driver, command: str, **arguments: Any) -> Mapping[str, Any]:
    """The answer of a driver; ControlError if it refuses, or is not there.

    A command may take as long as a savepoint does.
    """
    connection = http.client.HTTPConnection("127.0.0.1", driver.port)
    try:
        headers = {"Authorization": f"Bearer {driver.token}"}
        connection.request("POST", f"/{command}", json.dumps(arguments), headers)
        response = connection.getresponse()
        content: Mapping[str, Any] = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ControlError(f"the driver {driver.pid} does not answer: {error}") from error
    finally:
        connection.close()
    if response.status != 200:
        raise ControlError(str(content.get("error")))
    return content
