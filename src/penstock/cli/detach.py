"""A detached run: the same command as a process of its own, with a log file for a terminal.

The driver is the JobManager, so something has to stay alive for as long as the job does. In Flink
that is a cluster; here it is this process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click


def start_detached(job: Path, command: Sequence[str]) -> tuple[int, Path]:
    """Start `penstock COMMAND` in the background; its process id and its log."""
    prefix = f"penstock-{job.stem}-{time.strftime('%Y%m%d-%H%M%S')}-"
    try:
        handle, log = tempfile.mkstemp(prefix=prefix, suffix=".log", dir=Path.cwd())
    except OSError as error:
        raise click.UsageError(f"no log file can be made here: {error.strerror}") from error
    with os.fdopen(handle, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Lines appear in the log when they are printed, not when a buffer is full.
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            # The terminal's Ctrl-C and its end are not for this process.
            start_new_session=True,
        )
    return process.pid, Path(log)
