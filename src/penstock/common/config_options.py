"""The configuration keys that mean something, with their types and defaults.

>>> parse_duration_ms("10 min"), parse_duration_ms("60s"), parse_duration_ms("250")
(600000, 60000, 250)
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.common.flink_keys import flink_keys, kind_of, refusal
from penstock.common.jars import built_in
from penstock.common.kafka_servers import parse_servers
from penstock.common.list_values import parse_list
from penstock.common.listening import PortRange, parse_ports
from penstock.common.map_values import parse_map
from penstock.errors import ConfigurationError

T = TypeVar("T")

_UNITS_MS = {
    **dict.fromkeys(["ms", "milli", "millis", "millisecond", "milliseconds"], 1),
    **dict.fromkeys(["s", "sec", "secs", "second", "seconds"], 1000),
    **dict.fromkeys(["min", "m", "minute", "minutes"], 60_000),
    **dict.fromkeys(["h", "hour", "hours"], 3_600_000),
    **dict.fromkeys(["d", "day", "days"], 86_400_000),
}


def parse_duration_ms(text: str) -> int:
    """A duration as Flink writes it, in milliseconds; a bare number is milliseconds."""
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", str(text).lower())
    unit = match[2] or "ms" if match else ""
    if match is None or unit not in _UNITS_MS:
        raise ValueError("expected a duration such as 500 ms, 60s or 10 min")
    return int(match[1]) * _UNITS_MS[unit]


_UNITS_BYTES = {
    **dict.fromkeys(["", "b", "byte", "bytes"], 1),
    **dict.fromkeys(["k", "kb", "kib", "kibibytes"], 1 << 10),
    **dict.fromkeys(["m", "mb", "mib", "mebibytes"], 1 << 20),
    **dict.fromkeys(["g", "gb", "gib", "gibibytes"], 1 << 30),
    **dict.fromkeys(["t", "tb", "tib", "tebibytes"], 1 << 40),
}


def parse_memory(text: str) -> int:
    """A size as Flink writes it, in bytes; a bare number is bytes and `kb` is 1024 of them."""
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", str(text).lower())
    if match is None or match[2] not in _UNITS_BYTES:
        raise ValueError("expected a size such as 64 mb, 1g or 512 kb")
    return int(match[1]) * _UNITS_BYTES[match[2]]


def parse_state_backend(text: str) -> str:
    """The name of a backend, or that of Flink's class for it."""
    word = str(text).strip().rpartition(".")[2].lower()
    for name, spellings in _STATE_BACKENDS.items():
        if word in spellings:
            return name
    raise ValueError("expected hashmap or rocksdb")


def parse_checkpoint_storage(text: str) -> str:
    """The name of a storage, or that of Flink's class for it."""
    word = str(text).strip().rpartition(".")[2].lower()
    for name in ("filesystem", "jobmanager"):
        if word in (name, f"{name}checkpointstorage"):
            return name
    raise ValueError("expected filesystem or jobmanager; there is no other storage")


_STATE_BACKENDS = {
    "hashmap": ("hashmap", "hashmapstatebackend", "hashmapstatebackendfactory"),
    "rocksdb": ("rocksdb", "embeddedrocksdbstatebackend", "embeddedrocksdbstatebackendfactory"),
}


def parse_positive(text: str) -> int:
    number = parse_int(text)
    if number < 1:
        raise ValueError("expected a number of at least 1")
    return number


def parse_int(text: str) -> int:
    try:
        return int(str(text).strip())
    except ValueError:
        raise ValueError("expected an integer") from None


def parse_float(text: str) -> float:
    try:
        return float(str(text).strip())
    except ValueError:
        raise ValueError("expected a number") from None


def parse_limit(text: str) -> int | None:
    """A number; None for `infinite`, and for the numbers that Flink writes in its place."""
    unlimited = str(text).strip().lower() in ("infinite", "2147483647", "-1")
    return None if unlimited else parse_int(text)


def parse_job_id(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", str(text)):
        raise ValueError("it names a directory, so use letters, digits, '-', '_' and '.'")
    return str(text)


def parse_boolean(text: str) -> bool:
    word = str(text).strip().lower()
    if word not in ("true", "false"):
        raise ValueError("expected true or false")
    return word == "true"


def one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        for word in words:
            if str(text).strip().lower().replace("_", "-") == word.lower().replace("_", "-"):
                return word
        raise ValueError(f"expected one of {', '.join(words)}")

    return parse


def parse_runtime_mode(text: str) -> str:
    mode = one_of("STREAMING", "BATCH", "AUTOMATIC")(text)
    if mode != "STREAMING":
        raise ValueError("expected STREAMING, the only mode that there is so far")
    return mode


def parse_paths(text: str) -> tuple[str, ...]:
    """Paths with commas between them."""
    return tuple(path.strip() for path in str(text).split(",") if path.strip())


def parse_folders(text: str) -> tuple[str, ...]:
    """Folders, with what Flink has between them: commas, `|`, or what separates paths."""
    paths = (path.strip() for path in re.split(r"[,|]|:(?!//)", str(text)))
    return tuple(path.removeprefix("file://") for path in paths if path)


def parse_jars(text: str) -> tuple[str, ...]:
    """JARs of what is built in; ValueError for one of something else."""
    jars = tuple(jar for item in parse_list(str(text)) for jar in parse_paths(item))
    for jar in jars:
        if built_in(jar) is None:
            raise ValueError(f"there is no Java in the path of a record, and {jar} is not needed")
    return jars


def parse_cached_files(text: str) -> tuple[tuple[str, str, bool], ...]:
    """Files as Flink writes them: `name:a,path:/x;name:b,path:/y,executable:true`."""
    found = []
    for item in parse_list(str(text)):
        entry = parse_map(item)
        if not {"name", "path"} <= set(entry) <= {"name", "path", "executable"}:
            raise ValueError("expected files such as name:a,path:/x;name:b,path:/y,executable:true")
        executable = parse_boolean(entry.get("executable", "false"))
        found.append((entry["name"], entry["path"], executable))
    return tuple(found)


def parse_parallelisms(text: str) -> dict[str, int]:
    """A parallelism for each name."""
    return {name: parse_positive(number) for name, number in parse_map(str(text)).items()}


def parse_log_level(text: str) -> str:
    """The name of a level of `logging`; Java's TRACE and WARN are DEBUG and WARNING."""
    word = str(text).strip().upper()
    word = {"TRACE": "DEBUG", "WARN": "WARNING", "FATAL": "CRITICAL"}.get(word, word)
    if word not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        raise ValueError("expected DEBUG, INFO, WARNING, ERROR or CRITICAL")
    return word


def parse_log_levels(text: str) -> dict[str, str]:
    """A level for each logger."""
    return {name: parse_log_level(level) for name, level in parse_map(str(text)).items()}


def parse_ratio(text: str) -> float:
    """A number from 0 to 1."""
    ratio = parse_float(text)
    if not 0 <= ratio <= 1:
        raise ValueError("expected a number from 0 to 1")
    return ratio


def parse_unset_parallelism(text: str) -> int | None:
    """A parallelism; None for -1."""
    return None if parse_int(text) == -1 else parse_positive(text)


def parse_max_parallelism(text: str) -> int:
    """A number of key groups; Flink's -1 is the default."""
    number = parse_int(text)
    return 128 if number == -1 else number


def parse_compression(text: str) -> tuple[str, ...]:
    """How RocksDB compresses, level by level, the last also all below it."""
    found = []
    for item in (part for entry in parse_list(str(text)) for part in parse_paths(entry)):
        word = item.lower().removesuffix("_compression").replace("no", "none")
        if word not in COMPRESSIONS:
            raise ValueError(f"expected {', '.join(COMPRESSIONS)}, each with _COMPRESSION")
        found.append(word)
    return tuple(found)


COMPRESSIONS = ("none", "snappy", "zlib", "bz2", "lz4", "lz4hc", "zstd")


def parse_positive_duration_ms(text: str) -> int:
    """A duration of at least a millisecond."""
    duration = parse_duration_ms(text)
    if duration < 1:
        raise ValueError("expected a duration of at least 1 ms")
    return duration


@dataclass(frozen=True)
class Option(Generic[T]):
    """A key, how its value is read, and what holds when it is not set."""

    key: str
    parse: Callable[[str], T]
    default: T
    aliases: tuple[str, ...] = ()

    def read(self, values: Mapping[str, str]) -> T:
        """The value under the key or an alias, else the default; the key goes before aliases."""
        for key in (self.key, *self.aliases):
            if key in values:
                try:
                    return self.parse(values[key])
                except ValueError as error:
                    raise ConfigurationError(f"{key}: {values[key]!r}: {error}") from error
        return self.default


PARALLELISM = Option("parallelism.default", parse_int, 1)
TABLE_PARALLELISM: Option[int | None] = Option(
    "table.exec.resource.default-parallelism", parse_unset_parallelism, None
)
PARALLELISM_OVERRIDES: Option[dict[str, int]] = Option(
    "pipeline.jobvertex-parallelism-overrides", parse_parallelisms, {}
)
MAX_PARALLELISM = Option("pipeline.max-parallelism", parse_max_parallelism, 128)
OPERATOR_CHAINING = Option(
    "pipeline.operator-chaining", parse_boolean, True, ("pipeline.operator-chaining.enabled",)
)
PYTHON_CHAINING = Option("python.operator-chaining.enabled", parse_boolean, True)
CHAIN_UNLIKE = Option(
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
    parse_boolean,
    True,
)
JOB_NAME: Option[str | None] = Option("pipeline.name", str, None)
VERTEX_NUMBERS = Option("pipeline.vertex-name-include-index-prefix", parse_boolean, False)
OBJECT_REUSE = Option("pipeline.object-reuse", parse_boolean, False)
AUTO_WATERMARK_INTERVAL = Option("pipeline.auto-watermark-interval", parse_duration_ms, 200)
GENERIC_TYPES = Option("pipeline.generic-types", parse_boolean, True)
AUTO_UIDS = Option("pipeline.auto-generate-uids", parse_boolean, True)
JOB_PARAMETERS: Option[dict[str, str]] = Option("pipeline.global-job-parameters", parse_map, {})
RUNTIME_MODE = Option("execution.runtime-mode", parse_runtime_mode, "STREAMING")
BUFFER_TIMEOUT = Option(
    "execution.buffer-timeout.interval", parse_duration_ms, 100, ("execution.buffer-timeout",)
)
BUFFER_TIMEOUT_ENABLED = Option("execution.buffer-timeout.enabled", parse_boolean, True)
CHECKPOINT_INTERVAL: Option[int | None] = Option(
    "execution.checkpointing.interval", parse_duration_ms, None
)
CHECKPOINT_MODE = Option(
    "execution.checkpointing.mode", one_of("EXACTLY_ONCE", "AT_LEAST_ONCE"), "EXACTLY_ONCE"
)
CHECKPOINT_TIMEOUT = Option("execution.checkpointing.timeout", parse_duration_ms, 600_000)
CHECKPOINT_DIRECTORY: Option[str | None] = Option(
    "execution.checkpointing.dir", str, None, ("state.checkpoints.dir",)
)
HDFS_ADDRESS: Option[str | None] = Option(
    "penstock.hdfs.http-address", str, None, ("flink.hadoop.dfs.namenode.http-address",)
)
HADOOP_DIRECTORY: Option[str | None] = Option("env.hadoop.conf.dir", str, None)
KAFKA_SERVERS: Option[dict[str, str] | None] = Option("penstock.kafka.servers", parse_servers, None)
CHECKPOINT_STORAGE: Option[str | None] = Option(
    "execution.checkpointing.storage",
    parse_checkpoint_storage,
    None,
    ("state.checkpoint-storage",),
)
SNAPSHOT_COMPRESSION = Option("execution.checkpointing.snapshot-compression", parse_boolean, False)
CHECKPOINTS_RETAINED = Option(
    "execution.checkpointing.num-retained",
    parse_int,
    1,
    ("state.checkpoints.num-retained", "execution.checkpointing.max-retained-checkpoints"),
)
CHECKPOINT_MIN_PAUSE = Option("execution.checkpointing.min-pause", parse_duration_ms, 0)
CHECKPOINTS_CONCURRENT = Option("execution.checkpointing.max-concurrent-checkpoints", parse_int, 1)
CHECKPOINT_FAILURES_TOLERABLE: Option[int | None] = Option(
    "execution.checkpointing.tolerable-failed-checkpoints", parse_limit, None
)
CHECKPOINT_UNALIGNED = Option(
    "execution.checkpointing.unaligned.enabled",
    parse_boolean,
    False,
    ("execution.checkpointing.unaligned",),
)
CHECKPOINT_ALIGNED_TIMEOUT = Option(
    "execution.checkpointing.aligned-checkpoint-timeout",
    parse_duration_ms,
    0,
    ("execution.checkpointing.alignment-timeout",),
)
CHECKPOINT_RETENTION = Option(
    "execution.checkpointing.externalized-checkpoint-retention",
    one_of("NO_EXTERNALIZED_CHECKPOINTS", "DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION"),
    "DELETE_ON_CANCELLATION",
)
ORPHAN_GRACE = Option("execution.checkpointing.orphans.grace-period", parse_duration_ms, 3_600_000)
LOST_OUTPUT = Option(
    "execution.checkpointing.lost-output", one_of("stop", "skip", "repeat"), "stop"
)
RECOVERY_PATH: Option[str | None] = Option(
    "execution.state-recovery.path", str, None, ("execution.savepoint.path",)
)
CLAIM_MODE = Option(
    "execution.state-recovery.claim-mode",
    one_of("NO_CLAIM", "CLAIM"),
    "NO_CLAIM",
    ("execution.savepoint-restore-mode",),
)
SAVEPOINT_DIRECTORY: Option[str | None] = Option(
    "state.savepoints.dir", str, None, ("execution.checkpointing.savepoint-dir",)
)
IGNORE_UNCLAIMED = Option(
    "execution.state-recovery.ignore-unclaimed-state",
    parse_boolean,
    False,
    ("execution.savepoint.ignore-unclaimed-state",),
)
JOB_ID: Option[str | None] = Option("pipeline.jobid", parse_job_id, None)
CHECKPOINT_INCREMENTAL = Option(
    "execution.checkpointing.incremental", parse_boolean, True, ("state.backend.incremental",)
)
CHANGELOG = Option(
    "state.backend.changelog.enabled",
    parse_boolean,
    False,
    ("state.changelog.enabled", "dstl.dstl.enabled"),
)
CHANGELOG_STORAGE = Option(
    "state.backend.changelog.storage",
    one_of("filesystem", "memory"),
    "filesystem",
    ("state.changelog.storage",),
)
CHANGELOG_INTERVAL = Option("penstock.changelog.interval", parse_positive_duration_ms, 200)
STATE_BACKEND = Option("state.backend.type", parse_state_backend, "hashmap", ("state.backend",))
ROCKSDB_DIRECTORIES: Option[tuple[str, ...]] = Option(
    "state.backend.rocksdb.localdir", parse_folders, ()
)
TEMPORARY_DIRECTORIES: Option[tuple[str, ...]] = Option("io.tmp.dirs", parse_folders, ())
ROCKSDB_BLOCK_CACHE: Option[int | None] = Option(
    "state.backend.rocksdb.block.cache-size", parse_memory, None
)
ROCKSDB_WRITE_BUFFER: Option[int | None] = Option(
    "state.backend.rocksdb.writebuffer.size", parse_memory, None
)
ROCKSDB_WRITE_BUFFERS = Option("state.backend.rocksdb.writebuffer.count", parse_positive, 2)
ROCKSDB_PREDEFINED_OPTIONS = Option(
    "state.backend.rocksdb.predefined-options",
    one_of(
        "DEFAULT",
        "SPINNING_DISK_OPTIMIZED",
        "SPINNING_DISK_OPTIMIZED_HIGH_MEM",
        "FLASH_SSD_OPTIMIZED",
    ),
    "DEFAULT",
)
ROCKSDB_BLOCK_SIZE: Option[int | None] = Option(
    "state.backend.rocksdb.block.blocksize", parse_memory, None
)
ROCKSDB_METADATA_BLOCK_SIZE: Option[int | None] = Option(
    "state.backend.rocksdb.block.metadata-blocksize", parse_memory, None
)
ROCKSDB_BLOOM_FILTER = Option("state.backend.rocksdb.use-bloom-filter", parse_boolean, True)
ROCKSDB_BLOOM_BITS = Option("state.backend.rocksdb.bloom-filter.bits-per-key", parse_float, 10.0)
ROCKSDB_PARTITIONED = Option(
    "state.backend.rocksdb.memory.partitioned-index-filters", parse_boolean, False
)
ROCKSDB_COMPACTION_STYLE = Option(
    "state.backend.rocksdb.compaction.style", one_of("LEVEL", "UNIVERSAL", "NONE"), "LEVEL"
)
ROCKSDB_DYNAMIC_LEVELS: Option[bool | None] = Option(
    "state.backend.rocksdb.compaction.level.use-dynamic-size", parse_boolean, None
)
ROCKSDB_FILE_SIZE: Option[int | None] = Option(
    "state.backend.rocksdb.compaction.level.target-file-size-base", parse_memory, None
)
ROCKSDB_LEVEL_SIZE: Option[int | None] = Option(
    "state.backend.rocksdb.compaction.level.max-size-level-base", parse_memory, None
)
ROCKSDB_COMPRESSION: Option[tuple[str, ...]] = Option(
    "state.backend.rocksdb.compression.per.level", parse_compression, ()
)
ROCKSDB_OPEN_FILES: Option[int | None] = Option("state.backend.rocksdb.files.open", parse_int, None)
ROCKSDB_THREADS: Option[int | None] = Option(
    "state.backend.rocksdb.thread.num", parse_positive, None
)
ROCKSDB_BUFFERS_TO_MERGE: Option[int | None] = Option(
    "state.backend.rocksdb.writebuffer.number-to-merge", parse_positive, None
)
ROCKSDB_LOG_DIRECTORY: Option[str | None] = Option("state.backend.rocksdb.log.dir", str, None)
ROCKSDB_LOG_FILES: Option[int | None] = Option(
    "state.backend.rocksdb.log.file-num", parse_positive, None
)
ROCKSDB_LOG_SIZE: Option[int | None] = Option(
    "state.backend.rocksdb.log.max-file-size", parse_memory, None
)
ROCKSDB_TRANSFER_THREADS = Option(
    "state.backend.rocksdb.checkpoint.transfer.thread.num", parse_positive, 4
)
ROCKSDB_MANAGED = Option("state.backend.rocksdb.memory.managed", parse_boolean, True)
ROCKSDB_FIXED_MEMORY: Option[int | None] = Option(
    "state.backend.rocksdb.memory.fixed-per-slot",
    parse_memory,
    None,
    ("state.backend.rocksdb.memory.fixed-per-tm",),
)
ROCKSDB_BUFFER_RATIO = Option("state.backend.rocksdb.memory.write-buffer-ratio", parse_ratio, 0.5)
ROCKSDB_FILES_FROM = Option("state.backend.rocksdb.checkpoint.files-from", parse_memory, 8 << 20)
MANAGED_MEMORY = Option("taskmanager.memory.managed.size", parse_memory, 256 << 20)
RESTART_STRATEGY: Option[str | None] = Option(
    "restart-strategy.type",
    one_of("none", "off", "disable", "fixed-delay", "exponential-delay", "failure-rate"),
    None,
    ("restart-strategy",),
)
RESTART_ATTEMPTS = Option("restart-strategy.fixed-delay.attempts", parse_int, 1)
RESTART_DELAY = Option("restart-strategy.fixed-delay.delay", parse_duration_ms, 1000)
EXPONENTIAL_INITIAL = Option(
    "restart-strategy.exponential-delay.initial-backoff", parse_duration_ms, 1_000
)
EXPONENTIAL_LONGEST = Option(
    "restart-strategy.exponential-delay.max-backoff", parse_duration_ms, 60_000
)
EXPONENTIAL_MULTIPLIER = Option(
    "restart-strategy.exponential-delay.backoff-multiplier", parse_float, 1.5
)
EXPONENTIAL_QUIET = Option(
    "restart-strategy.exponential-delay.reset-backoff-threshold", parse_duration_ms, 3_600_000
)
EXPONENTIAL_JITTER = Option("restart-strategy.exponential-delay.jitter-factor", parse_float, 0.1)
EXPONENTIAL_ATTEMPTS: Option[int | None] = Option(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff", parse_limit, None
)
FAILURE_RATE_FAILURES = Option(
    "restart-strategy.failure-rate.max-failures-per-interval", parse_int, 1
)
FAILURE_RATE_INTERVAL = Option(
    "restart-strategy.failure-rate.failure-rate-interval", parse_duration_ms, 60_000
)
FAILURE_RATE_DELAY = Option("restart-strategy.failure-rate.delay", parse_duration_ms, 1_000)
HEARTBEAT_TIMEOUT = Option("heartbeat.timeout", parse_duration_ms, 10_000)
HEARTBEAT_INTERVAL = Option("heartbeat.interval", parse_duration_ms, 500)
START_TIMEOUT: Option[int | None] = Option(
    "penstock.start.timeout", parse_positive_duration_ms, None
)
DRIVER_PORT: Option[PortRange | None] = Option("penstock.driver.port", parse_ports, None)
SLOT_PORTS: Option[PortRange | None] = Option("penstock.slot.ports", parse_ports, None)
SECURE_CLUSTER = Option("penstock.require-secure-cluster", parse_boolean, False)
CANCELLATION_TIMEOUT = Option("task.cancellation.timeout", parse_positive_duration_ms, 1000)
PYTHON_FILES: Option[tuple[str, ...]] = Option("python.files", parse_paths, ())
PYTHON_ARCHIVES: Option[tuple[str, ...]] = Option("python.archives", parse_paths, ())
CACHED_FILES: Option[tuple[tuple[str, str, bool], ...]] = Option(
    "pipeline.cached-files", parse_cached_files, ()
)
JARS: Option[tuple[str, ...]] = Option("pipeline.jars", parse_jars, ())
CLASSPATHS: Option[tuple[str, ...]] = Option("pipeline.classpaths", parse_jars, ())
PYTHON_REQUIREMENTS: Option[str | None] = Option("python.requirements", str, None)
PYTHON_EXECUTABLE: Option[str | None] = Option("python.executable", str, None)
PYTHON_PATH: Option[tuple[str, ...]] = Option("python.pythonpath", parse_folders, ())
LOG_LEVEL: Option[str | None] = Option("python.logging.default.level", parse_log_level, None)
LOG_LEVELS: Option[dict[str, str]] = Option("python.logging.level.overrides", parse_log_levels, {})
REDACT_RECORDS = Option("penstock.errors.redact-records", parse_boolean, False)
PROGRESS = Option("penstock.progress", one_of("auto", "table", "lines", "off"), "auto")
LATE_RECORDS = Option("penstock.late-records", one_of("drop", "fail"), "drop")
MASTER: Option[str | None] = Option("spark.master", str, None)

OPTIONS: tuple[Option[Any], ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Option)
)
_BY_KEY = {key: option for option in OPTIONS for key in (option.key, *option.aliases)}


def canonical_key(key: str) -> str:
    """The one spelling of a key that has several."""
    return _BY_KEY[key].key if key in _BY_KEY else key


def check_keys(values: Mapping[str, str]) -> None:
    """ConfigurationError for a key that nobody has, and for one that asks for what is not here.

    Flink's keys that have no meaning here pass; `spark.` keys are Spark's to judge.
    """
    for key, value in values.items():
        if key in _BY_KEY or key.startswith("spark."):
            continue
        if kind_of(key) is None:
            near = difflib.get_close_matches(key, {**_BY_KEY, **flink_keys()}, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigurationError(f"unknown configuration key {key!r}{hint}")
        why = refusal(key, value)
        if why is not None:
            raise ConfigurationError(f"{key}: {value!r} cannot be had here: {why}")


def check_value(key: str, value: str) -> None:
    """ConfigurationError unless the key means something and the value can be read."""
    check_keys({key: value})
    if key in _BY_KEY:
        _BY_KEY[key].read({key: value})


ConfigOption = Option
"""PyFlink's name for it."""


class ConfigOptions:
    """Writes down an option: `ConfigOptions.key("a.b").int_type().default_value(3)`.

    `Configuration.get` reads it.
    """

    class OptionBuilder:
        """A key whose type is still to be said."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """A bool."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_boolean)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number: Python has one kind."""
            return self.int_type()

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A float."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A float: Python has one kind."""
            return self.float_type()

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """A str."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, str)

    class TypedConfigOptionBuilder(Generic[T]):
        """A key and its type; what holds when it is not set is still to be said."""

        def __init__(self, key: str, parse: Callable[[str], T]) -> None:
            self._key = key
            self._parse = parse

        def default_value(self, value: T) -> Option[T]:
            """This value holds when the key is not set."""
            return Option(self._key, self._parse, value)

        def no_default_value(self) -> Option[T | None]:
            """None when the key is not set."""
            return Option(self._key, self._parse, None)

    @staticmethod
    def key(key: str) -> OptionBuilder:
        """Begin with the key."""
        return ConfigOptions.OptionBuilder(key)
