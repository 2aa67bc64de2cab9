"""The settings that slots need to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class StateSettings:
    """Where keyed state is held, and how much memory that may take; sizes are in bytes."""

    backend: str = "hashmap"
    local_dir: str | None = None
    managed: int = 256 << 20
    """What the `rocksdb` backend may take: half of it live objects, the rest RocksDB's."""
    block_cache_size: int | None = None
    write_buffer_size: int | None = None
    write_buffers: int = 2
    predefined_options: str = "DEFAULT"
    files_from: int = 8 << 20
    """From this size on a checkpoint has the files of the database, not its entries."""
    merges_files: bool = True
    """Whether RocksDB merges files by itself, in threads of its own: a simulation has none."""

    def objects(self) -> int:
        """For live objects."""
        return self.managed // 2

    def block_cache(self) -> int:
        """For blocks of files that were read."""
        return self.managed // 4 if self.block_cache_size is None else self.block_cache_size

    def write_buffer(self) -> int:
        """For one of the buffers that collect what is to be written."""
        if self.write_buffer_size is not None:
            return self.write_buffer_size
        return self.managed // 4 // self.write_buffers

    def shared_by(self, operators: int) -> StateSettings:
        """The settings of one of so many operators that share the memory."""
        return replace(self, managed=self.managed // max(operators, 1))


@dataclass(frozen=True)
class RuntimeSettings:
    """How slots run a job, the same for all of them."""

    exactly_once: bool = True
    object_reuse: bool = False
    buffer_timeout_ms: int = 100
    credits: int = 4
    """Buffers that may be under way in a channel."""
    buffer_records: int = 512
    """Records that a buffer holds at most."""
    step_records: int = 512
    """Records that a subtask processes at most before the next one has its turn."""
    heartbeat_interval_ms: int = 500
    watermark_interval_ms: int = 200
    """How often watermarks are made; 0: only where a generator emits with a record."""
    fail_on_late_records: bool = False
    """A record that is too late for its windows fails the job; else it is dropped and counted."""
    redact_records: bool = False
    """Leave records out of error messages."""
    incremental: bool = True
    """Checkpoints hold what changed since the last one, not everything."""
    checkpoint_timeout_ms: int = 600_000
    changelog_ms: int | None = None
    """How often changes of state are written between checkpoints; None: they are not."""
    compaction_fanout: int = 8
    """So many pieces of state of about one size are merged into one."""
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    """What functions can ask for by `RuntimeContext.get_job_parameter`."""
    state: StateSettings = field(default_factory=StateSettings)
