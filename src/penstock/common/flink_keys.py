"""Flink's configuration keys that are not options here: accepted without a meaning, or refused.

A user comes with the file of a Flink cluster, and it must start a job. So all of Flink's keys are
known, from the list beside this module. What can mean something is an option
(`penstock.common.config_options`). What tunes something that does not exist here has *no meaning*:
it is accepted, and named once. What asks for something that would not happen is *refused*, unless
it asks for what Flink does by default.

>>> kind_of("pekko.ask.timeout").name, kind_of("high-availability.type").name
('NO_MEANING', 'REFUSED')
>>> kind_of("pekko.ask.timeuot") is None
True
>>> refusal("high-availability.type", "NONE") is None
True
>>> refusal("high-availability.type", "zookeeper")
'the driver is started again under the same pipeline.jobid and goes on from its checkpoints'
"""

from __future__ import annotations

import enum
import functools
import logging
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import NamedTuple

log = logging.getLogger(__name__)


class Kind(enum.Enum):
    """What becomes of a key that is no option here."""

    NO_MEANING = "no meaning here"
    REFUSED = "refused"


class Rule(NamedTuple):
    """What becomes of a key, or of all keys below a name that ends with a dot, and why."""

    key: str
    kind: Kind
    why: str


def _no(why: str, *keys: str) -> list[Rule]:
    return [Rule(key, Kind.NO_MEANING, why) for key in keys]


def _refused(why: str, *keys: str) -> list[Rule]:
    return [Rule(key, Kind.REFUSED, why) for key in keys]


_JAVA = "the class is Java's and would never be called"

RULES: tuple[Rule, ...] = (
    # --- processes, and where they run: Spark's ---
    *_no(
        "Spark starts the processes, on the cluster that `spark.master` names",
        "cluster.",
        "containerized.",
        "execution.attached",
        "execution.shutdown-on-application-finish",
        "execution.shutdown-on-attached-exit",
        "execution.target",
        "execution.terminate-application-on-any-job-terminated-exceptionally",
        "flink.yarn.",
        "kubernetes.",
        "minicluster.",
        "resourcemanager.",
        "slot.",
        "slotmanager.",
        "taskmanager.bind-host",
        "taskmanager.host",
        "taskmanager.load-balance.mode",
        "taskmanager.numberOfTaskSlots",
        "taskmanager.registration.timeout",
        "taskmanager.resource-id",
        "taskmanager.slot.timeout",
        "yarn.",
    ),
    *_no(
        "there is no JVM in the path of a record; `spark.driver.memory` and "
        "`spark.executor.memory` size Spark's",
        "classloader.",
        "env.",
        "jmx.server.port",
        "jobmanager.heap.",
        "jobmanager.memory.",
        "mdc.",
        "process.",
        "taskmanager.debug.",
        "taskmanager.heap.",
        "taskmanager.jvm-exit-on-oom",
        "taskmanager.memory.",
        "user.artifacts.",
    ),
    *_no(
        "slots and the driver find each other by themselves",
        "akka.",
        "blob.",
        "client.",
        "heartbeat.rpc-failure-threshold",
        "high-availability.",
        "jobmanager.",
        "pekko.",
        "taskmanager.collect-sink.port",
        "taskmanager.data.",
        "taskmanager.network.",
        "taskmanager.rpc.",
        "taskmanager.runtime.",
        "zookeeper.",
    ),
    *_no(
        "the driver has no web server yet; `penstock list`, `savepoint`, `stop` and `cancel` reach "
        "it, and the log is where Spark's is",
        "historyserver.",
        "rest.",
        "taskmanager.log.path",
        "taskmanager.system-out.",
        "web.",
    ),
    *_no(
        "nothing is kept of a job but its checkpoints",
        "application-result-store.",
        "cleanup-strategy.",
        "completed-application-store.",
        "job-event.",
        "job-result-store.",
    ),
    *_no(
        "metrics, events and traces are not reported to other systems; `JobClient.metrics()` reads "
        "them",
        "events.",
        "metrics.",
        "state.latency-track.",
        "state.size-track.",
        "traces.",
    ),
    *_no(
        "there are no tables and no SQL",
        "compiler.",
        "materialized-table.",
        "partition.fields.",
        "pipeline.cep.",
        "sql-client.",
        "table.",
    ),
    *_no(
        "there is no batch mode yet",
        "execution.batch-shuffle-mode",
        "execution.batch.",
        "execution.sort-keyed-partition.memory",
        "execution.sort-partition.memory",
        "slow-task-detector.",
    ),
    *_no(
        "functions and state are in the process of the slot; there is nothing between them to tune",
        "python.client.executable",
        "python.execution-mode",
        "python.fn-execution.",
        "python.map-state.",
        "python.metric.enabled",
        "python.state.cache-size",
        "python.systemenv.enabled",
    ),
    *_no(
        "the file systems are Python's",
        "fs.",
        "flink.hadoop.",
    ),
    *_no(
        "how checkpoints are written is not tuned with it: an operator's state in a subtask is one "
        "file, and a restore reads the checkpoint directory",
        "execution.checkpointing.cleaner.parallel-mode",
        "execution.checkpointing.data-inline-threshold",
        "execution.checkpointing.during-recovery.enabled",
        "execution.checkpointing.file-merging.",
        "execution.checkpointing.local-backup.",
        "execution.checkpointing.sync-phase-timeout",
        "execution.checkpointing.unaligned.",
        "execution.checkpointing.write-buffer-size",
        "execution.state-recovery.from-local",
        "sink.committer.retries",
        "state.backend.async",
        "state.backend.fs.memory-threshold",
        "state.backend.fs.write-buffer-size",
        "state.backend.local-recovery",
        "state.checkpoint.cleaner.parallel-mode",
        "state.storage.fs.memory-threshold",
        "state.storage.fs.write-buffer-size",
        "taskmanager.state.local.root-dirs",
    ),
    *_no(
        "no source tells that it works off a backlog",
        "execution.checkpointing.interval-during-backlog",
    ),
    *_no(
        "changes are written as `penstock.changelog.interval` says, into the checkpoint directory",
        "state.changelog.",
    ),
    *_no(
        "it is for the backend `forst`, which there is not",
        "state.backend.forst.",
    ),
    *_no(
        "metrics of RocksDB are always there: `rocksdb.size`, `rocksdb.blockCacheHitRatio`, "
        "`rocksdb.meanReadMicros`",
        "state.backend.rocksdb.metrics.",
    ),
    *_no(
        "RocksDB decides that by itself here",
        "state.backend.rocksdb.bloom-filter.block-based-mode",
        "state.backend.rocksdb.compaction.filter.",
        "state.backend.rocksdb.log.level",
        "state.backend.rocksdb.memory.high-prio-pool-ratio",
        "state.backend.rocksdb.incremental-restore-async-compact-after-rescale",
        "state.backend.rocksdb.manual-compaction.",
        "state.backend.rocksdb.rescaling.",
        "state.backend.rocksdb.restore-overlap-fraction-threshold",
        "state.backend.rocksdb.timer-service.",
        "state.backend.rocksdb.use-ingest-db-restore-mode",
        "state.backend.rocksdb.write-batch-size",
    ),
    *_no(
        "functions are pickled whole",
        "pipeline.closure-cleaner-level",
    ),
    *_no(
        "plans are drawn by `penstock info`",
        "pipeline.vertex-description-mode",
    ),
    *_no(
        "splits of one source wait for each other as sources do",
        "pipeline.watermark-alignment.",
    ),
    *_no(
        "a function that does not end is not interrupted again and again: "
        "`task.cancellation.timeout` says when its process is ended",
        "task.cancellation.",
    ),
    *_no(
        "connections between slots are always encrypted, with keys made for each attempt",
        "security.ssl.",
    ),
    *_no(
        "there are no delegation tokens and no Java security modules",
        "security.",
    ),
    # --- what would not happen ---
    *_refused(
        "the driver is started again under the same pipeline.jobid and goes on from its "
        "checkpoints",
        "high-availability",
        "high-availability.type",
    ),
    *_refused(
        "there is no Kerberos",
        "security.kerberos.access.hadoopFileSystems",
        "security.kerberos.krb5-conf.path",
        "security.kerberos.login.contexts",
        "security.kerberos.login.keytab",
        "security.kerberos.login.principal",
    ),
    *_refused(
        "there is no web server yet that could be reached by TLS only",
        "security.ssl.rest.enabled",
        "security.ssl.rest.authentication-enabled",
    ),
    *_refused(
        "`penstock config` hides the values of keys with secret, password, token or access key in "
        "them, and of no others",
        "security.redaction.additional-keys",
    ),
    *_refused(
        _JAVA,
        "execution.job-listeners",
        "execution.job-status-changed-listeners",
        "jobmanager.failure-enrichers",
        "shuffle-service-factory.class",
        "state.backend.rocksdb.options-factory",
    ),
    *_refused(
        "types are declared with penstock.common.Types, and what has none is pickled",
        "pipeline.force-avro",
        "pipeline.force-kryo",
        "pipeline.force-kryo-avro",
        "pipeline.serialization-config",
    ),
    *_refused(
        "a job keeps the parallelism that it has until `penstock rescale` changes it",
        "scheduler-mode",
    ),
    *_refused(
        "slots are not given resources by name; set spark.task.resource.NAME.amount",
        "external-resource.",
        "external-resources",
    ),
    *_refused(
        "ship files with `python.files`, `python.archives` or `pipeline.cached-files`",
        "user.artifacts.artifact-list",
    ),
    *_refused(
        "set spark.executorEnv.NAME",
        "containerized.master.env.",
        "containerized.taskmanager.env.",
    ),
    *_refused(
        "write the scheme into each path",
        "fs.default-scheme",
    ),
    *_refused(
        "the clients of object stores are Python's: set what any AWS client reads "
        "(AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), or what gcsfs and adlfs "
        "read",
        "fs.azure.",
        "fs.gs.",
        "fs.s3.",
        "fs.s3a.",
        "gs.",
        "s3.",
        "s3a.",
    ),
    *_refused(
        "changes are written into the checkpoint directory",
        "state.changelog.dstl.dfs.base-path",
    ),
    *_refused(
        "a subtask that has ended takes part in every checkpoint",
        "execution.checkpointing.checkpoints-after-tasks-finish",
    ),
    *_refused(
        "checkpoints are in a folder with the id of their job, so that two jobs never meet",
        "execution.checkpointing.create-subdir",
        "state.checkpoints.create-subdir",
    ),
    *_refused(
        "what is in flight in a checkpoint is part of it; take a savepoint to be without",
        "execution.checkpointing.recover-without-channel-state.checkpoint-id",
        "execution.state-recovery.without-channel-state.checkpoint-id",
    ),
    *_refused(
        "a program's own settings count; the command line wins over them",
        "execution.program-config.enabled",
        "execution.program-config.wildcards",
    ),
    *_refused(
        "sources read before the first checkpoint",
        "pipeline.sources.pause-until-first-checkpoint",
    ),
    *_refused(
        "profile a slot with py-spy; the metric busyTimeMsPerSecond tells which",
        "python.profile.enabled",
    ),
)

OLDER = (
    "akka.<key>",
    "containerized.<key>",
    "containerized.master.env.<name>",
    "containerized.taskmanager.env.<name>",
    "env.java.opts",
    "execution.checkpointing.force-unaligned",
    "execution.checkpointing.recover-without-channel-state.checkpoint-id",
    "fs.azure.<key>",
    "fs.gs.<key>",
    "fs.hdfs.<key>",
    "fs.s3.<key>",
    "fs.s3a.<key>",
    "gs.<key>",
    "high-availability",
    "high-availability.zookeeper.path.jobgraphs",
    "jobmanager.heap.mb",
    "jobmanager.heap.size",
    "jobmanager.web.<key>",
    "s3.<key>",
    "s3a.<key>",
    "security.ssl.enabled",
    "state.backend.async",
    "state.backend.fs.memory-threshold",
    "state.backend.fs.write-buffer-size",
    "state.backend.local-recovery",
    "state.checkpoint.cleaner.parallel-mode",
    "state.checkpoints.create-subdir",
    "state.storage.fs.memory-threshold",
    "state.storage.fs.write-buffer-size",
    "taskmanager.heap.mb",
    "taskmanager.heap.size",
    "taskmanager.memory.preallocate",
    "taskmanager.network.memory.fraction",
    "taskmanager.network.memory.max",
    "taskmanager.network.memory.min",
    "taskmanager.network.numberOfBuffers",
    "taskmanager.state.local.root-dirs",
    "web.port",
)
"""Keys of Flink's that are not in the list of its present version, and that files still have."""

_BY_NAME = {rule.key: rule for rule in RULES}


@functools.cache
def flink_keys() -> Mapping[str, str]:
    """Every key of Flink's with its default, as its documentation writes them."""
    return {key: default for key, default, _ in _rows()}


@functools.cache
def _rows() -> list[list[str]]:
    text = files("penstock.common").joinpath("flink-config.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [[part.strip() for part in line.split("|")] for line in lines]


def is_present(key: str) -> bool:
    """Whether the present version of Flink spells a key like this."""
    return key in flink_keys()


@functools.cache
def keys_of_type(name: str) -> frozenset[str]:
    """The keys whose values are of a type of Flink's, such as `List` or `Map`."""
    return frozenset(key for key, _, kind in _rows() if kind.partition("<")[0] == name)


def rule_for(key: str) -> Rule | None:
    """What is said about a key of Flink's: the rule with the longest name that it is under."""
    names = [key, *(key[: match.end()] for match in reversed(list(re.finditer(r"\.", key))))]
    return next((_BY_NAME[name] for name in names if name in _BY_NAME), None)


def kind_of(key: str) -> Kind | None:
    """What becomes of a key that is no option; None: Flink has no such key either."""
    rule = rule_for(key)
    return rule.kind if rule is not None and _is_flinks(key) else None


def refusal(key: str, value: str) -> str | None:
    """Why this value of a key is refused; None if it is not: it asks for nothing."""
    rule = rule_for(key)
    if rule is None or rule.kind is not Kind.REFUSED:
        return None
    default = flink_keys().get(key, "none").strip('"').lower()
    return None if str(value).strip().lower() in (default, "none", "false") else rule.why


def meaningless(keys: Iterable[str]) -> list[str]:
    """Those of these keys that have no meaning here."""
    return sorted(key for key in keys if kind_of(key) is Kind.NO_MEANING)


_said: set[str] = set()


def say_meaningless(keys: Iterable[str]) -> None:
    """Log one line about all of these keys that have no meaning here, and were not named yet."""
    new = [key for key in meaningless(keys) if key not in _said]
    _said.update(new)
    if new:
        log.warning(
            "without a meaning here, and ignored: %s (docs/configuration.md says why)",
            ", ".join(new),
        )


def _is_flinks(key: str) -> bool:
    return key in flink_keys() or _patterns().fullmatch(key) is not None


@functools.cache
def _patterns() -> re.Pattern[str]:
    """Keys with a part that the user chooses: `metrics.reporter.<name>.interval`."""
    keys = [*flink_keys(), *OLDER]
    return re.compile("|".join(_pattern(key) for key in keys if "<" in key or key in OLDER))


def _pattern(key: str) -> str:
    # The last part may have dots in it: `metrics.reporter.<name>.<parameter>`.
    text = re.sub(r"<[^>]+>$", "ANYTHING", key)
    text = re.sub(r"<[^>]+>", "NAME", text)
    return re.escape(text).replace("ANYTHING", ".+").replace("NAME", r"[^.]+")


def table(kind: Kind) -> str:
    """The keys of this kind, together where the reason is the same, as Markdown."""
    by_reason: dict[str, list[str]] = {}
    for rule in RULES:
        if rule.kind is kind:
            shown = f"`{rule.key}*`" if rule.key.endswith(".") else f"`{rule.key}`"
            by_reason.setdefault(rule.why, []).append(shown)
    rows = ["| keys | why |", "|---|---|"]
    return "\n".join([*rows, *(f"| {', '.join(k)} | {why} |" for why, k in by_reason.items())])
