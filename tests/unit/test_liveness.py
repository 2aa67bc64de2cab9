"""Signs of life: silence is noticed."""

from __future__ import annotations

import pytest

from penstock.jobmanager.liveness import Liveness
from penstock.network.messages import Heartbeat


@pytest.fixture
def liveness():
    made = Liveness(1000)
    made.heard(0, 0)
    made.heard(1, 0)
    return made


def test_a_slot_is_silent_after_the_timeout(liveness):
    assert liveness.silent(999) is None
    liveness.heard(1, 900)
    assert liveness.silent(1000) == 0
    liveness.heard(0, 1000)
    assert liveness.silent(1500) is None
    assert liveness.silent(1900) == 1


def test_a_heartbeat_is_a_sign_of_life(liveness):
    liveness.heartbeat(Heartbeat(1, 0), 900)
    liveness.heartbeat(Heartbeat(1, 1), 900)
    assert liveness.silent(1899) is None
    assert liveness.silent(1900) is not None


def test_it_says_when_to_look_again(liveness):
    assert liveness.next_check_ms() == 1000
    liveness.heard(0, 300)
    assert liveness.next_check_ms() == 1000
    liveness.heard(1, 400)
    assert liveness.next_check_ms() == 1300
    assert Liveness(1000).next_check_ms() is None


def test_the_last_heartbeat_of_each_slot_is_kept(liveness):
    liveness.heartbeat(Heartbeat(1, 0, strangers=1), 0)
    liveness.heartbeat(Heartbeat(1, 0, strangers=2), 10)
    assert liveness.latest() == {0: Heartbeat(1, 0, strangers=2)}
