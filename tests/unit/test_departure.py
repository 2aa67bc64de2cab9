"""How long a slot that was told to leave has for it."""

from __future__ import annotations

from penstock.network.departure import Departure
from penstock.network.messages import Leave


def test_a_process_that_is_wanted_stays():
    departure = Departure()
    assert departure.due is None
    departure.noticed()
    assert departure.due is None


def test_a_loop_that_does_not_take_the_message_is_not_waited_for():
    departure = Departure()
    departure.told(Leave(grace_ms=1000, notice_ms=500), now=7.0)
    assert departure.due == 7.5


def test_a_loop_that_has_taken_it_has_all_of_the_grace():
    departure = Departure()
    departure.told(Leave(grace_ms=1000, notice_ms=500), now=7.0)
    departure.noticed()
    assert departure.due == 8.0


def test_without_a_word_about_it_the_grace_is_for_both():
    departure = Departure()
    departure.told(Leave(grace_ms=30_000), now=7.0)
    assert departure.due == 37.0
    departure.noticed()
    assert departure.due == 37.0


def test_a_loop_that_is_closing_is_not_stuck_when_it_is_told_again():
    departure = Departure()
    departure.told(Leave(grace_ms=30_000), now=7.0)
    departure.noticed()
    departure.told(Leave(grace_ms=1000, notice_ms=500), now=9.0)
    assert departure.due == 10.0
