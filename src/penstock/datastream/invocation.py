"""What the command line asks of the program that it runs in this process.

A program makes its own environment, so there is no argument to hand these things over in. They
are the process's, as in Flink, where the client sets the context that
`get_execution_environment` finds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

from penstock.common.config_file import find_config_file, read_config_file
from penstock.common.config_layers import Settings
from penstock.errors import ProgramError

if TYPE_CHECKING:
    from penstock.jobmanager.job import Job

Preview = Callable[["Job", Settings], NoReturn]


class Invocation:
    """How a program is run; without arguments, as `python job.py` runs it."""

    def __init__(
        self,
        file: Settings | None = None,
        overrides: Settings | None = None,
        job_id: str | None = None,
        preview: Preview | None = None,
    ) -> None:
        self._file = file
        self._job_id = job_id
        self._job_id_taken = False
        self.overrides: Settings = overrides or {}
        """What wins over the program's own settings."""
        self.preview = preview
        """Called in place of running a job; it raises, so that the program goes no further."""

    def file(self) -> Settings:
        """What wins over the defaults only: the file that was named, or the one that is found."""
        if self._file is not None:
            return self._file
        path = find_config_file()
        return read_config_file(path) if path is not None else {}

    def take_job_id(self) -> str | None:
        """The id of the job that is submitted next; None: any."""
        if self._job_id_taken:
            raise ProgramError(
                f"job id {self._job_id} was given for this program, and it executes a second job: "
                "an id belongs to one job, so run the program without one or split it"
            )
        self._job_id_taken = self._job_id is not None
        return self._job_id


_current = Invocation()


def current() -> Invocation:
    return _current


@contextlib.contextmanager
def invoked(invocation: Invocation) -> Iterator[None]:
    """Environments made in this block, by whatever thread, follow `invocation`."""
    global _current
    before, _current = _current, invocation
    try:
        yield
    finally:
        _current = before
