"""From a program and its configuration to a job that can be submitted."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.checkpoint.settings import CheckpointMode, CheckpointSettings
from penstock.common import config_options as options
from penstock.common.settings import RuntimeSettings, StateSettings
from penstock.common.shipped_files import ShippedFile
from penstock.common.typeinfo import PickledBytesTypeInfo
from penstock.datastream.program import Program
from penstock.datastream.python_dependencies import python_files
from penstock.errors import ConfigurationError, ProgramError
from penstock.graph.blueprint import Blueprint
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
    chaining = options.OPERATOR_CHAINING.read(values)
    stream_graph = program.stream_graph()
    _check_declarations(program, stream_graph, values)
    blueprint = Blueprint(stream_graph, name or DEFAULT_JOB_NAME, chaining)
    checkpoints = checkpoint_settings(values)
    files = (*python_files(values), *cached_files)
    ships = files or options.PYTHON_REQUIREMENTS.read(values) is not None
    return Job(
        job_id,
        blueprint.laid_out(),
        _runtime(values, checkpoints),
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
        options.RECOVERY_PATH.read(values),
        options.CLAIM_MODE.read(values) == "CLAIM",
        options.SAVEPOINT_DIRECTORY.read(values),
        options.IGNORE_UNCLAIMED.read(values),
        given_id is not None,
        files,
        options.PYTHON_EXECUTABLE.read(values),
        blueprint,
        Ports(options.DRIVER_PORT.read(values), options.SLOT_PORTS.read(values)),
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
    if checkpoints.interval_ms is None and options.RECOVERY_PATH.read(values) is None:
        return None
    from penstock.checkpoint.store import MEMORY, CheckpointStore

    return CheckpointStore(options.CHECKPOINT_DIRECTORY.read(values) or MEMORY, job_id)


def _runtime(values: Mapping[str, str], checkpoints: CheckpointSettings) -> RuntimeSettings:
    return RuntimeSettings(
        exactly_once=checkpoints.mode is CheckpointMode.EXACTLY_ONCE,
        object_reuse=options.OBJECT_REUSE.read(values),
        buffer_timeout_ms=options.BUFFER_TIMEOUT.read(values),
        heartbeat_interval_ms=options.HEARTBEAT_INTERVAL.read(values),
        watermark_interval_ms=options.AUTO_WATERMARK_INTERVAL.read(values),
        fail_on_late_records=options.LATE_RECORDS.read(values) == "fail",
        redact_records=options.REDACT_RECORDS.read(values),
        incremental=options.CHECKPOINT_INCREMENTAL.read(values),
        checkpoint_timeout_ms=checkpoints.timeout_ms,
        changelog_ms=_changelog_ms(values),
        job_parameters=options.JOB_PARAMETERS.read(values),
        state=_state(values),
    )


def _changelog_ms(values: Mapping[str, str]) -> int | None:
    options.CHANGELOG_STORAGE.read(values)
    if not options.CHANGELOG.read(values):
        return None
    if options.CHECKPOINT_DIRECTORY.read(values) is None:
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
    return StateSettings(
        backend,
        options.ROCKSDB_DIRECTORY.read(values),
        options.MANAGED_MEMORY.read(values),
        options.ROCKSDB_BLOCK_CACHE.read(values),
        options.ROCKSDB_WRITE_BUFFER.read(values),
        options.ROCKSDB_WRITE_BUFFERS.read(values),
        options.ROCKSDB_PREDEFINED_OPTIONS.read(values),
        options.ROCKSDB_FILES_FROM.read(values),
    )
