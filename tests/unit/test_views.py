"""ExecutionConfig and CheckpointConfig: views on one Configuration; old names warn and work."""

from __future__ import annotations

import inspect
import warnings

import pytest

from penstock.common import Configuration, ExecutionConfig, RestartStrategies
from penstock.datastream import (
    CheckpointConfig,
    CheckpointingMode,
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from penstock.errors import (
    ConfigurationError,
    InvalidParallelismError,
    JavaOnlyError,
    ProgramError,
)
from penstock.jobmanager.restart import (
    ExponentialDelayRestart,
    FailureRateRestart,
    FixedDelayRestart,
    NoRestart,
)


def env_with(**values):
    return StreamExecutionEnvironment(Configuration.from_dict(values))


def job_of(env):
    env.from_collection([1]).print()
    return env._assemble(None)


# --- ExecutionConfig --------------------------------------------------------------------------


def test_a_view_and_the_environment_say_the_same():
    env = env_with(**{"parallelism.default": 2})
    view = env.get_config()
    assert view.get_parallelism() == 2
    env.set_parallelism(3).set_max_parallelism(64)
    assert (view.get_parallelism(), view.get_max_parallelism()) == (3, 64)
    view.set_parallelism(4).set_max_parallelism(32)
    assert (env.get_parallelism(), env.get_max_parallelism()) == (4, 32)
    assert job_of(env).graph.job.vertices[0].nodes[0].max_parallelism == 32


def test_object_reuse_reaches_the_job():
    env = env_with()
    assert not env.get_config().is_object_reuse_enabled()
    env.get_config().enable_object_reuse()
    assert job_of(env).settings.object_reuse
    assert not env.get_config().disable_object_reuse().is_object_reuse_enabled()


def test_a_parallelism_can_be_left_to_the_default():
    view = env_with(**{"parallelism.default": 3}).get_config()
    assert view.set_parallelism(ExecutionConfig.PARALLELISM_UNKNOWN).get_parallelism() == 3
    assert view.set_parallelism(ExecutionConfig.PARALLELISM_DEFAULT).get_parallelism() == 1
    for nonsense in (0, -3):
        with pytest.raises(InvalidParallelismError):
            view.set_parallelism(nonsense)


JAVA_ONLY = sorted(
    name
    for name, member in inspect.getmembers(ExecutionConfig, inspect.isfunction)
    if (member.__doc__ or "").startswith("Not here")
)


@pytest.mark.parametrize("name", JAVA_ONLY)
def test_what_belongs_to_java_says_what_to_use_instead(name):
    with pytest.raises(JavaOnlyError, match=rf"^{name}\(\) means nothing without Java: \w+"):
        getattr(env_with().get_config(), name)()


def test_there_are_names_of_java():
    assert len(JAVA_ONLY) == 14
    with pytest.raises(JavaOnlyError, match="use from_source"):
        env_with().create_input(None)


# --- CheckpointConfig -------------------------------------------------------------------------


def test_checkpoint_settings_reach_the_job():
    env = env_with()
    view = env.get_checkpoint_config()
    assert not view.is_checkpointing_enabled() and view.get_checkpoint_interval() == -1
    view.set_checkpoint_interval(1000).set_checkpoint_timeout(5000)
    view.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    assert view.is_checkpointing_enabled()
    assert env.get_checkpoint_interval() == 1000
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert env.get_checkpointing_consistency_mode() is CheckpointingMode.AT_LEAST_ONCE
    settings = job_of(env).checkpoints
    assert (settings.interval_ms, settings.timeout_ms) == (1000, 5000)
    assert settings.mode is CheckpointingMode.AT_LEAST_ONCE


def test_checkpoint_settings_are_read_from_the_configuration():
    view = env_with(
        **{"execution.checkpointing.interval": "10 s", "execution.checkpointing.timeout": "1 min"}
    ).get_checkpoint_config()
    assert view.get_checkpoint_interval() == 10_000
    assert view.get_checkpoint_timeout() == 60_000
    assert view.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE


def test_a_view_forgets_other_spellings_of_the_key_that_it_sets():
    configuration = Configuration.from_dict({"state.checkpoints.dir": "/old"})
    with pytest.warns(DeprecationWarning, match="set_checkpoint_storage"):
        CheckpointConfig(configuration).set_checkpoint_storage(JobManagerCheckpointStorage())
    assert configuration.to_dict() == {}


@pytest.mark.parametrize(
    ("method", "argument"),
    [
        ("set_checkpoint_storage_dir", "memory:///dir"),
        ("set_checkpoint_storage", FileSystemCheckpointStorage("memory:///dir")),
    ],
)
def test_the_old_ways_to_name_a_directory_work_and_warn(method, argument):
    env = env_with().enable_checkpointing(1000)
    with pytest.warns(DeprecationWarning, match=r"execution\.checkpointing\.dir") as warned:
        getattr(env.get_checkpoint_config(), method)(argument)
    assert warned[0].filename == __file__
    assert env._configuration.to_dict()["execution.checkpointing.dir"] == "memory:///dir"
    assert job_of(env).store.directory == "memory:///dir"


@pytest.mark.parametrize(
    "make",
    [
        lambda: JobManagerCheckpointStorage("/somewhere"),
        lambda: FileSystemCheckpointStorage("/somewhere", 1),
        lambda: FileSystemCheckpointStorage("/somewhere", write_buffer_size=1),
        lambda: CustomCheckpointStorage(None),
    ],
)
def test_storages_refuse_what_they_would_have_to_ignore(make):
    with pytest.raises(ProgramError):
        make()


# --- names of older programs ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (RestartStrategies.no_restart(), NoRestart()),
        (RestartStrategies.fixed_delay_restart(3, 250), FixedDelayRestart(3, 250)),
        (RestartStrategies.fall_back_restart(), ExponentialDelayRestart()),
        (RestartStrategies.failure_rate_restart(3, 9000, 250), FailureRateRestart(3, 9000, 250)),
        (
            RestartStrategies.exponential_delay_restart(10, 500, 2.0, 9000, 0.3),
            ExponentialDelayRestart(10, 500, 2.0, 0.3, 9000),
        ),
    ],
    ids=lambda value: value.get_description() if hasattr(value, "get_description") else "",
)
def test_a_restart_strategy_takes_the_place_of_any_other(strategy, expected):
    env = env_with(
        **{
            "restart-strategy": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 9,
            "restart-strategy.fixed-delay.delay": "9 s",
        }
    ).enable_checkpointing(1000)
    with pytest.warns(DeprecationWarning, match=r"restart-strategy\.type"):
        env.set_restart_strategy(strategy)
    assert job_of(env).restart == expected


def test_a_fixed_delay_can_be_read_back():
    strategy = RestartStrategies.FixedDelayRestartStrategyConfiguration(3, 250)
    assert strategy.get_restart_attempts() == 3
    assert strategy.get_delay_between_attempts_interval() == 250


def test_a_failure_rate_can_be_read_back():
    strategy = RestartStrategies.FailureRateRestartStrategyConfiguration(3, 9000, 250)
    assert strategy.get_max_failure_rate() == 3
    assert strategy.get_failure_interval() == 9000
    assert strategy.get_delay_between_attempts_interval() == 250


def test_a_time_characteristic_is_accepted_where_it_holds():
    env = env_with()
    for characteristic in (TimeCharacteristic.EventTime, TimeCharacteristic.ProcessingTime):
        with pytest.warns(DeprecationWarning, match="which time is meant"):
            env.set_stream_time_characteristic(characteristic)
    with (
        pytest.warns(DeprecationWarning, match="which time is meant"),
        pytest.raises(ProgramError, match="no ingestion time"),
    ):
        env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)


def test_the_only_mode_is_streaming():
    env = env_with().set_runtime_mode(RuntimeExecutionMode.STREAMING)
    job_of(env)
    for mode in (RuntimeExecutionMode.BATCH, RuntimeExecutionMode.AUTOMATIC):
        with pytest.raises(ConfigurationError, match="expected STREAMING"):
            env.set_runtime_mode(mode)
    with pytest.raises(ConfigurationError, match=r"execution\.runtime-mode: 'batch'"):
        job_of(env_with(**{"execution.runtime-mode": "batch"}))


def test_a_buffer_timeout_without_end_reads_back_as_it_was_set():
    assert env_with().set_buffer_timeout(-1).get_buffer_timeout() == -1
    assert env_with().set_buffer_timeout(7).get_buffer_timeout() == 7


def test_what_is_not_deprecated_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env_with().enable_checkpointing(1000).get_checkpoint_config().set_checkpoint_timeout(1000)
