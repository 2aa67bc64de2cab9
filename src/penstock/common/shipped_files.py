"""Files that travel with a job: modules to import, archives to read from, cached files by name.

What they are and what slots know them by; `penstock.common.packing` sends and unpacks them.
"""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass

from penstock.errors import ProgramError


class Role(enum.Enum):
    """What a shipped file is for."""

    PYTHON = "python"
    """On `sys.path`: a module, a folder or an archive of modules."""
    ARCHIVE = "archive"
    """Unpacked under its name in the working directory."""
    PATH = "path"
    """On `sys.path`: a folder that the hosts have. Nothing is sent."""
    CACHED = "cached"
    """Found by name through the RuntimeContext."""


@dataclass(frozen=True)
class ShippedFile:
    """A file or folder of the driver's machine, and what slots know it by."""

    role: Role
    path: str
    name: str
    executable: bool = False

    def check(self) -> ShippedFile:
        """Itself; ProgramError if there is nothing to ship."""
        if self.role is Role.PATH:
            return self
        if not os.path.exists(self.path):
            raise ProgramError(f"{self.path} is to be shipped with the job and does not exist")
        if self.role is Role.ARCHIVE and not is_archive(self.path):
            raise ProgramError(f"{self.path} is no archive: zip and tar files can be unpacked")
        return self


@dataclass(frozen=True)
class PackedFile:
    """A shipped file as it was when it was packed."""

    file: ShippedFile
    key: str
    """The name of the packed file."""
    is_folder: bool


def is_archive(path: str, name: str | None = None) -> bool:
    """Whether a file can be unpacked; a module called `name` is none, whatever it looks like."""
    # Imported when needed: most programs ship nothing.
    import tarfile
    import zipfile

    if os.path.isdir(path) or (name or path).endswith(".py"):
        return False
    return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)


cached_paths: dict[tuple[str, str], str] = {}
"""Where this process has the cached files of the jobs that run in it, by job id and name."""


def cached_file(job_id: str, name: str) -> str:
    """Where this process finds the cached file of a job; ProgramError if none has this name."""
    if (job_id, name) not in cached_paths:
        known = sorted(known for job, known in cached_paths if job == job_id)
        hint = f"; there are {', '.join(known)}" if known else ""
        raise ProgramError(
            f"no cached file {name!r}: register it with env.register_cached_file(){hint}"
        )
    return cached_paths[job_id, name]
