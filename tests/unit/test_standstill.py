"""A loop that stands still is reported, with the place where it stands."""

from __future__ import annotations

import threading

import pytest
from patience import until

from penstock.common.listening import Listening
from penstock.network.control_server import ControlServer
from penstock.network.standstill import Standstill


class Clock:
    def __init__(self):
        self.now = 0

    def monotonic_ms(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def standstill(clock):
    return Standstill("the loop", 5000, clock)


def reports(caplog):
    return [record.getMessage() for record in caplog.records]


def test_a_loop_that_rests_or_works_a_little_is_not_reported(standstill, clock, caplog):
    standstill.look()
    standstill.works()
    clock.now = 4999
    standstill.look()
    standstill.rests()
    clock.now = 1_000_000
    standstill.look()
    assert reports(caplog) == []


def test_a_long_stop_is_reported_ever_more_rarely(standstill, clock, caplog):
    standstill.works()
    for clock.now in range(0, 40_001, 1000):
        standstill.look()
    assert [text.split(";")[0] for text in reports(caplog)] == [
        f"the loop has stood still for {seconds} s" for seconds in (5, 10, 20, 40)
    ]


def test_the_next_stop_is_reported_anew(standstill, clock, caplog):
    for _ in range(2):
        standstill.works()
        clock.now += 5000
        standstill.look()
        standstill.rests()
    assert len(reports(caplog)) == 2


def wait_for_ever(gate):
    gate.wait()


def test_a_jobmaster_that_stands_still_is_reported_with_its_place(caplog):
    server = ControlServer(Listening("127.0.0.1"), "the JobMaster of job 'counts'", 10)
    server.start()
    gate = threading.Event()

    def master():
        server.wait(0)
        wait_for_ever(gate)

    thread = threading.Thread(target=master, daemon=True)
    thread.start()
    try:
        [report, *_] = until(lambda: reports(caplog), "the report")
        assert report.startswith("the JobMaster of job 'counts' has stood still for")
        assert "in wait_for_ever" in report
    finally:
        gate.set()
        thread.join()
        server.close()
