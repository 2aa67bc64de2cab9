"""From a program and its configuration to a job that can be submitted."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from penstock.checkpoint.settings import CheckpointMode, CheckpointSettings
from penstock.checkpoint.store import MEMORY, CheckpointStore
from penstock.common import config_options as options
from penstock.common.settings import RuntimeSettings
from penstock.datastream.program import Program
from penstock.graph.execution_graph import build_execution_graph
from penstock.graph.job_graph import build_job_graph
from penstock.jobmanager.checkpoint_options import checkpoint_settings
from penstock.jobmanager.job import Job, Timeouts
from penstock.jobmanager.restart_options import restart_strategy

DEFAULT_JOB_NAME = "Penstock Streaming Job"


def assemble(
    program: Program, values: Mapping[str, str], name: str | None, job_id: str | None = None
) -> Job:
    """Check everything that can be checked without running, and put the job together."""
    options.check_keys(values)
    given_id = job_id or options.JOB_ID.read(values)
    job_id = given_id or uuid.uuid4().hex
    # There is one mode: what counts is that no other was asked for.
    options.RUNTIME_MODE.read(values)
    chaining = options.OPERATOR_CHAINING.read(values)
    graph = build_job_graph(program.stream_graph(), name or DEFAULT_JOB_NAME, chaining)
    checkpoints = checkpoint_settings(values)
    return Job(
        job_id,
        build_execution_graph(graph),
        _runtime(values, checkpoints),
        checkpoints,
        _store(values, checkpoints, job_id),
        restart_strategy(values, checkpoints.interval_ms is not None),
        Timeouts(heartbeat=options.HEARTBEAT_TIMEOUT.read(values)),
        options.RECOVERY_PATH.read(values),
        options.CLAIM_MODE.read(values) == "CLAIM",
        options.SAVEPOINT_DIRECTORY.read(values),
        options.IGNORE_UNCLAIMED.read(values),
        given_id is not None,
    )


def _store(
    values: Mapping[str, str], checkpoints: CheckpointSettings, job_id: str
) -> CheckpointStore | None:
    if checkpoints.interval_ms is None and options.RECOVERY_PATH.read(values) is None:
        return None
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
    )
