"""From a program and its configuration to a job that can be submitted."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from penstock.checkpoint.coordinator import CheckpointMode, CheckpointSettings
from penstock.checkpoint.store import MEMORY, CheckpointStore
from penstock.common import config_options as options
from penstock.common.settings import RuntimeSettings
from penstock.datastream.program import Program
from penstock.errors import ConfigurationError
from penstock.graph.execution_graph import build_execution_graph
from penstock.graph.job_graph import build_job_graph
from penstock.jobmanager.job import Job, Timeouts
from penstock.jobmanager.restart import FixedDelayRestart, NoRestart, RestartStrategy

DEFAULT_JOB_NAME = "Penstock Streaming Job"


def assemble(
    program: Program, values: Mapping[str, str], name: str | None, job_id: str | None = None
) -> Job:
    """Check everything that can be checked without running, and put the job together."""
    job_id = job_id or uuid.uuid4().hex
    options.check_keys(values)
    # There is one mode: what counts is that no other was asked for.
    options.RUNTIME_MODE.read(values)
    chaining = options.OPERATOR_CHAINING.read(values)
    graph = build_job_graph(program.stream_graph(), name or DEFAULT_JOB_NAME, chaining)
    checkpoints = _checkpoints(values)
    return Job(
        job_id,
        build_execution_graph(graph),
        _runtime(values, checkpoints),
        checkpoints,
        _store(values, checkpoints, job_id),
        _restart(values, checkpoints),
        Timeouts(heartbeat=options.HEARTBEAT_TIMEOUT.read(values)),
    )


def _checkpoints(values: Mapping[str, str]) -> CheckpointSettings:
    interval = options.CHECKPOINT_INTERVAL.read(values)
    if interval is not None and interval < 10:
        raise ConfigurationError(
            f"{options.CHECKPOINT_INTERVAL.key}: {interval} ms is shorter than the minimum of 10 ms"
        )
    return CheckpointSettings(
        interval,
        CheckpointMode(options.CHECKPOINT_MODE.read(values)),
        options.CHECKPOINT_TIMEOUT.read(values),
        max(1, options.CHECKPOINTS_RETAINED.read(values)),
    )


def _store(
    values: Mapping[str, str], checkpoints: CheckpointSettings, job_id: str
) -> CheckpointStore | None:
    if checkpoints.interval_ms is None:
        return None
    return CheckpointStore(options.CHECKPOINT_DIRECTORY.read(values) or MEMORY, job_id)


def _runtime(values: Mapping[str, str], checkpoints: CheckpointSettings) -> RuntimeSettings:
    return RuntimeSettings(
        exactly_once=checkpoints.mode is CheckpointMode.EXACTLY_ONCE,
        object_reuse=options.OBJECT_REUSE.read(values),
        buffer_timeout_ms=options.BUFFER_TIMEOUT.read(values),
        heartbeat_interval_ms=options.HEARTBEAT_INTERVAL.read(values),
        redact_records=options.REDACT_RECORDS.read(values),
        incremental=options.CHECKPOINT_INCREMENTAL.read(values),
    )


def _restart(values: Mapping[str, str], checkpoints: CheckpointSettings) -> RestartStrategy:
    kind = options.RESTART_STRATEGY.read(values)
    if kind is None and checkpoints.interval_ms is not None:
        # With checkpoints on, a job goes on after a failure unless told otherwise.
        return FixedDelayRestart(2**31, options.RESTART_DELAY.read(values))
    if kind == "fixed-delay":
        delay = options.RESTART_DELAY.read(values)
        return FixedDelayRestart(options.RESTART_ATTEMPTS.read(values), delay)
    return NoRestart()
