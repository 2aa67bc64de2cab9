"""Where checkpoints are kept, as objects; each stands for a value of the configuration.

>>> FileSystemCheckpointStorage("file:///tmp/checkpoints").get_checkpoint_path()
'file:///tmp/checkpoints'
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from penstock.common.java_only import java_only
from penstock.errors import ProgramError

__all__ = [
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]


class CheckpointStorage(ABC):
    """Where checkpoints are kept."""

    @abstractmethod
    def get_checkpoint_path(self) -> str | None:
        """The directory; None for the driver's memory."""

    def get_savepoint_path(self) -> str | None:
        """None: where savepoints go is not said by where checkpoints do."""
        return None


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints in the memory of the driver: they end with it."""

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024
    """Flink's limit for one state. Here there is none but the driver's memory."""

    def __init__(
        self, checkpoint_path: str | None = None, max_state_size: int | None = None
    ) -> None:
        if checkpoint_path is not None:
            raise ProgramError(
                "checkpoints in the driver's memory have no path; "
                "for checkpoints in a directory use FileSystemCheckpointStorage"
            )
        self._max_state_size = max_state_size or self.DEFAULT_MAX_STATE_SIZE

    def get_checkpoint_path(self) -> str | None:
        """None: there is no directory."""
        return None

    def get_max_state_size(self) -> int:
        """The size that one state may have in Flink; larger ones are stored as well."""
        return self._max_state_size


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints in a directory that driver and slots see."""

    MAX_FILE_STATE_THRESHOLD = 0
    """The largest state that is kept in the metadata: none is, all state is in files."""

    def __init__(
        self,
        checkpoint_path: str,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
    ) -> None:
        _refuse(
            "file_state_size_threshold", file_state_size_threshold, self.MAX_FILE_STATE_THRESHOLD
        )
        _refuse("write_buffer_size", write_buffer_size, 0)
        self._checkpoint_path = _normalized(checkpoint_path)

    def get_checkpoint_path(self) -> str | None:
        """The directory, without a final slash."""
        return self._checkpoint_path

    def get_min_file_size_threshold(self) -> int:
        """0: all state is in files, none in the metadata."""
        return self.MAX_FILE_STATE_THRESHOLD

    def get_write_buffer_size(self) -> int:
        """0: a file is written in one go."""
        return 0


class CustomCheckpointStorage(CheckpointStorage):
    """A storage written in Java, of which there is none here."""

    __init__ = java_only("CustomCheckpointStorage", "use FileSystemCheckpointStorage")
    get_checkpoint_path = java_only("get_checkpoint_path", "use FileSystemCheckpointStorage")


def _normalized(path: str) -> str:
    """As Flink's paths: a final slash says nothing, except where nothing stands before it."""
    scheme, mark, rest = path.rpartition("://")
    authority, slash, below = rest.partition("/")
    return f"{scheme}{mark}{authority}{slash}{below.rstrip('/')}"


def _refuse(name: str, value: int | None, only: int | None) -> None:
    if value is not None and value != only:
        raise ProgramError(f"{name} means nothing here: leave it out")
