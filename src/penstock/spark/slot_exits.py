"""A slot whose process is ended by `os._exit`: the place of the call is told.

Spark keeps a file for Python's faulthandler per worker, and passes on what is in it when the worker
dies. A crash writes its own lines; a call of `os._exit` would leave the file empty.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn


@contextlib.contextmanager
def noted_exits() -> Iterator[None]:
    """Within the block `os._exit` writes from where it was called, where Spark finds it."""
    folder = os.environ.get("PYTHON_FAULTHANDLER_DIR")
    if folder is None:
        yield
        return
    process, leave = os.getpid(), os._exit

    def noted(code: int) -> NoReturn:
        # Not in a child that a user's function forked: its end is none of the slot's.
        if os.getpid() == process:
            with contextlib.suppress(OSError), Path(folder, str(process)).open("w") as file:
                file.write(f"os._exit({code}) was called\n\n")
                file.flush()
                faulthandler.dump_traceback(file, all_threads=False)
        leave(code)

    os._exit = noted  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = leave
