"""What a program needs in its slots besides itself, from its configuration.

`python.files`, `python.archives`, `python.requirements` and `pipeline.cached-files` are lists as
Flink writes them; the methods of the environment add to them.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from penstock.common import config_options as options
from penstock.common.shipped_files import Role, ShippedFile
from penstock.errors import ProgramError

_installed: dict[str, str] = {}
_lock = threading.Lock()


def python_files(values: Mapping[str, str]) -> tuple[ShippedFile, ...]:
    """The modules and archives to ship; ProgramError for one that does not exist."""
    found = [
        ShippedFile(Role.PYTHON, local_path(path), os.path.basename(path.rstrip("/")))
        for path in options.PYTHON_FILES.read(values)
    ]
    found += [ShippedFile(Role.PATH, path, path) for path in options.PYTHON_PATH.read(values)]
    for name, path, executable in options.CACHED_FILES.read(values):
        found.append(ShippedFile(Role.CACHED, local_path(path), name, executable))
    for entry in options.PYTHON_ARCHIVES.read(values):
        path, _, target = entry.partition("#")
        name = target or os.path.basename(path)
        if os.path.isabs(name) or ".." in Path(name).parts:
            raise ProgramError(
                f"archive {path}: {name} is not below the working directory of a slot"
            )
        found.append(ShippedFile(Role.ARCHIVE, local_path(path), name))
    _check_executable(options.PYTHON_EXECUTABLE.read(values), found)
    return tuple(file.check() for file in found)


def required_packages(values: Mapping[str, str]) -> tuple[ShippedFile, ...]:
    """The packages of `python.requirements`, installed into a folder that can be shipped.

    They are installed here, by this Python's pip, because slots run the same Python: a mistake is
    found before anything starts, and slots need no access to a package index.
    """
    given = options.PYTHON_REQUIREMENTS.read(values)
    if given is None:
        return ()
    path, _, cache = given.partition("#")
    requirements = Path(local_path(path))
    if not requirements.is_file():
        raise ProgramError(f"{requirements} is to list required packages and does not exist")
    cache = local_path(cache) if cache else ""
    if cache and not os.path.isdir(cache):
        raise ProgramError(f"{cache} is to hold the required packages and is no folder")
    key = hashlib.sha256(requirements.read_bytes() + cache.encode()).hexdigest()
    with _lock:
        if key not in _installed:
            _installed[key] = _install(requirements, cache)
    return (ShippedFile(Role.PYTHON, _installed[key], "requirements"),)


def _install(requirements: Path, cache: str) -> str:
    # Imported when needed: most programs require nothing.
    import atexit
    import shutil
    import subprocess
    import sys
    import tempfile

    folder = tempfile.mkdtemp(prefix="penstock-requirements-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--target", folder, "-r", str(requirements)]
    if cache:
        command += ["--no-index", "--find-links", cache]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith("ERROR")), (lines or ["?"])[-1])
        raise ProgramError(f"the packages of {requirements} cannot be installed: {reason}")
    return folder


def _check_executable(executable: str | None, files: list[ShippedFile]) -> None:
    if executable is None or os.path.isabs(executable):
        return
    first = Path(executable).parts[0]
    if any(file.role is Role.ARCHIVE and file.name == first for file in files):
        raise ProgramError(
            f"python.executable {executable} is in archive {first}, which is unpacked by the "
            "Python that it should start; install that Python on the hosts and name its path"
        )


def local_path(path: str) -> str:
    """The absolute path in the driver's file system; ProgramError for another file system."""
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    elif "://" in path:
        raise ProgramError(f"{path} cannot be shipped: only files of this machine can be")
    return os.path.abspath(os.path.expanduser(path))
