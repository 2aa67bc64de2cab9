"""The methods of an environment that say what its slots need besides the program."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.common import config_options as options
from penstock.common.shipped_files import Role, ShippedFile
from penstock.datastream.python_dependencies import local_path
from penstock.errors import ProgramError

if TYPE_CHECKING:
    from penstock.datastream.program_configuration import ProgramConfiguration


class FilesOfEnvironment:
    """Modules, packages and other files that travel with the jobs of an environment.

    They are sent as they are when a job starts, and are there before any function is opened.
    """

    _configuration: ProgramConfiguration

    def __init__(self) -> None:
        self._cached_files: dict[str, ShippedFile] = {}

    def add_python_file(self, file_path: str) -> None:
        """Make a module, a folder of modules, or a zip or wheel of modules importable in slots.

        A folder itself is what modules are found in. The driver's own `sys.path` stays as it is.
        """
        self._append(options.PYTHON_FILES, file_path)

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Make the packages that a requirements file lists importable in slots.

        They are installed with pip when a job starts, in the driver, and sent to the slots. With a
        folder of packages (`pip download -d folder -r requirements.txt`) no index is asked.
        """
        cache = f"#{requirements_cache_dir}" if requirements_cache_dir else ""
        self._configuration.set(options.PYTHON_REQUIREMENTS, requirements_file_path + cache)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack a zip or tar file in the slots, below their working directory.

        It is found under `target_dir`, or under the archive's own name: `open("data/x.csv")` for
        an archive that holds x.csv and has the target `data`.
        """
        target = f"#{target_dir}" if target_dir else ""
        self._append(options.PYTHON_ARCHIVES, archive_path + target)

    def set_python_executable(self, python_exec: str) -> None:
        """The Python that runs the slots, by its path on the hosts; of the driver's version."""
        self._configuration.set(options.PYTHON_EXECUTABLE, python_exec)

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Send a file or folder along; functions find it under `name`.

        `runtime_context.get_distributed_cache().get_file(name)` is its path in the slot.
        """
        path = local_path(file_path)
        known = self._cached_files.get(name)
        if known is not None and known.path != path:
            raise ProgramError(f"{known.path} and {path} are both to be cached as {name!r}")
        file = ShippedFile(Role.CACHED, path, name, executable).check()
        if executable and os.path.isdir(path):
            raise ProgramError(f"{path} is a folder: only a file can be made executable")
        self._cached_files[name] = file

    def _append(self, option: options.Option[tuple[str, ...]], path: str) -> None:
        if not path or "," in path:
            raise ProgramError(f"{path!r} cannot be shipped: a path, without commas, is needed")
        known = self._configuration.get(option)
        self._configuration.set_string(option.key, ",".join((*known, path)))
