"""CheckpointConfig: the settings of checkpoints, as a view on the environment's Configuration.

>>> configuration = Configuration()
>>> CheckpointConfig(configuration).set_checkpoint_interval(1000).is_checkpointing_enabled()
True
>>> configuration.to_dict()
{'execution.checkpointing.interval': '1000'}
"""

from __future__ import annotations

from typing import Any

from penstock.common import config_options as options
from penstock.common.configuration import Configuration
from penstock.datastream.checkpoint_storage import CheckpointStorage, FileSystemCheckpointStorage
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.deprecation import deprecated


class CheckpointConfig:
    """Reads and sets keys of the configuration that it was made from; it keeps nothing itself."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def is_checkpointing_enabled(self) -> bool:
        """Whether there is an interval."""
        return self._configuration.get(options.CHECKPOINT_INTERVAL) is not None

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE, or AT_LEAST_ONCE."""
        return CheckpointingMode(self._configuration.get(options.CHECKPOINT_MODE))

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Whether a channel that has brought a barrier waits for the others."""
        return self._set(options.CHECKPOINT_MODE, checkpointing_mode.name)

    def get_checkpoint_interval(self) -> int:
        """Milliseconds from the start of one checkpoint to the next; -1 without checkpoints."""
        interval = self._configuration.get(options.CHECKPOINT_INTERVAL)
        return -1 if interval is None else interval

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """A checkpoint every so many milliseconds."""
        return self._set(options.CHECKPOINT_INTERVAL, checkpoint_interval)

    def get_checkpoint_timeout(self) -> int:
        """Milliseconds after which a checkpoint is given up."""
        return self._configuration.get(options.CHECKPOINT_TIMEOUT)

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Give up a checkpoint that takes longer than so many milliseconds."""
        return self._set(options.CHECKPOINT_TIMEOUT, checkpoint_timeout)

    @deprecated(f"set {options.CHECKPOINT_DIRECTORY.key} in the Configuration")
    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Keep checkpoints in this directory."""
        return self._store(FileSystemCheckpointStorage(checkpoint_path))

    @deprecated(f"set {options.CHECKPOINT_DIRECTORY.key} in the Configuration")
    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Keep checkpoints there."""
        return self._store(storage)

    def _store(self, storage: CheckpointStorage) -> CheckpointConfig:
        return self._set(options.CHECKPOINT_DIRECTORY, storage.get_checkpoint_path())

    def _set(self, option: options.Option[Any], value: Any) -> CheckpointConfig:
        self._configuration.set(option, value)
        return self
