"""Asynchronous calls: order, capacity, time-outs, further tries, and what a checkpoint holds."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.datastream import AsyncDataStream, AsyncFunction, KeyedProcessFunction
from penstock.datastream.async_retry_strategies import (
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
    NoRetryStrategy,
)
from penstock.errors import JobFailedError, ProgramError
from penstock.runtime.async_queue import AsyncQueue
from penstock.testing import FaultRates, OperatorHarness, local_environment

SECOND = Time.seconds(1)


class Double(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0)
        return [value, value * 10]


# --- the queue ----------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["record", "mark"]), max_size=12), st.randoms(), st.booleans())
def test_nothing_passes_a_mark_and_ordered_keeps_the_order(elements, random, ordered):
    queue = AsyncQueue(ordered)
    calls = []
    for number, kind in enumerate(elements):
        if kind == "mark":
            queue.control(number)
        else:
            calls.append(queue.add(number, None))
    random.shuffle(calls)
    found = []
    while calls or queue.has_ready():
        if calls and (random.random() < 0.5 or not queue.has_ready()):
            calls.pop().end([])
        while queue.has_ready() and random.random() < 0.7:
            taken = queue.take()
            found.extend([value for _, _, value in taken] if isinstance(taken, list) else [taken])
    assert sorted(found) == list(range(len(elements))) and queue.size == 0
    if ordered:
        assert found == sorted(found)
    for mark in (n for n, kind in enumerate(elements) if kind == "mark"):
        position = found.index(mark)
        assert all(n < mark for n in found[:position])


def test_what_waits_is_known_in_order():
    queue = AsyncQueue(ordered=True)
    first, second = queue.add("a", 1), queue.add("b", 2)
    queue.control("mark")
    queue.add("c", 3)
    second.end([])
    assert list(queue.waiting()) == [("a", 1), ("b", 2), ("c", 3)]
    first.end([])
    assert queue.take() == [([], 1, "a"), ([], 2, "b")]
    assert list(queue.waiting()) == [("c", 3)]


# --- programs -----------------------------------------------------------------------------------


def run(function, values, wait=AsyncDataStream.ordered_wait, **options):
    with local_environment(seed=1) as env:
        env.set_parallelism(1)
        stream = wait(env.from_collection(values), function, SECOND, **options)
        return list(stream.execute_and_collect())


@pytest.mark.parametrize("wait", [AsyncDataStream.ordered_wait, AsyncDataStream.unordered_wait])
@pytest.mark.parametrize("capacity", [1, 3, 100])
def test_every_record_is_asked_about_once(wait, capacity):
    found = run(Double(), range(50), wait, capacity=capacity)
    assert sorted(found) == sorted([n for v in range(50) for n in (v, v * 10)])
    if wait is AsyncDataStream.ordered_wait:
        assert found[::2] == list(range(50))


class Watermarks(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def test_results_have_the_timestamps_of_their_records():
    with local_environment(seed=1) as env:
        env.set_parallelism(1)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda value, _: value + 1000
        )
        stream = env.from_collection([1, 2]).assign_timestamps_and_watermarks(strategy)
        asked = AsyncDataStream.ordered_wait(stream, Double(), Duration.of_seconds(1))
        seen = asked.key_by(lambda v: 0).process(Watermarks())
        assert list(seen.execute_and_collect()) == [(1, 1001), (10, 1001), (2, 1002), (20, 1002)]


class Flaky(AsyncFunction):
    """Fails twice for every record."""

    def open(self, runtime_context):
        self.tries = {}

    async def async_invoke(self, value):
        self.tries[value] = self.tries.get(value, 0) + 1
        if self.tries[value] < 3:
            raise ConnectionError(f"try {self.tries[value]}")
        return [(value, self.tries[value])]


def test_calls_that_fail_are_tried_again():
    with local_environment(seed=1) as env:
        retry = FixedDelayRetryStrategy(2, 1, None, lambda e: isinstance(e, ConnectionError))
        stream = AsyncDataStream.unordered_wait_with_retry(
            env.from_collection("ab"), Flaky(), SECOND, retry
        )
        assert sorted(stream.execute_and_collect()) == [("a", 3), ("b", 3)]


def test_after_the_last_try_the_users_error_is_shown_with_operator_and_record():
    with pytest.raises(JobFailedError) as caught:
        run(Flaky(), ["a"])
    text = str(caught.value.__cause__)
    assert "ConnectionError: try 1" in text and "async_invoke" in text
    assert "operator 'Async Wait'" in text and "record 'a'" in text


class Undecided(AsyncFunction):
    async def async_invoke(self, value):
        self.tries = getattr(self, "tries", 0) + 1
        return [] if self.tries < 4 else [self.tries]


def test_results_that_are_no_answers_are_asked_for_again():
    with local_environment(seed=1) as env:
        retry = ExponentialBackoffDelayRetryStrategy(5, 1, 2, 2.0, lambda r: not r, None)
        stream = AsyncDataStream.ordered_wait_with_retry(
            env.from_collection([0]), Undecided(), SECOND, retry
        )
        assert list(stream.execute_and_collect()) == [4]


def test_backoff_grows_up_to_its_bound():
    retry = ExponentialBackoffDelayRetryStrategy(9, 100, 350, 2, None, None)
    assert [retry.get_backoff_time_millis(n) for n in (1, 2, 3)] == [100, 200, 350]
    assert not NoRetryStrategy().can_retry(1)


class Never(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(3600)


class Fallback(Never):
    def timeout(self, value):
        return [f"no answer for {value}"]


def short(function, values):
    with local_environment(seed=1) as env:
        stream = env.from_collection(values)
        asked = AsyncDataStream.ordered_wait(stream, function, Time.milliseconds(10))
        return list(asked.execute_and_collect())


def test_a_call_that_never_returns_times_out():
    assert short(Fallback(), [1]) == ["no answer for 1"]
    with pytest.raises(JobFailedError) as caught:
        short(Never(), [1])
    assert "did not end in time" in str(caught.value.__cause__)


class Shapeless(AsyncFunction):
    async def async_invoke(self, value):
        return "text"


def test_a_result_that_is_no_list_is_refused():
    with pytest.raises(JobFailedError) as caught:
        run(Shapeless(), [1])
    assert "returned a str where a list is expected" in str(caught.value.__cause__)


def test_a_timeout_that_gives_no_list_is_named():
    class Silent(Never):
        def timeout(self, value):
            return None

    with pytest.raises(JobFailedError, match=r"timeout\(\) returned a NoneType"):
        short(Silent(), [1])


def test_records_under_way_are_in_the_checkpoint_and_are_asked_about_again():
    def build(stream):
        return AsyncDataStream.unordered_wait(stream, Double(), SECOND)

    with OperatorHarness(build) as harness:
        harness.process(1)
        assert sorted(harness.output) == [1, 10]
        steps = [task.stepping for task in harness._slots.subtasks()]
        waiting = next(step._async for step in steps if step._async is not None)
        waiting.queue.add(7, None)
        snapshot = harness.snapshot()
        harness.output.clear()
        harness.restore(snapshot)
        assert sorted(harness.output) == [7, 70]


@pytest.mark.parametrize("unaligned", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_or_doubled_under_faults(seed, unaligned):
    with local_environment(seed=seed, faults=FaultRates(crash=0.01, budget=4)) as env:
        env.set_parallelism(2)
        env.enable_checkpointing(20)
        env.get_checkpoint_config().enable_unaligned_checkpoints(unaligned)
        stream = env.from_collection(range(60)).rebalance()
        asked = AsyncDataStream.unordered_wait(stream, Double(), SECOND, capacity=4)
        found = sorted(asked.execute_and_collect())
    assert found == sorted([n for v in range(60) for n in (v, v * 10)])


class Plain(AsyncFunction):
    def async_invoke(self, value):
        return [value]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": 0}, "capacity must be"),
        ({"function": Plain()}, "async def"),
        ({"function": len}, "AsyncFunction"),
        ({"timeout": Time.seconds(0)}, "must be positive"),
        ({"timeout": 5}, "Time"),
    ],
)
def test_what_cannot_work_is_refused_where_the_program_is_written(options, message):
    with local_environment() as env:
        given_options = {"function": Double(), "timeout": SECOND, **options}
        function, timeout = given_options.pop("function"), given_options.pop("timeout")
        with pytest.raises(ProgramError, match=message):
            AsyncDataStream.ordered_wait(
                env.from_collection([1]), function, timeout, **given_options
            )
