"""Restart strategies: how long to wait after which failure, or to give up."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.jobmanager.restart import (
    ExponentialDelayRestart,
    FailureRateRestart,
    FixedDelayRestart,
    NoRestart,
)


def delays(strategy, times, chance=lambda: 0.5):
    restarts = strategy.begin(chance)
    return [restarts.failed(time) for time in times]


def test_without_restarts_the_first_failure_is_the_last():
    assert delays(NoRestart(), [1]) == [None]


@pytest.mark.parametrize("attempts", [0, 1, 3])
def test_a_fixed_delay_gives_up_after_its_attempts(attempts):
    told = delays(FixedDelayRestart(attempts, 250), range(5))
    assert told == [250] * attempts + [None] * (5 - attempts)


def test_a_delay_of_nothing_is_a_delay():
    assert delays(FixedDelayRestart(1, 0), [1]) == [0]


def test_two_jobs_do_not_share_their_failures():
    strategy = FixedDelayRestart(1, 5)
    assert delays(strategy, [1]) == delays(strategy, [1]) == [5]


# --- failure rate -----------------------------------------------------------------------------


def test_a_failure_rate_counts_what_falls_into_the_interval():
    strategy = FailureRateRestart(failures=2, interval=100, delay=7)
    assert delays(strategy, [0, 50, 100]) == [7, 7, None]
    assert delays(strategy, [0, 50, 101, 151]) == [7, 7, 7, 7]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(0, 4))
def test_a_failure_rate_gives_up_exactly_when_it_is_exceeded(gaps, most):
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    told = delays(FailureRateRestart(most, 100, 7), times)
    for index, now in enumerate(times):
        recent = [time for time in times[: index + 1] if now - time <= 100]
        assert told[index] == (7 if len(recent) <= most else None)


# --- exponential delay ------------------------------------------------------------------------

GROWING = ExponentialDelayRestart(initial=100, longest=1000, multiplier=2.0, jitter=0.0, quiet=5000)


def test_delays_grow_up_to_the_longest():
    assert delays(GROWING, [0] * 6) == [100, 200, 400, 800, 1000, 1000]


def test_a_quiet_time_after_the_restart_makes_the_delay_short_again():
    # The first restart is at 100: quiet until 5100.
    assert delays(GROWING, [0, 5099]) == [100, 200]
    assert delays(GROWING, [0, 5100]) == [100, 100]


def test_it_can_give_up_and_a_quiet_time_counts_anew():
    strategy = ExponentialDelayRestart(100, 1000, 2.0, 0.0, 5000, attempts=2)
    assert delays(strategy, [0, 200, 500]) == [100, 200, None]
    assert delays(strategy, [0, 200, 6000, 6200]) == [100, 200, 100, 200]


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_jitter_stays_within_its_part_and_below_the_longest(seed, jitter):
    strategy = ExponentialDelayRestart(1000, 4000, 2.0, jitter, 10**9)
    told = delays(strategy, [0] * 5, random.Random(seed).random)
    for delay, plain in zip(told, [1000, 2000, 4000, 4000, 4000], strict=True):
        assert plain * (1 - jitter) - 1 <= delay <= min(plain * (1 + jitter) + 1, 4000)


def test_jitter_differs_from_job_to_job():
    strategy = ExponentialDelayRestart()
    told = {tuple(delays(strategy, [0] * 3, random.Random(job).random)) for job in "abc"}
    assert len(told) == 3
