"""Which files there are: those named, and all in the folders named, hidden ones left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.errors import ProgramError, StorageError


@dataclass(frozen=True)
class FoundFile:
    """A file, and what changes when its content does."""

    path: str
    modified_ns: int
    size: int


def list_files(paths: list[str]) -> list[FoundFile]:
    """The files at `paths` and below, in order; a path where nothing is is an error.

    Names that begin with a dot or an underscore are left out, of files and of folders: that is how
    writers mark what is not finished.
    """
    found: list[FoundFile] = []
    for path in paths:
        if os.path.isdir(path):
            found.extend(_below(path))
        elif os.path.exists(path):
            found.extend(_look(path))
        else:
            raise ProgramError(f"there is no file or folder {path}")
    return found


def _below(folder: str) -> Iterator[FoundFile]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"cannot list {folder}: {error.strerror}") from error
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from _below(entry.path)
        elif entry.is_file():
            yield from _look(entry.path)


def _look(path: str) -> Iterator[FoundFile]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        # Removed since it was listed: it is not there.
        return
    except OSError as error:
        raise StorageError(f"cannot look at {path}: {error.strerror}") from error
    yield FoundFile(path, status.st_mtime_ns, status.st_size)
