"""A program up to its first execute(): what it would run, without running it or starting Spark."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

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


def preview(
    job: Path, arguments: Sequence[str], file: Settings, overrides: Settings, pyflink: bool
) -> Previewed | None:
    """The first job of the program; None when it failed before, which has been reported."""
    found: list[Previewed] = []

    def stop(job: Job, settings: Settings) -> NoReturn:
        found.append(Previewed(job, settings))
        raise _Stop

    with (
        invoked(Invocation(file, overrides, preview=stop)),
        pyflink_importable(pyflink),
        # What the program prints must not mix with what is asked for.
        contextlib.redirect_stdout(sys.stderr),
        contextlib.suppress(_Stop),
    ):
        if run_and_report(job, arguments) == 0 and not found:
            print(f"penstock: {job} never calls execute()", file=sys.stderr)
    return found[0] if found else None
