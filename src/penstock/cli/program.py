"""Running a user's file as `python job.py` runs it, inside this process."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType


def run_file(job: Path, arguments: Sequence[str]) -> None:
    """Run `job` as the main module; what it raises comes out."""
    # Not runpy: it empties the module afterwards, and jobs may outlive the file's last line.
    module = ModuleType("__main__")
    module.__file__ = str(job)
    with _as_main(module, job, arguments):
        exec(compile(job.read_bytes(), str(job), "exec", dont_inherit=True), module.__dict__)


@contextlib.contextmanager
def _as_main(module: ModuleType, job: Path, arguments: Sequence[str]) -> Iterator[None]:
    main, argv, path = sys.modules["__main__"], sys.argv, sys.path
    sys.modules["__main__"] = module
    sys.argv = [str(job), *arguments]
    sys.path = [str(job.resolve().parent), *path]
    try:
        yield
    finally:
        sys.modules["__main__"], sys.argv, sys.path = main, argv, path
