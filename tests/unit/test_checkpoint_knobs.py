"""The knobs of checkpointing: by configuration, by CheckpointConfig, and what they do to a job."""

from __future__ import annotations

import pytest
from patience import PATIENCE

from penstock.checkpoint.history import CheckpointStatus
from penstock.checkpoint.settings import CheckpointSettings, Retention
from penstock.common import Configuration, JobStatus, WatermarkStrategy
from penstock.datastream import CheckpointConfig, ExternalizedCheckpointRetention
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import CheckpointError, ConfigurationError, JobCancelledError, JobFailedError
from penstock.jobmanager.checkpoint_options import checkpoint_settings
from penstock.testing import local_environment
from penstock.testing.faults import FaultRates

BELOW = "execution.checkpointing."


def test_every_key_reaches_the_coordinator():
    values = {
        "interval": "1 s",
        "timeout": "2 s",
        "num-retained": "3",
        "min-pause": "4 s",
        "max-concurrent-checkpoints": "5",
        "tolerable-failed-checkpoints": "6",
        "externalized-checkpoint-retention": "retain-on-cancellation",
        "orphans.grace-period": "7 s",
    }
    settings = checkpoint_settings({BELOW + key: value for key, value in values.items()})
    retention = Retention.RETAIN_ON_CANCELLATION
    assert settings == CheckpointSettings(
        1000, timeout_ms=2000, retained=3, min_pause_ms=4000, max_concurrent=5,
        tolerable_failures=6, retention=retention, orphan_grace_ms=7000,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num-retained", "0"),
        ("max-concurrent-checkpoints", "0"),
        ("timeout", "5 ms"),
        ("orphans.grace-period", "5 ms"),
        ("tolerable-failed-checkpoints", "-2"),
        ("externalized-checkpoint-retention", "perhaps"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_key(key, value):
    with pytest.raises(ConfigurationError, match=BELOW + key):
        checkpoint_settings({BELOW + key: value})


def test_the_config_is_a_view_on_the_keys():
    configuration = Configuration()
    config = CheckpointConfig(configuration)
    assert config.get_tolerable_checkpoint_failure_number() == -1
    assert not config.is_fail_on_checkpointing_errors()
    config.set_min_pause_between_checkpoints(70).set_max_concurrent_checkpoints(3)
    config.set_fail_on_checkpointing_errors(True)
    assert config.get_min_pause_between_checkpoints() == 70
    assert config.get_max_concurrent_checkpoints() == 3
    assert config.is_fail_on_checkpointing_errors()
    config.set_fail_on_checkpointing_errors(False)
    assert config.get_tolerable_checkpoint_failure_number() == -1
    config.set_tolerable_checkpoint_failure_number(4)
    assert config.get_tolerable_checkpoint_failure_number() == 4
    assert config.is_externalized_checkpoints_enabled()
    none = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    config.set_externalized_checkpoint_retention(none)
    assert not config.is_externalized_checkpoints_enabled()
    with pytest.warns(DeprecationWarning, match="set_externalized_checkpoint_retention"):
        config.enable_externalized_checkpoints(
            ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        )
    settings = checkpoint_settings(configuration.to_dict())
    assert (settings.min_pause_ms, settings.max_concurrent) == (70, 3)
    assert settings.tolerable_failures == 4
    assert settings.retention is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION


# --- on a job ---------------------------------------------------------------------------------


def endless(env, name="endless"):
    """A job that runs until it is cancelled, with keyed state."""
    source = NumberSequenceSource(0, 10**12)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    stream.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).filter(lambda _: False).print()
    return env.execute_async(name)


def ended(job):
    job.cancel().result(PATIENCE)
    with pytest.raises(JobCancelledError):
        job.get_job_execution_result().result(PATIENCE)


def with_checkpoints(**settings):
    values = {BELOW + key.replace("_", "-"): value for key, value in settings.items()}
    return Configuration.from_dict({BELOW + "interval": "1 h", **values})


def test_a_checkpoint_can_be_asked_for_and_is_told_of():
    with local_environment(configuration=with_checkpoints()) as env:
        env.get_checkpoint_config()
        job = endless(env)
        while job.get_job_status().result() is not JobStatus.RUNNING or not job.progress().metrics:
            pass
        asked = [job.trigger_checkpoint() for _ in range(3)]
        ids = [future.result(PATIENCE) for future in asked]
        assert sorted(set(ids)) in ([1, 2], [1, 2, 3]), "one under way, the others share the next"
        while len(job.get_checkpoint_history()) < len(set(ids)):
            pass
        ended(job)
        record = job.get_checkpoint_history()[-1]
        assert record.status is CheckpointStatus.COMPLETED and record.manual
        assert len(record.subtasks) == len(env.simulation.job.graph.subtasks())
        assert record.state_size >= record.incremental_size > 0
        with pytest.raises(CheckpointError, match="the job is CANCELED"):
            job.trigger_checkpoint().result(PATIENCE)


def test_without_checkpoints_none_can_be_asked_for():
    with local_environment() as env:
        job = endless(env)
        while not job.progress().metrics:
            pass
        with pytest.raises(CheckpointError, match="set an interval first"):
            job.trigger_checkpoint().result(PATIENCE)
        ended(job)


@pytest.mark.parametrize("tolerable", ["0", "2"])
def test_more_failures_than_tolerable_fail_the_job(tolerable):
    settings = with_checkpoints(tolerable_failed_checkpoints=tolerable)
    settings.set_string(BELOW + "interval", "10 ms")
    settings.set_string("restart-strategy", "none")
    faults = FaultRates(expiry=0.5, budget=10**6)
    with local_environment(configuration=settings, faults=faults) as env:
        job = endless(env)
        with pytest.raises(JobFailedError, match="tolerable-failed-checkpoints") as failed:
            job.get_job_execution_result().result(PATIENCE)
        assert isinstance(failed.value.__cause__, CheckpointError)
        assert job.progress().failed_checkpoints > int(tolerable)


@pytest.mark.parametrize("retention", Retention)
@pytest.mark.parametrize("end", ["cancel", "fail", "finish"])
def test_retention_decides_what_is_left(retention, end):
    settings = with_checkpoints(externalized_checkpoint_retention=retention.name)
    settings.set_string(BELOW + "interval", "10 ms")
    settings.set_string("restart-strategy", "none")
    with local_environment(configuration=settings) as env:
        env.get_checkpoint_config()
        env._configuration.set_string(BELOW + "dir", f"{env.storage}/checkpoints")
        files = env.filesystem.files
        if end == "finish":
            list(env.from_collection(range(2000)).map(lambda n: n).execute_and_collect())
        elif end == "cancel":
            job = endless(env)
            while job.progress().completed_checkpoints < 2:
                pass
            ended(job)
        else:
            job = env.from_collection(range(3000)).map(lambda n: 1 // (n - 2900))
            job.filter(lambda _: False).print()
            with pytest.raises(JobFailedError):
                env.execute()
        kept = [path for path in files if path.endswith("/_metadata")]
        expected = {"cancel": "RETAIN_ON", "fail": "_ON_"}.get(end)
        assert bool(kept) == (expected is not None and expected in retention.name)
        if not kept:
            assert files == {}, "nothing of it is left"
