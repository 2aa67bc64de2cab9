"""A program up to its first execute(): what it would run, without running it or starting Spark."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import NoReturn

from penstock.cli.options import Asked
from penstock.cli.pyflink_hook import pyflink_importable
from penstock.cli.run import run_and_report
from penstock.common.config_layers import Settings
from penstock.datastream.invocation import Invocation, invoked
from penstock.jobmanager.job import Job


@dataclass(frozen=True)
class Previewed:
    """What execute() was called with."""

    job: Job
    settings: Settings


class _Stop(BaseException):
    """Ends the program at execute(); not an Exception, so that programs do not handle it."""


def preview(asked: Asked) -> Previewed | None:
    """The first job of the program; None when it failed before, which has been reported."""
    found: list[Previewed] = []

    def stop(job: Job, settings: Settings) -> NoReturn:
        found.append(Previewed(job, settings))
        raise _Stop

    with (
        invoked(Invocation(asked.file(), asked.overrides(), preview=stop)),
        pyflink_importable(asked.pyflink),
        # What the program prints must not mix with what is asked for.
        contextlib.redirect_stdout(sys.stderr),
        contextlib.suppress(_Stop),
    ):
        if run_and_report(asked.program, asked.arguments) == 0 and not found:
            print(f"penstock: {asked.job} never calls execute()", file=sys.stderr)
    return found[0] if found else None
