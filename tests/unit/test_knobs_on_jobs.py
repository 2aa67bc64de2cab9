"""What every knob of checkpointing does to a running job: its history and its files tell."""

from __future__ import annotations

import itertools
import time

import pytest
from patience import PATIENCE

from penstock.checkpoint.coordinator import CheckpointCoordinator
from penstock.checkpoint.history import CheckpointStatus
from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime.gate import InputGate
from penstock.testing import local_environment
from penstock.testing.faults import FaultRates

BELOW = "execution.checkpointing."
KEYS = 40


def with_settings(**settings):
    values = {BELOW + key.replace("_", "-"): value for key, value in settings.items()}
    return Configuration.from_dict({BELOW + "interval": "20 ms", **values})


def endless(env):
    """A job with keyed state that runs until it is cancelled; few keys change at a time."""
    env._configuration.set_string(BELOW + "dir", f"{env.storage}/checkpoints")
    source = NumberSequenceSource(0, 10**12)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    keyed = stream.rebalance().key_by(lambda n: n if n < KEYS else 0)
    keyed.reduce(lambda a, b: (a + b) % 1000).filter(lambda _: False).print()
    return env.execute_async("endless")


def pictures(job, enough):
    """Pictures of the job until `enough` of one; the last one is it."""
    while True:
        now = job.progress()
        yield now
        if enough(now):
            return
        assert not job.get_job_execution_result().done(), "it ended before that"
        time.sleep(0.002)


def after(job, completed):
    """The job when so many checkpoints are complete."""
    return list(pictures(job, lambda now: now.completed_checkpoints >= completed))[-1]


def slowed(env, milliseconds):
    """From now on storage stands still for so long after every piece; until the result is empty."""
    create, simulation, slow = env.filesystem.create, env.simulation, [True]

    def slowly(path, *parts):
        if slow and "/shared/" in path:
            until = simulation.clock.now + milliseconds
            simulation.stalled |= {("storage", key): until for key in simulation.processes}
        return create(path, *parts)

    env.filesystem.create = slowly
    return slow


def ended(job):
    job.cancel().result(PATIENCE)


def completed(progress):
    return [r for r in progress.checkpoints if r.status is CheckpointStatus.COMPLETED]


@pytest.mark.parametrize("interval", [20, 300])
def test_checkpoints_begin_an_interval_apart(interval):
    settings = with_settings(interval=f"{interval} ms")
    with local_environment(seed=1, configuration=settings) as env:
        job = endless(env)
        records = after(job, 8).checkpoints
        began = [record.triggered_ms for record in records]
        gaps = [b - a for a, b in itertools.pairwise(began)]
        assert min(gaps) >= interval
        ended(job)


def test_a_pause_is_kept_between_two_checkpoints():
    settings = with_settings(interval="10 ms", min_pause="400 ms")
    with local_environment(seed=1, configuration=settings) as env:
        job = endless(env)
        records = completed(after(job, 6))
        for earlier, later in itertools.pairwise(records):
            assert later.triggered_ms >= earlier.triggered_ms + earlier.duration_ms + 400
        ended(job)


@pytest.mark.parametrize("most", [1, 3])
def test_so_many_are_under_way_at_a_time(most, monkeypatch):
    under_way = []
    original = CheckpointCoordinator.trigger

    def trigger(self, *args):
        triggered = original(self, *args)
        under_way.append(len(self.pending))
        return triggered

    monkeypatch.setattr(CheckpointCoordinator, "trigger", trigger)
    settings = with_settings(interval="10 ms", max_concurrent_checkpoints=str(most))
    with local_environment(seed=2, configuration=settings) as env:
        job = endless(env)
        slowed(env, 30)
        after(job, 20)
        ended(job)
    assert max(under_way) == most


def test_a_checkpoint_that_takes_too_long_is_given_up_and_the_job_goes_on():
    """Storage that is slow: it takes longer than a checkpoint may."""
    settings = with_settings(timeout="2 s")
    with local_environment(seed=3, configuration=settings) as env:
        job = endless(env)
        after(job, 2)
        slow = slowed(env, 5_000)
        now = list(pictures(job, lambda now: now.failed_checkpoints >= 3))[-1]
        reasons = [record.reason for record in now.checkpoints if record.reason]
        assert any("it expired after 2 s, waiting for " in reason for reason in reasons)
        slow.clear()
        later = after(job, now.completed_checkpoints + 3)
        assert later.restarts == 0
        ended(job)


@pytest.mark.parametrize("retained", [1, 4])
def test_so_many_checkpoints_are_kept(retained):
    settings = with_settings(num_retained=str(retained))
    settings.set_string(BELOW + "externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION")
    with local_environment(seed=1, configuration=settings) as env:
        job = endless(env)
        after(job, 8)
        ended(job)
        store = CheckpointStore(f"{env.storage}/checkpoints", job.get_job_id())
        assert len(store.whole()) == retained


@pytest.mark.parametrize("incremental", ["true", "false"])
def test_checkpoints_hold_what_changed_or_everything(incremental):
    with local_environment(seed=1, configuration=with_settings(incremental=incremental)) as env:
        job = endless(env)
        records = completed(after(job, 12))[-5:]
        wrote = [record.incremental_size for record in records]
        holds = [record.state_size for record in records]
        if incremental == "true":
            assert all(w < h / 2 for w, h in zip(wrote, holds, strict=True))
        else:
            assert wrote == holds
        ended(job)


@pytest.mark.parametrize("mode", ["EXACTLY_ONCE", "AT_LEAST_ONCE"])
def test_the_mode_says_whether_channels_wait(mode, monkeypatch):
    made = []
    original = InputGate.__init__

    def init(self, channels, exactly_once, *more):
        made.append(exactly_once)
        original(self, channels, exactly_once, *more)

    monkeypatch.setattr(InputGate, "__init__", init)
    with local_environment(seed=1, configuration=with_settings(mode=mode)) as env:
        job = endless(env)
        after(job, 2)
        ended(job)
    assert set(made) == {mode == "EXACTLY_ONCE"}


def test_orphans_go_after_the_grace_period():
    settings = with_settings(**{"orphans.grace_period": "3 s"})
    faults = FaultRates(expiry=0.02, budget=20)
    with local_environment(seed=4, faults=faults, configuration=settings) as env:
        job = endless(env)
        store = env.simulation.job.store
        root = f"/checkpoints/{store.job_id}/shared/"
        orphan = f"{root}{job.progress().attempt}-0-0-orphan"
        env.filesystem.files[orphan] = b"left behind"
        began = env.simulation.clock.now
        list(pictures(job, lambda now: orphan not in env.filesystem.files))
        assert env.simulation.clock.now - began >= 3_000
        ended(job)


class Holding(KeyedProcessFunction):
    """Its state cannot be written between two numbers."""

    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("held", Types.PICKLED_BYTE_ARRAY())
        self.held = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        self.held.update((lambda: value) if 500 <= value < 2_500 else value)
        return []


def test_a_value_that_cannot_be_written_costs_checkpoints_and_nothing_else():
    settings = with_settings(interval="10 ms")
    with local_environment(seed=6, configuration=settings) as env:
        env._configuration.set_string(BELOW + "dir", f"{env.storage}/checkpoints")
        source = NumberSequenceSource(0, 10**12)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        stream.key_by(lambda n: "k").process(Holding()).name("holder").print()
        job = env.execute_async("holding")
        now = list(pictures(job, lambda now: now.failed_checkpoints >= 3))[-1]
        reasons = [record.reason for record in now.checkpoints if record.reason]
        named = "operator 'holder': state 'held' of key 'k' cannot be written: "
        assert all(named in reason for reason in reasons)
        newest, damaged = env.simulation.job.store.newest()
        assert newest is not None and damaged == [], "the job keeps its last checkpoint"
        later = after(job, now.completed_checkpoints + 3)
        assert later.restarts == 0, "and takes the next when it can be written again"
        ended(job)
