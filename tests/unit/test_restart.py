"""Restart strategies: how long to wait after which failure, or to give up."""

from __future__ import annotations

import pytest

from penstock.jobmanager.restart import FixedDelayRestart, NoRestart


def test_without_restarts_the_first_failure_is_the_last():
    assert NoRestart().delay_ms(1) is None


@pytest.mark.parametrize("attempts", [0, 1, 3])
def test_a_fixed_delay_gives_up_after_its_attempts(attempts):
    strategy = FixedDelayRestart(attempts, 250)
    delays = [strategy.delay_ms(failures) for failures in range(1, 6)]
    assert delays == [250] * attempts + [None] * (5 - attempts)


def test_a_delay_of_nothing_is_a_delay():
    assert FixedDelayRestart(1, 0).delay_ms(1) == 0
