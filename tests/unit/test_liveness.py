"""Signs of life: silence is noticed, a lost tail is noticed, and a slow slot is neither."""

from __future__ import annotations

import pytest

from penstock.jobmanager.liveness import POLLS_TO_BE_SURE, Liveness
from penstock.network.messages import Heartbeat, credits_of

CHANNEL = (0, 0, 1)
CREDITS = credits_of(CHANNEL)


@pytest.fixture
def liveness():
    """Slot 0 sends to slot 1, which answers with credits."""
    made = Liveness(1000, 500, {CHANNEL: 1, CREDITS: 0})
    made.heard(0, 0)
    made.heard(1, 0)
    return made


def sender(sent, polls=0):
    return Heartbeat(1, 0, polls, sent={CHANNEL: sent})


def receiver(received, polls):
    return Heartbeat(1, 1, polls, received={CHANNEL: received})


# --- silence ----------------------------------------------------------------------------------


def test_a_slot_is_silent_after_the_timeout(liveness):
    assert liveness.silent(999) is None
    liveness.heard(1, 900)
    assert liveness.silent(1000) == 0
    liveness.heard(0, 1000)
    assert liveness.silent(1500) is None
    assert liveness.silent(1900) == 1


def test_a_heartbeat_is_a_sign_of_life(liveness):
    liveness.heartbeat(sender(0), 900)
    liveness.heartbeat(receiver(0, 0), 900)
    assert liveness.silent(1899) is None
    assert liveness.silent(1900) is not None


def test_it_says_when_to_look_again(liveness):
    assert liveness.next_check_ms() == 1000
    liveness.heard(0, 300)
    assert liveness.next_check_ms() == 1000
    liveness.heard(1, 400)
    assert liveness.next_check_ms() == 1300
    assert Liveness(1000, 500, {}).next_check_ms() is None


def test_the_last_heartbeat_of_each_slot_is_kept(liveness):
    liveness.heartbeat(sender(1), 0)
    liveness.heartbeat(sender(2), 10)
    assert liveness.latest() == {0: sender(2)}


# --- lost tails -------------------------------------------------------------------------------


def test_what_arrives_is_not_lost(liveness):
    liveness.heartbeat(receiver(0, 0), 0)
    for turn in range(1, 20):
        assert liveness.heartbeat(sender(turn), turn * 100) is None
        assert liveness.heartbeat(receiver(turn, turn * 10), turn * 100) is None


def test_a_tail_that_never_arrives_is_lost(liveness):
    liveness.heartbeat(receiver(0, 0), 0)
    assert liveness.heartbeat(sender(5), 100) is None
    assert liveness.heartbeat(receiver(4, 10), 300) is None, "it may still be under way"
    assert liveness.heartbeat(receiver(4, 20), 599) is None
    assert liveness.heartbeat(receiver(4, 30), 600) == CHANNEL


def test_a_receiver_that_does_not_look_has_lost_nothing(liveness):
    """Its loop is in user code: the frames wait in its socket."""
    liveness.heartbeat(receiver(0, 7), 0)
    liveness.heartbeat(sender(5), 100)
    for now in range(200, 100_000, 1000):
        assert liveness.heartbeat(receiver(0, 7), now) is None
    assert liveness.heartbeat(receiver(0, 7 + POLLS_TO_BE_SURE - 1), 100_000) is None
    assert liveness.heartbeat(receiver(0, 7 + POLLS_TO_BE_SURE), 100_000) == CHANNEL


def test_progress_while_more_is_sent_is_not_a_loss(liveness):
    """The sender is always ahead; what counts is what it had sent a while ago."""
    liveness.heartbeat(receiver(0, 0), 0)
    for turn in range(1, 50):
        assert liveness.heartbeat(sender(turn * 10), turn * 300) is None
        assert liveness.heartbeat(receiver(turn * 10 - 5, turn * 100), turn * 300) is None


def test_lost_credits_are_noticed_too(liveness):
    liveness.heartbeat(Heartbeat(1, 0, 0, received={CREDITS: 0}), 0)
    liveness.heartbeat(Heartbeat(1, 1, 0, sent={CREDITS: 4}), 0)
    assert liveness.heartbeat(Heartbeat(1, 0, 50, received={CREDITS: 2}), 100) is None
    assert liveness.heartbeat(Heartbeat(1, 0, 90, received={CREDITS: 2}), 500) == CREDITS


def test_a_channel_that_recovers_starts_anew(liveness):
    liveness.heartbeat(receiver(0, 0), 0)
    liveness.heartbeat(sender(5), 0)
    assert liveness.heartbeat(receiver(5, 10), 499) is None
    liveness.heartbeat(sender(6), 500)
    assert liveness.heartbeat(receiver(5, 20), 900) is None
    assert liveness.heartbeat(receiver(5, 30), 1000) == CHANNEL
