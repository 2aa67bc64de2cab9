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
from penstock.common.time import Duration
from penstock.datastream.checkpoint_storage import CheckpointStorage, FileSystemCheckpointStorage
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.deprecation import deprecated
from penstock.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from penstock.errors import ProgramError


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

    def get_min_pause_between_checkpoints(self) -> int:
        """Milliseconds from the end of one checkpoint to the next, at least."""
        return self._configuration.get(options.CHECKPOINT_MIN_PAUSE)

    def set_min_pause_between_checkpoints(
        self, min_pause_between_checkpoints: int
    ) -> CheckpointConfig:
        """Leave so many milliseconds between checkpoints, in which none is under way."""
        return self._set(options.CHECKPOINT_MIN_PAUSE, min_pause_between_checkpoints)

    def get_max_concurrent_checkpoints(self) -> int:
        """How many checkpoints may be under way."""
        return self._configuration.get(options.CHECKPOINTS_CONCURRENT)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Begin a checkpoint while others are under way, up to so many; not with a pause."""
        return self._set(options.CHECKPOINTS_CONCURRENT, max_concurrent_checkpoints)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Checkpoints in a row that may fail; -1: any number."""
        tolerable = self._configuration.get(options.CHECKPOINT_FAILURES_TOLERABLE)
        return -1 if tolerable is None else tolerable

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        """When more checkpoints in a row fail than this, the job fails, and may restart."""
        return self._set(options.CHECKPOINT_FAILURES_TOLERABLE, tolerable_checkpoint_failure_number)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether the first checkpoint that fails fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(
        self, fail_on_checkpointing_errors: bool
    ) -> CheckpointConfig:
        """Bear no checkpoint that fails, or any number of them."""
        tolerable = 0 if fail_on_checkpointing_errors else "infinite"
        return self._set(options.CHECKPOINT_FAILURES_TOLERABLE, tolerable)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """What becomes of checkpoints when the job ends."""
        return ExternalizedCheckpointRetention(
            self._configuration.get(options.CHECKPOINT_RETENTION)
        )

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Keep or delete checkpoints when the job is cancelled or fails."""
        return self._set(options.CHECKPOINT_RETENTION, retention_mode.name)

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether checkpoints are kept when the job fails."""
        kept = self.get_externalized_checkpoint_retention()
        return kept is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether barriers may overtake records that wait."""
        return self._configuration.get(options.CHECKPOINT_UNALIGNED)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Let barriers overtake records that wait; those become part of the checkpoint."""
        return self._set(options.CHECKPOINT_UNALIGNED, enabled)

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Let barriers keep their places among the records."""
        return self.enable_unaligned_checkpoints(False)

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """How long a checkpoint stays aligned where unaligned ones are enabled."""
        return Duration.of_millis(self._configuration.get(options.CHECKPOINT_ALIGNED_TIMEOUT))

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Begin aligned and become unaligned after so long; zero: unaligned from the start."""
        return self._set(options.CHECKPOINT_ALIGNED_TIMEOUT, alignment_timeout.to_millis())

    @deprecated("use get_aligned_checkpoint_timeout()")
    def get_alignment_timeout(self) -> Duration:
        """How long a checkpoint stays aligned where unaligned ones are enabled."""
        return self.get_aligned_checkpoint_timeout()

    @deprecated("use set_aligned_checkpoint_timeout()")
    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Begin aligned and become unaligned after so long."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Never: there are no loops in a program, which is what needs to be forced in Flink."""
        return False

    def set_force_unaligned_checkpoints(
        self, force_unaligned_checkpoints: bool = True
    ) -> CheckpointConfig:
        """ProgramError if True: there are no loops in a program, so there is nothing to force."""
        if force_unaligned_checkpoints:
            raise ProgramError(
                "set_force_unaligned_checkpoints() is for programs with loops, which there are not "
                "here; remove the call: enable_unaligned_checkpoints() is enough"
            )
        return self

    @deprecated("use set_externalized_checkpoint_retention()")
    def enable_externalized_checkpoints(
        self, cleanup_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Keep or delete checkpoints when the job is cancelled or fails."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

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
