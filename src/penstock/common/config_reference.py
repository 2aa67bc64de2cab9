"""What the configuration keys mean, as a table for people.

`config_options` says how the value of a key is read; here is the sentence that goes with it. The
table on the page about configuration is `table()`, which a test holds.

>>> print(table().splitlines()[0])
| key | type | default | meaning |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.config_options import (
    OPTIONS,
    Option,
    parse_boolean,
    parse_duration_ms,
    parse_int,
    parse_max_parallelism,
    parse_memory,
    parse_positive,
)

_TYPES: dict[Callable[[str], Any], str] = {
    parse_boolean: "boolean",
    parse_duration_ms: "duration",
    parse_int: "integer",
    parse_max_parallelism: "integer",
    parse_memory: "size",
    parse_positive: "integer",
}
_UNITS_BYTES = {"gb": 1 << 30, "mb": 1 << 20, "kb": 1 << 10}
_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000}


@dataclass(frozen=True)
class Meaning:
    """What a key is for; what may be given and the default, where the option does not say."""

    text: str
    values: str = ""
    default: str | None = None


MEANINGS = {
    "parallelism.default": Meaning(
        "The parallelism of operators that set none. `env.set_parallelism`",
    ),
    "pipeline.max-parallelism": Meaning(
        "The number of key groups, and so the highest parallelism of a keyed operator; at most "
        "32768. `env.set_max_parallelism`",
    ),
    "pipeline.operator-chaining": Meaning(
        "Whether operators are fused into one loop where they can be. "
        "`env.disable_operator_chaining`",
    ),
    "pipeline.object-reuse": Meaning(
        "Hand records to the next operator's buffer without copying them. Only for programs "
        "that never change a record after emitting it",
    ),
    "pipeline.auto-watermark-interval": Meaning(
        "How often sources send watermarks on; `0`: only where a generator emits with a record",
    ),
    "execution.runtime-mode": Meaning(
        "How the program runs; there is no `BATCH` and no `AUTOMATIC` so far. "
        "`env.set_runtime_mode`",
        values="`STREAMING`",
    ),
    "execution.buffer-timeout.interval": Meaning(
        "The longest time that a partly filled buffer waits while its slot is busy; an idle "
        "slot sends at once. `env.set_buffer_timeout`",
    ),
    "execution.checkpointing.interval": Meaning(
        "The time from the start of one checkpoint to the start of the next; at least 10 ms. "
        "Without it there are no checkpoints. `env.enable_checkpointing`",
    ),
    "execution.checkpointing.mode": Meaning(
        "Whether a channel that has brought a barrier waits for the others",
        values="`EXACTLY_ONCE` or `AT_LEAST_ONCE`",
    ),
    "execution.checkpointing.timeout": Meaning(
        "A checkpoint that takes longer is given up",
    ),
    "execution.checkpointing.dir": Meaning(
        'Where checkpoints go: a path, `file://`, `s3://bucket/path` (with `pip install "'
        'penstock[s3]"`; address and keys as for any AWS client, for example in '
        "`AWS_ENDPOINT_URL`), `webhdfs://user@namenode:9870/path` for HDFS (with `pip install "
        '"penstock[hdfs]"`; `hdfs://` is reached the same way), `gs://` (`"penstock[gcs]"`) or '
        '`abfs://` (`"penstock[azure]"`): [what was tested](#storage). Others are refused: their '
        "clients for Python cannot create a file on the "
        "condition that there is none, which keeps two drivers apart. Driver and slots must see "
        "the same directory under it. Without it checkpoints are kept in the driver's memory and "
        "end with it",
        values="path or URI",
    ),
    "execution.checkpointing.num-retained": Meaning(
        "How many complete checkpoints are kept while the job runs",
    ),
    "restart-strategy.type": Meaning(
        "What follows a failure. When it is not set: with checkpoints `exponential-delay`, "
        "without checkpoints the job fails",
        values="`none`, `off`, `disable`, `fixed-delay`, `exponential-delay` or `failure-rate`",
    ),
    "restart-strategy.fixed-delay.attempts": Meaning(
        "How many restarts `fixed-delay` allows",
    ),
    "restart-strategy.fixed-delay.delay": Meaning(
        "The time between a failure and the next attempt",
    ),
    "heartbeat.timeout": Meaning(
        "A slot that is not heard of for so long is lost; a slot that does not hear of its "
        "JobMaster for so long ends itself",
    ),
    "heartbeat.interval": Meaning(
        "How often a slot gives a sign of life",
    ),
    "penstock.start.timeout": Meaning(
        "How long slots may restore state and open functions before the attempt fails. When it "
        "is not set: as long as that takes, while they give signs of life",
        values="duration",
    ),
    "penstock.driver.port": Meaning(
        "The port of the JobMaster that slots connect to, or a range to choose from: each job of "
        "a driver takes one. When it is not set: any free one. The address is Spark's: "
        "`spark.driver.bindAddress` is bound, `spark.driver.host` is told to slots",
        values="port or range, such as `7000-7010`",
    ),
    "penstock.slot.ports": Meaning(
        "The ports that slots listen on for each other: a range with room for all slots of a "
        "host. When it is not set: any free ones",
        values="port or range, such as `7100-7199`",
    ),
    "penstock.require-secure-cluster": Meaning(
        "Refuse a cluster without `spark.authenticate` and network encryption, where the program "
        "and the keys of slots travel in the clear; else that is a warning",
    ),
    "penstock.errors.redact-records": Meaning(
        "Leave records out of error messages",
    ),
    "penstock.progress": Meaning(
        "How `execute()` shows the running job on stderr: a live table, a line now and then, "
        "or nothing; `auto` is the table in a terminal or a notebook and lines elsewhere",
        values="`auto`, `table`, `lines` or `off`",
    ),
    "execution.checkpointing.min-pause": Meaning(
        "The shortest time from the end of one checkpoint to the start of the next",
    ),
    "execution.checkpointing.max-concurrent-checkpoints": Meaning(
        "How many checkpoints may be under way; one, if there is a pause",
    ),
    "execution.checkpointing.tolerable-failed-checkpoints": Meaning(
        "When more checkpoints in a row fail (declined, expired, not stored), the attempt fails",
        values="integer or `infinite`",
        default="`infinite`",
    ),
    "execution.checkpointing.unaligned.enabled": Meaning(
        "Barriers overtake the records that wait, which become part of the checkpoint "
        "([unaligned checkpoints](concepts/checkpoints.md#unaligned-checkpoints)); with mode "
        "`EXACTLY_ONCE` only, and one checkpoint at a time. "
        "`CheckpointConfig.enable_unaligned_checkpoints`",
    ),
    "execution.checkpointing.aligned-checkpoint-timeout": Meaning(
        "With unaligned checkpoints: a checkpoint begins aligned and becomes unaligned after so "
        "long; 0: it is unaligned from the start. "
        "`CheckpointConfig.set_aligned_checkpoint_timeout`",
    ),
    "execution.checkpointing.externalized-checkpoint-retention": Meaning(
        "What becomes of checkpoints when the job ends: deleted in any case, kept when it "
        "fails, or also when it is cancelled. A finished job keeps none",
        values="`NO_EXTERNALIZED_CHECKPOINTS`, `DELETE_ON_CANCELLATION` or "
        "`RETAIN_ON_CANCELLATION`",
    ),
    "execution.checkpointing.orphans.grace-period": Meaning(
        "Files in the job's directory that no checkpoint refers to (left behind by failed "
        "checkpoints, failed deletions and lost drivers) are deleted when the running driver has "
        "seen them for so long; at least `1 s`",
    ),
    "execution.checkpointing.lost-output": Meaning(
        "What to do when a broker or database has lost output that a checkpoint covers, and has "
        "committed other output of the same checkpoint: stop and say so, go on without the lost "
        "records, or go on from the checkpoint before, so that what was committed comes again",
        values="`stop`, `skip` or `repeat`",
    ),
    "execution.state-recovery.path": Meaning(
        "A savepoint or retained checkpoint to begin with: its folder or its `_metadata`. It is "
        "copied, so the original may be deleted. A job that has checkpoints of its own goes on "
        "from those; with another path than it once began with it is refused. "
        "`penstock run -s PATH`",
        values="path or URI",
    ),
    "execution.state-recovery.claim-mode": Meaning(
        "Whether the job owns the savepoint or checkpoint that it begins with: claimed, it is "
        "deleted once the job has a copy of its own",
        values="`NO_CLAIM` or `CLAIM`",
    ),
    "state.savepoints.dir": Meaning(
        "Where savepoints go whose caller does not say; every slot must reach it",
        values="path or URI",
    ),
    "execution.state-recovery.ignore-unclaimed-state": Meaning(
        "State in a checkpoint or savepoint that no operator of the program claims by its uid is "
        "let go; else the job does not start. `penstock run -n`",
    ),
    "pipeline.jobid": Meaning(
        "The id of the job; without it every start has a new one. The next start under the same "
        "id goes on from the newest checkpoint. `penstock run --job-id ID`",
        values="letters, digits, `-`, `_`, `.`",
    ),
    "execution.checkpointing.incremental": Meaning(
        "A checkpoint writes what changed since the last one and refers to the rest; `false`: "
        "everything, every time",
    ),
    "state.backend.changelog.enabled": Meaning(
        "Changes of keyed state are written to the checkpoint directory as they happen, so that a "
        "checkpoint writes little ([state backends](state-backends.md#the-changelog))",
    ),
    "state.backend.changelog.storage": Meaning(
        "Where they go: to the checkpoint directory; with `memory`, as in Flink, they wait in the "
        "slot and are part of the next checkpoint",
        values="`filesystem` or `memory`",
    ),
    "penstock.changelog.interval": Meaning(
        "How often they are written; in between they gather",
        values="duration above 0",
    ),
    "state.backend.type": Meaning(
        "What holds keyed state: live objects in memory, or RocksDB, for state that is larger "
        '([state backends](state-backends.md); `pip install "penstock[rocksdb]"`)',
        values="`hashmap` or `rocksdb`",
    ),
    "state.backend.rocksdb.localdir": Meaning(
        "Where RocksDB keeps its files while a job runs; databases are spread over several "
        "directories. Without it in the directory for temporary files",
        values="paths",
        default="",
    ),
    "state.backend.rocksdb.block.cache-size": Meaning(
        "Memory of one keyed operator in one slot for blocks that were read from files; without "
        "it a quarter of the operator's managed memory",
    ),
    "state.backend.rocksdb.writebuffer.size": Meaning(
        "Memory of one of RocksDB's write buffers; without it they share a quarter of the "
        "operator's managed memory",
    ),
    "state.backend.rocksdb.writebuffer.count": Meaning(
        "How many write buffers a keyed operator has",
    ),
    "state.backend.rocksdb.predefined-options": Meaning(
        "What kind of disk RocksDB is tuned for",
        values="`DEFAULT`, `SPINNING_DISK_OPTIMIZED`, `SPINNING_DISK_OPTIMIZED_HIGH_MEM` or "
        "`FLASH_SSD_OPTIMIZED`",
    ),
    "state.backend.rocksdb.checkpoint.files-from": Meaning(
        "From this size of an operator's database in a slot on, incremental checkpoints have "
        "RocksDB's files, and deltas upon them; below it they have entries",
    ),
    "taskmanager.memory.managed.size": Meaning(
        "Memory that the `rocksdb` backend may take in one slot, shared by its keyed operators: "
        "half for live objects, the rest for RocksDB",
    ),
    "restart-strategy.exponential-delay.initial-backoff": Meaning(
        "The time between the first failure and the next attempt",
    ),
    "restart-strategy.exponential-delay.max-backoff": Meaning(
        "The longest that it grows to",
    ),
    "restart-strategy.exponential-delay.backoff-multiplier": Meaning(
        "By how much it grows with each failure",
        values="number",
    ),
    "restart-strategy.exponential-delay.reset-backoff-threshold": Meaning(
        "After so long without a failure it is short again",
    ),
    "restart-strategy.exponential-delay.jitter-factor": Meaning(
        "The part of a delay by which chance makes it longer or shorter",
        values="number",
    ),
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": Meaning(
        "Restarts without such a quiet time, after which the job fails",
        values="integer or `infinite`",
        default="`infinite`",
    ),
    "restart-strategy.failure-rate.max-failures-per-interval": Meaning(
        "Failures that an interval may see",
    ),
    "restart-strategy.failure-rate.failure-rate-interval": Meaning(
        "The interval",
    ),
    "restart-strategy.failure-rate.delay": Meaning(
        "The time between a failure and the next attempt",
    ),
    "pipeline.generic-types": Meaning(
        "Whether streams may go without a declared type; if not, `execute()` refuses one that "
        "does. `env.get_config().disable_generic_types`",
    ),
    "pipeline.auto-generate-uids": Meaning(
        "Whether operators may go without a uid of their own; if not, `execute()` refuses one "
        "that does. `env.get_config().disable_auto_generated_uids`",
    ),
    "pipeline.global-job-parameters": Meaning(
        "What `RuntimeContext.get_job_parameter` gives to functions. "
        "`env.get_config().set_global_job_parameters`",
        values="map",
        default="",
    ),
    "task.cancellation.timeout": Meaning(
        "How long functions may take to end when their job is cancelled; then their process is "
        "ended. `env.get_config().set_task_cancellation_timeout`",
        values="duration",
        default="`1 s`",
    ),
    "python.files": Meaning(
        "Modules, folders, zips and wheels that slots can import. `env.add_python_file`",
        values="paths",
        default="",
    ),
    "python.archives": Meaning(
        "Archives that are unpacked in the slots, each as `path` or `path#target`. "
        "`env.add_python_archive`",
        values="paths",
        default="",
    ),
    "python.requirements": Meaning(
        "A list of packages that slots can import, or `path#folder` with the packages in a "
        "folder. `env.set_python_requirements`",
        values="path",
    ),
    "python.executable": Meaning(
        "The Python that runs the slots. `env.set_python_executable`",
        values="path",
    ),
    "penstock.late-records": Meaning(
        "What becomes of a record that comes after all its [windows](windows.md) were closed, "
        "where no side output takes it: it is dropped and counted, or the job fails",
        values="`drop` or `fail`",
    ),
    "table.exec.resource.default-parallelism": Meaning(
        "The parallelism of operators that set none, where `parallelism.default` is not set "
        "either; -1: not set",
        values="integer",
    ),
    "pipeline.jobvertex-parallelism-overrides": Meaning(
        "The parallelism of some chains of operators, by the uid of the first operator of each; "
        "it wins over the program",
        values="map",
        default="",
    ),
    "python.operator-chaining.enabled": Meaning(
        "The same for operators in Python, which all are: both must be true",
    ),
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism": Meaning(
        "Whether operators are fused whose max parallelism differs",
    ),
    "pipeline.name": Meaning(
        "The name of a job that `execute()` gives none",
        values="text",
    ),
    "pipeline.vertex-name-include-index-prefix": Meaning(
        "Whether names of chains begin with their number: `[vertex-0]Source: numbers`",
    ),
    "execution.buffer-timeout.enabled": Meaning(
        "Whether it does; `false`: a buffer waits until it is full, or its slot is idle",
    ),
    "penstock.hdfs.http-address": Meaning(
        "Where the namenode has WebHDFS, by which `hdfs://` paths are reached: `namenode:9870`, "
        "its `dfs.namenode.http-address`",
        values="host and port",
    ),
    "env.hadoop.conf.dir": Meaning(
        "Where `hdfs-site.xml` is, which says the same. When it is not set: the environment "
        "variable `HADOOP_CONF_DIR`",
        values="path",
    ),
    "penstock.kafka.servers": Meaning(
        "Where the Kafka servers are reached that a program names in `bootstrap.servers`, as pairs "
        "with commas between: `kafka.internal:9092=localhost:19092`. For a program that was "
        "written for another place; what brokers call themselves (`advertised.listeners`) is not "
        "changed",
        values="pairs of host and port",
    ),
    "execution.checkpointing.storage": Meaning(
        "`jobmanager`: checkpoints are in the memory of the driver, also where there is a "
        "directory; `filesystem`: there must be one. When it is not set, the directory decides",
        values="`filesystem` or `jobmanager`",
    ),
    "execution.checkpointing.snapshot-compression": Meaning(
        "Whether state in checkpoints and savepoints is compressed; RocksDB's files are "
        "compressed by RocksDB. `env.get_config().set_use_snapshot_compression`",
    ),
    "io.tmp.dirs": Meaning(
        "Where RocksDB keeps its files if `state.backend.rocksdb.localdir` is not set",
        values="paths",
        default="",
    ),
    "state.backend.rocksdb.block.blocksize": Meaning(
        "How much is read from a file at a time; without it what RocksDB has, 4 kb",
    ),
    "state.backend.rocksdb.block.metadata-blocksize": Meaning(
        "The same of partitioned indexes and filters",
    ),
    "state.backend.rocksdb.use-bloom-filter": Meaning(
        "Whether files have a filter that tells which keys they do not hold",
    ),
    "state.backend.rocksdb.bloom-filter.bits-per-key": Meaning(
        "How large the filter is; rounded",
        values="number",
    ),
    "state.backend.rocksdb.memory.partitioned-index-filters": Meaning(
        "Whether indexes and filters are read in parts, when they are needed",
    ),
    "state.backend.rocksdb.compaction.style": Meaning(
        "How RocksDB merges its files; Flink's `FIFO` would delete state and is refused",
        values="`LEVEL`, `UNIVERSAL` or `NONE`",
    ),
    "state.backend.rocksdb.compaction.level.use-dynamic-size": Meaning(
        "Whether levels are sized by the last of them; without it what RocksDB has",
    ),
    "state.backend.rocksdb.compaction.level.target-file-size-base": Meaning(
        "How large files of the first level become; without it what RocksDB has, 64 mb",
    ),
    "state.backend.rocksdb.compaction.level.max-size-level-base": Meaning(
        "How large the first level becomes; without it what RocksDB has, 256 mb",
    ),
    "state.backend.rocksdb.compression.per.level": Meaning(
        "How files are compressed, by level, such as `LZ4_COMPRESSION;ZSTD_COMPRESSION`; the "
        "last is for all levels below it too. Without it what RocksDB has, Snappy",
        values="list",
        default="",
    ),
    "state.backend.rocksdb.files.open": Meaning(
        "How many files a database has open; -1, and without it: all of them",
    ),
    "state.backend.rocksdb.thread.num": Meaning(
        "How many threads write and merge files of a database; without it what RocksDB has",
    ),
    "state.backend.rocksdb.writebuffer.number-to-merge": Meaning(
        "How many write buffers are merged before they are written",
    ),
    "state.backend.rocksdb.log.dir": Meaning(
        "Where RocksDB's own log goes, on the hosts; without it beside its files, and gone with "
        "them",
        values="path",
    ),
    "state.backend.rocksdb.log.file-num": Meaning(
        "How many files of that log are kept",
    ),
    "state.backend.rocksdb.log.max-file-size": Meaning(
        "How large one of them becomes",
    ),
    "state.backend.rocksdb.checkpoint.transfer.thread.num": Meaning(
        "How many files of a database are stored at a time, for a checkpoint. "
        "`EmbeddedRocksDBStateBackend.set_number_of_transfer_threads`",
    ),
    "state.backend.rocksdb.memory.managed": Meaning(
        "Whether RocksDB's memory is a share of the managed memory; `false`: 8 mb for blocks and "
        "64 mb for each write buffer, in each keyed operator",
    ),
    "state.backend.rocksdb.memory.fixed-per-slot": Meaning(
        "In place of `taskmanager.memory.managed.size`. A slot is a process of its own, so per "
        "TaskManager is the same",
    ),
    "state.backend.rocksdb.memory.write-buffer-ratio": Meaning(
        "The part of RocksDB's memory that its write buffers have; blocks have the rest",
        values="number",
    ),
    "pipeline.cached-files": Meaning(
        "Files that functions find by name: `name:a,path:/x;name:b,path:/y,executable:true`. "
        "`env.register_cached_file`",
        values="list",
        default="",
    ),
    "pipeline.jars": Meaning(
        "JARs of connectors that are built in (Kafka, JDBC, files), for which nothing is needed; "
        "others are refused. `env.add_jars`",
        values="list",
        default="",
    ),
    "pipeline.classpaths": Meaning(
        "The same. `env.add_classpaths`",
        values="list",
        default="",
    ),
    "python.pythonpath": Meaning(
        "Folders of the hosts that slots import from, with `:` or commas between them",
        values="paths",
        default="",
    ),
    "python.logging.default.level": Meaning(
        "From which level on functions log, to the stderr of their slot. When it is not set: as "
        "Python does, warnings and errors",
        values="`DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`",
    ),
    "python.logging.level.overrides": Meaning(
        "The same for some loggers: `my.module:DEBUG,other:ERROR`",
        values="map",
        default="",
    ),
    "spark.master": Meaning(
        "Where a new Spark session runs. When it is not set: the master of `spark-submit` "
        "or `spark-defaults.conf`, else `local[N]` with N four times the number of cores and at "
        "least 32",
        values="Spark master URL",
    ),
}


def table() -> str:
    """Every key with its other spellings, type, default and meaning, as Markdown."""
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for option in OPTIONS:
        meaning = MEANINGS[option.key]
        keys = "<br>".join(f"`{key}`" for key in (option.key, *option.aliases))
        values = meaning.values or _TYPES[option.parse]
        default = default_text(option) if meaning.default is None else meaning.default
        rows.append(f"| {keys} | {values} | {default} | {meaning.text} |")
    return "\n".join(rows)


def default_text(option: Option[Any]) -> str:
    """The default as one would write it into a file."""
    default = option.default
    if default is None:
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if option.parse is parse_duration_ms:
        for unit, size in _UNITS_MS.items():
            if default and default % size == 0:
                return f"`{default // size} {unit}`"
        return f"`{default} ms`"
    if option.parse is parse_memory:
        for unit, size in _UNITS_BYTES.items():
            if default and default % size == 0:
                return f"`{default // size} {unit}`"
    return f"`{default}`"
