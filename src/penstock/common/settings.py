"""The settings that slots need to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_BLOCK_CACHE = 8 << 20
_WRITE_BUFFER = 64 << 20


@dataclass(frozen=True)
class RocksTuning:
    """What `state.backend.rocksdb.*` says beyond memory; None: as RocksDB itself has it."""

    block_size: int | None = None
    metadata_block_size: int | None = None
    bloom_filter: bool = True
    bloom_bits: float = 10.0
    partitioned: bool = False
    """Whether indexes and filters are read in parts."""
    compaction_style: str = "LEVEL"
    dynamic_levels: bool | None = None
    file_size: int | None = None
    level_size: int | None = None
    compression: tuple[str, ...] = ()
    """By level, the last also for all below it."""
    open_files: int | None = None
    threads: int | None = None
    buffers_to_merge: int | None = None
    log_dir: str | None = None
    log_files: int | None = None
    log_size: int | None = None


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
    local_dirs: tuple[str, ...] = ()
    """The disks among which databases are spread."""
    buffer_ratio: float = 0.5
    """The part of RocksDB's memory that its write buffers have."""
    manages_memory: bool = True
    """Whether RocksDB's memory is a share of the managed memory; else what RocksDB takes."""
    transfer_threads: int = 1
    """How many files of a database are stored at a time."""
    tuning: RocksTuning = field(default_factory=RocksTuning)

    def objects(self) -> int:
        """For live objects."""
        return self.managed // 2

    def block_cache(self) -> int:
        """For blocks of files that were read."""
        if self.block_cache_size is not None:
            return self.block_cache_size
        if not self.manages_memory:
            return _BLOCK_CACHE
        return self.managed // 2 - int(self.managed // 2 * self.buffer_ratio)

    def write_buffer(self) -> int:
        """For one of the buffers that collect what is to be written."""
        if self.write_buffer_size is not None:
            return self.write_buffer_size
        if not self.manages_memory:
            return _WRITE_BUFFER
        return int(self.managed // 2 * self.buffer_ratio) // self.write_buffers

    def placed(self, number: int) -> StateSettings:
        """The settings of an operator whose database is on the disk of this number."""
        if not self.local_dirs:
            return self
        return replace(self, local_dir=self.local_dirs[number % len(self.local_dirs)])

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
    compresses: bool = False
    """Whether state in checkpoints is compressed."""
    group_memory: Mapping[str, int] = field(default_factory=dict)
    """Managed memory in the slots of some slot sharing groups, in bytes, by their names."""
    log_level: str | None = None
    """From which level on slots log; None: as Python does."""
    log_levels: Mapping[str, str] = field(default_factory=dict)
    """The same for some loggers, by name."""
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    """What functions can ask for by `RuntimeContext.get_job_parameter`."""
    state: StateSettings = field(default_factory=StateSettings)
