"""From a program and its configuration to a job that can be submitted."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.checkpoint.settings import CheckpointMode, CheckpointSettings
from penstock.common import config_options as options
from penstock.common.hdfs_address import webhdfs_uri
from penstock.common.jars import accept_jars
from penstock.common.settings import RocksTuning, RuntimeSettings, StateSettings
from penstock.common.shipped_files import ShippedFile
from penstock.common.typeinfo import PickledBytesTypeInfo
from penstock.datastream.program import Program
from penstock.datastream.python_dependencies import python_files
from penstock.datastream.streams import FOREVER_MS
from penstock.errors import ConfigurationError, ProgramError
from penstock.graph.blueprint import Blueprint
from penstock.graph.job_graph import Chains
from penstock.graph.operators import Operator, SinkOperator, SourceOperator
from penstock.graph.stream_graph import StreamGraph
from penstock.jobmanager.checkpoint_options import checkpoint_settings
from penstock.jobmanager.job import Job, Ports, Timeouts

if TYPE_CHECKING:
    from penstock.checkpoint.store import CheckpointStore

DEFAULT_JOB_NAME = "Penstock Streaming Job"


def assemble(
    program: Program,
    values: Mapping[str, str],
    name: str | None,
    job_id: str | None = None,
    cached_files: Sequence[ShippedFile] = (),
) -> Job:
    """Check everything that can be checked without running, and put the job together."""
    # Here and below imported where it is used: what only jobs need must not slow down
    # `import penstock.datastream`.
    from penstock.jobmanager.restart_options import restart_strategy

    options.check_keys(values)
    given_id = job_id or options.JOB_ID.read(values)
    job_id = given_id or uuid.uuid4().hex
    # There is one mode: what counts is that no other was asked for.
    options.RUNTIME_MODE.read(values)
    stream_graph = _relocated(program.stream_graph(), options.KAFKA_SERVERS.read(values) or {})
    _check_declarations(program, stream_graph, values)
    name = name or options.JOB_NAME.read(values) or DEFAULT_JOB_NAME
    blueprint = Blueprint(stream_graph, name, _chains(values))
    blueprint = blueprint.overridden(options.PARALLELISM_OVERRIDES.read(values))
    for jars in (options.JARS, options.CLASSPATHS):
        accept_jars(jars.key, jars.read(values))
    checkpoints = checkpoint_settings(values)
    files = (*python_files(values), *cached_files)
    ships = files or options.PYTHON_REQUIREMENTS.read(values) is not None
    return Job(
        job_id,
        blueprint.laid_out(),
        replace(_runtime(values, checkpoints), group_memory=dict(program.group_memory)),
        checkpoints,
        _store(values, checkpoints, job_id),
        restart_strategy(values, checkpoints.interval_ms is not None),
        Timeouts(
            # Slots unpack what is shipped before they register.
            registration=300_000 if ships else 30_000,
            start=options.START_TIMEOUT.read(values),
            heartbeat=options.HEARTBEAT_TIMEOUT.read(values),
            stop=3 * options.CANCELLATION_TIMEOUT.read(values),
        ),
        _path(options.RECOVERY_PATH, values),
        options.CLAIM_MODE.read(values) == "CLAIM",
        _path(options.SAVEPOINT_DIRECTORY, values),
        options.IGNORE_UNCLAIMED.read(values),
        given_id is not None,
        files,
        options.PYTHON_EXECUTABLE.read(values),
        blueprint,
        Ports(options.DRIVER_PORT.read(values), options.SLOT_PORTS.read(values)),
    )


def _relocated(graph: StreamGraph, servers: Mapping[str, str]) -> StreamGraph:
    """The program with its Kafka servers where the configuration says that they are."""
    if not servers:
        return graph
    from penstock.connectors.kafka.names import relocated_sink, relocated_source

    def moved(operator: Operator) -> Operator:
        if isinstance(operator, SourceOperator):
            return replace(operator, source=relocated_source(operator.source, servers))
        if isinstance(operator, SinkOperator):
            return replace(operator, sink=relocated_sink(operator.sink, servers))
        return operator

    nodes = tuple(replace(node, operator=moved(node.operator)) for node in graph.nodes)
    return replace(graph, nodes=nodes)


def _chains(values: Mapping[str, str]) -> Chains:
    return Chains(
        options.OPERATOR_CHAINING.read(values) and options.PYTHON_CHAINING.read(values),
        options.CHAIN_UNLIKE.read(values),
        options.VERTEX_NUMBERS.read(values),
    )


def _check_declarations(program: Program, graph: StreamGraph, values: Mapping[str, str]) -> None:
    """Refuse what the program said that it does not want to happen by accident."""
    if not options.AUTO_UIDS.read(values):
        for node in graph.nodes:
            if node.id in program.nodes and not program.nodes[node.id].uid:
                raise ProgramError(
                    f"operator {node.name!r} has no uid, and {options.AUTO_UIDS.key} is false: "
                    "call uid() on it"
                )
    if not options.GENERIC_TYPES.read(values):
        for edge in graph.edges:
            node = graph.node(edge.source)
            tagged = dict(node.side_types).get(edge.tag or "")
            declared = node.output_type if edge.tag is None else tagged
            if declared is None or isinstance(declared, PickledBytesTypeInfo):
                raise ProgramError(
                    f"the records of operator {node.name!r} have no declared type, and "
                    f"{options.GENERIC_TYPES.key} is false: give it an output_type"
                )


def _store(
    values: Mapping[str, str], checkpoints: CheckpointSettings, job_id: str
) -> CheckpointStore | None:
    directory = _checkpoint_directory(values)
    if checkpoints.interval_ms is None and options.RECOVERY_PATH.read(values) is None:
        return None
    from penstock.checkpoint.store import MEMORY, CheckpointStore

    return CheckpointStore(directory or MEMORY, job_id)


def _path(option: options.Option[str | None], values: Mapping[str, str]) -> str | None:
    """A path as slots understand it: they do not know where HDFS is."""
    path = option.read(values)
    if path is None or not path.startswith("hdfs://"):
        return path
    address, hadoop = options.HDFS_ADDRESS.read(values), options.HADOOP_DIRECTORY.read(values)
    return webhdfs_uri(path, address, hadoop)


def _checkpoint_directory(values: Mapping[str, str]) -> str | None:
    """Where checkpoints go; None: into the memory of the driver."""
    directory = _path(options.CHECKPOINT_DIRECTORY, values)
    storage = options.CHECKPOINT_STORAGE.read(values)
    if storage == "filesystem" and directory is None:
        raise ConfigurationError(
            f"{options.CHECKPOINT_STORAGE.key} is filesystem, and there is no directory: set "
            f"{options.CHECKPOINT_DIRECTORY.key}"
        )
    return None if storage == "jobmanager" else directory


def _runtime(values: Mapping[str, str], checkpoints: CheckpointSettings) -> RuntimeSettings:
    return RuntimeSettings(
        exactly_once=checkpoints.mode is CheckpointMode.EXACTLY_ONCE,
        object_reuse=options.OBJECT_REUSE.read(values),
        buffer_timeout_ms=_buffer_timeout_ms(values),
        heartbeat_interval_ms=options.HEARTBEAT_INTERVAL.read(values),
        watermark_interval_ms=options.AUTO_WATERMARK_INTERVAL.read(values),
        fail_on_late_records=options.LATE_RECORDS.read(values) == "fail",
        redact_records=options.REDACT_RECORDS.read(values),
        incremental=options.CHECKPOINT_INCREMENTAL.read(values),
        checkpoint_timeout_ms=checkpoints.timeout_ms,
        changelog_ms=_changelog_ms(values),
        compresses=options.SNAPSHOT_COMPRESSION.read(values),
        log_level=options.LOG_LEVEL.read(values),
        log_levels=options.LOG_LEVELS.read(values),
        job_parameters=options.JOB_PARAMETERS.read(values),
        state=_state(values),
    )


def _buffer_timeout_ms(values: Mapping[str, str]) -> int:
    enabled = options.BUFFER_TIMEOUT_ENABLED.read(values)
    return options.BUFFER_TIMEOUT.read(values) if enabled else FOREVER_MS


def _changelog_ms(values: Mapping[str, str]) -> int | None:
    storage = options.CHANGELOG_STORAGE.read(values)
    # In memory, changes wait for the checkpoint that they are part of: that is what deltas do.
    if not options.CHANGELOG.read(values) or storage == "memory":
        return None
    if _checkpoint_directory(values) is None:
        raise ConfigurationError(
            f"{options.CHANGELOG.key} needs a directory for checkpoints: set "
            f"{options.CHECKPOINT_DIRECTORY.key}"
        )
    if not options.CHECKPOINT_INCREMENTAL.read(values):
        raise ConfigurationError(
            f"{options.CHANGELOG.key} is for incremental checkpoints, and "
            f"{options.CHECKPOINT_INCREMENTAL.key} is false"
        )
    return options.CHANGELOG_INTERVAL.read(values)


def _state(values: Mapping[str, str]) -> StateSettings:
    from penstock.state.choice import check_available

    backend = options.STATE_BACKEND.read(values)
    check_available(backend)
    directories = options.ROCKSDB_DIRECTORIES.read(values)
    directories = directories or options.TEMPORARY_DIRECTORIES.read(values)
    fixed = options.ROCKSDB_FIXED_MEMORY.read(values)
    return StateSettings(
        backend,
        directories[0] if directories else None,
        options.MANAGED_MEMORY.read(values) if fixed is None else fixed,
        options.ROCKSDB_BLOCK_CACHE.read(values),
        options.ROCKSDB_WRITE_BUFFER.read(values),
        options.ROCKSDB_WRITE_BUFFERS.read(values),
        options.ROCKSDB_PREDEFINED_OPTIONS.read(values),
        options.ROCKSDB_FILES_FROM.read(values),
        local_dirs=directories if len(directories) > 1 else (),
        buffer_ratio=options.ROCKSDB_BUFFER_RATIO.read(values),
        manages_memory=options.ROCKSDB_MANAGED.read(values) or fixed is not None,
        transfer_threads=options.ROCKSDB_TRANSFER_THREADS.read(values),
        tuning=RocksTuning(
            options.ROCKSDB_BLOCK_SIZE.read(values),
            options.ROCKSDB_METADATA_BLOCK_SIZE.read(values),
            options.ROCKSDB_BLOOM_FILTER.read(values),
            options.ROCKSDB_BLOOM_BITS.read(values),
            options.ROCKSDB_PARTITIONED.read(values),
            options.ROCKSDB_COMPACTION_STYLE.read(values),
            options.ROCKSDB_DYNAMIC_LEVELS.read(values),
            options.ROCKSDB_FILE_SIZE.read(values),
            options.ROCKSDB_LEVEL_SIZE.read(values),
            options.ROCKSDB_COMPRESSION.read(values),
            options.ROCKSDB_OPEN_FILES.read(values),
            options.ROCKSDB_THREADS.read(values),
            options.ROCKSDB_BUFFERS_TO_MERGE.read(values),
            options.ROCKSDB_LOG_DIRECTORY.read(values),
            options.ROCKSDB_LOG_FILES.read(values),
            options.ROCKSDB_LOG_SIZE.read(values),
        ),
    )
