"""What holds keyed state, as objects; each stands for values of the configuration.

>>> backend = EmbeddedRocksDBStateBackend()
>>> backend.set_db_storage_paths("/mnt/fast")
>>> backend.configuration()
{'state.backend.type': 'rocksdb', 'state.backend.rocksdb.localdir': '/mnt/fast'}

Programs set the keys themselves; these classes are for programs that were written for an older
PyFlink, whose `env.set_state_backend` takes one of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum

from penstock.common import config_options as options
from penstock.common.java_only import java_only
from penstock.errors import ProgramError

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
    "StateBackend",
]


class PredefinedOptions(Enum):
    """What kind of disk RocksDB is tuned for."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class StateBackend(ABC):
    """What holds keyed state."""

    @abstractmethod
    def configuration(self) -> dict[str, str]:
        """The keys of the configuration that say the same."""


class HashMapStateBackend(StateBackend):
    """Live objects in memory."""

    def configuration(self) -> dict[str, str]:
        """The backend's name."""
        return {options.STATE_BACKEND.key: "hashmap"}


class EmbeddedRocksDBStateBackend(StateBackend):
    """RocksDB, for state that is larger than memory."""

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        """With None the configuration says whether checkpoints are incremental; they are."""
        self._incremental = enable_incremental_checkpointing
        self._paths: list[str] = []
        self._predefined: PredefinedOptions | None = None
        self._threads: int | None = None

    def configuration(self) -> dict[str, str]:
        """The backend's name, and what was set here."""
        values = {options.STATE_BACKEND.key: "rocksdb"}
        if self._incremental is not None:
            values[options.CHECKPOINT_INCREMENTAL.key] = str(self._incremental).lower()
        if self._paths:
            values[options.ROCKSDB_DIRECTORIES.key] = ",".join(self._paths)
        if self._predefined is not None:
            values[options.ROCKSDB_PREDEFINED_OPTIONS.key] = self._predefined.name
        if self._threads is not None:
            values[options.ROCKSDB_TRANSFER_THREADS.key] = str(self._threads)
        return values

    def set_db_storage_paths(self, *paths: str) -> None:
        """Where RocksDB keeps its files while a job runs; databases are spread over several."""
        self._paths = list(paths)

    def get_db_storage_paths(self) -> list[str]:
        """What was set, nothing if the files are in the directory for temporary files."""
        return list(self._paths)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether a checkpoint writes what changed since the last one."""
        default: bool = options.CHECKPOINT_INCREMENTAL.default
        return default if self._incremental is None else self._incremental

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Tune RocksDB for a kind of disk."""
        self._predefined = options

    def get_predefined_options(self) -> PredefinedOptions:
        """The kind of disk that RocksDB is tuned for."""
        return self._predefined or PredefinedOptions.DEFAULT

    set_options = java_only("set_options", "use the keys state.backend.rocksdb.*")
    get_options = java_only("get_options", "use the keys state.backend.rocksdb.*")

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """How many files of a database are stored at a time, for a checkpoint."""
        if number_of_transfering_threads < 1:
            raise ProgramError(
                f"{number_of_transfering_threads} threads store nothing: give at least 1"
            )
        self._threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        """How many files of a database are stored at a time."""
        return self._threads or options.ROCKSDB_TRANSFER_THREADS.default


class CustomStateBackend(StateBackend):
    """A backend written in Java, of which there is none here."""

    __init__ = java_only(
        "CustomStateBackend", "use HashMapStateBackend or EmbeddedRocksDBStateBackend"
    )
    configuration = java_only("configuration", "use the key state.backend.type")
