"""The control connection: in order, alive while the loop is busy, closed to strangers."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
import zmq
from patience import PATIENCE
from zmq.utils.monitor import recv_monitor_message

from penstock.common.clock import SystemClock
from penstock.common.listening import Listening
from penstock.network import control
from penstock.network.control import ControlClient
from penstock.network.control_server import ControlServer
from penstock.network.curve import new_keys
from penstock.network.messages import Heartbeat, Leave, Register, Running
from penstock.network.wakeup import Wakeup

HOUR_MS = 3_600_000


@pytest.fixture
def server():
    server = ControlServer(Listening("127.0.0.1"), "the JobMaster", HOUR_MS)
    server.start()
    yield server
    server.close()


@pytest.fixture
def exits(monkeypatch):
    """The exit codes of slots that end themselves; their control threads end in their place."""
    codes = []

    def leave(code):
        codes.append(code)
        raise SystemExit

    monkeypatch.setattr(control.os, "_exit", leave)
    return codes


@pytest.fixture
def connect(server, exits):
    """Starts clients and closes them at the end, before `exits` and `clock` are as usual again."""
    clients = []

    def start(identity, keys=None, interval_ms=HOUR_MS, timeout_ms=HOUR_MS):
        keys = keys or (server.client_public, server.client_secret, server.public)
        wakeup = Wakeup()
        client = ControlClient(server.address, identity, keys, wakeup)
        client.start(lambda: Heartbeat(1, identity[1]), interval_ms, timeout_ms)
        clients.append((client, wakeup))
        return client

    yield start
    for client, wakeup in clients:
        client.close()
        wakeup.close()


@pytest.fixture
def clock(monkeypatch):
    """The clock of both ends, in seconds, set by hand."""
    hands = SimpleNamespace(now=0.0)
    monkeypatch.setattr(control, "time", SimpleNamespace(monotonic=lambda: hands.now))
    return hands


ENDS_ITSELF = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
)
"""For a test in which a control thread ends as `exits` says."""


def until(condition):
    """What `condition` returns when it is true, or at last."""
    deadline = time.monotonic() + PATIENCE
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return result


def serve(server, done):
    """What arrives at the server until `done` says that it is enough."""
    arrived, deadline = [], time.monotonic() + PATIENCE
    while not done(arrived) and time.monotonic() < deadline:
        arrived.extend((launch, message) for launch, message, _ in server.wait(50))
    return arrived


def go_round(server, client):
    """Let the control thread of a slot go once through all that it does, and begin anew."""
    for n in range(2):
        client.send(Running(n, 0))
        serve(server, no_beats)


def no_beats(arrived):
    return [entry for entry in arrived if not isinstance(entry[1], Heartbeat)]


def test_messages_of_a_slot_arrive_in_order_with_their_launch(server, connect):
    client = connect((3, 0))
    for n in range(200):
        client.send(Running(n, 0))
    arrived = no_beats(serve(server, lambda found: len(no_beats(found)) >= 200))
    assert arrived == [(3, Running(n, 0)) for n in range(200)]


def test_messages_to_a_slot_arrive_in_order_and_at_that_slot(server, connect):
    clients = {slot: connect((1, slot)) for slot in range(2)}
    for slot, client in clients.items():
        client.send(Register(1, slot, "host", slot))
    serve(server, lambda found: len(no_beats(found)) >= 2)
    for n in range(100):
        for slot in clients:
            server.send(1, slot, Running(n, slot))
    for slot, client in clients.items():
        arrived, deadline = [], time.monotonic() + PATIENCE
        while len(arrived) < 100 and time.monotonic() < deadline:
            arrived.extend(client.received())
            time.sleep(0.01)
        assert arrived == [Running(n, slot) for n in range(100)]


def test_functions_travel_by_value(server, connect):
    client = connect((1, 0))
    secret = 42
    client.send(lambda: secret)
    [(_, function)] = no_beats(serve(server, no_beats))
    assert function() == 42


def test_heartbeats_come_by_themselves(server, connect):
    """Also while the slot's loop is in user code: nobody calls `received`."""
    connect((1, 5), interval_ms=20)
    beats = serve(server, lambda found: len(found) >= 5)
    assert all(beat == (1, Heartbeat(1, 5)) for beat in beats)
    assert len(beats) >= 5


def test_there_is_one_heartbeat_in_an_interval(server, connect):
    client = connect((1, 0))
    arrived = []
    for n in range(20):
        client.send(Running(n, 0))
        arrived += serve(server, no_beats)
    assert len(no_beats(arrived)) == 20
    assert [message for _, message in arrived if isinstance(message, Heartbeat)] == [
        Heartbeat(1, 0)
    ]


def test_a_slot_whose_heartbeats_are_answered_stays(server, connect, exits, clock):
    client = connect((1, 0), interval_ms=10, timeout_ms=300)
    for _ in range(60):
        assert serve(server, bool) == [(1, Heartbeat(1, 0))]
        clock.now += 0.01
    assert exits == []
    # The answers are signs of life, not messages.
    assert client.received() == []


@ENDS_ITSELF
def test_a_slot_that_hears_nothing_ends_itself(server, connect, exits):
    connect((1, 0), interval_ms=20, timeout_ms=50)
    server.close()
    assert until(lambda: exits) == [1]


def test_heartbeats_are_answered_whatever_the_jobmaster_does(server, connect, exits, clock):
    """Nobody calls `wait`, and the slot stays."""
    connect((1, 0), interval_ms=10, timeout_ms=300)
    for _ in range(60):
        assert until(lambda: server.heard().slots), "it is heard of in time"
        clock.now += 0.02
    assert exits == []
    assert len(server.wait(0)) >= 60, "the messages have been waiting"


def test_it_is_known_when_a_slot_was_heard_of(server, connect):
    client = connect((4, 2))
    before = SystemClock().monotonic_ms()
    client.send(Running(1, 2))
    # The message is not taken: what tells of the slot does not wait for that.
    [(who, at_ms)] = until(lambda: server.heard().slots).items()
    assert who == (4, 2) and before <= at_ms <= SystemClock().monotonic_ms()
    client.send(Running(2, 2))
    assert until(lambda: server.heard().slots)
    arrivals = until(lambda: [a for a in server.wait(50) if a.message == Running(1, 2)])
    assert arrivals[0].launch == 4 and arrivals[0].at_ms >= before
    assert server.heard().slots == {}, "once"
    assert until(lambda: server.heard().listened_ms > at_ms)


# --- leaving ----------------------------------------------------------------------------------


def told_to_leave(server, client, leave):
    """Send the message, and wait until the control thread has it."""
    client.send(Register(1, 0, "host", 1))
    serve(server, no_beats)
    server.send(1, 0, leave)
    assert until(lambda: not client._incoming.empty())


def test_a_slot_that_leaves_still_has_heartbeats(server, connect):
    client = connect((1, 0), interval_ms=20)
    told_to_leave(server, client, Leave(grace_ms=HOUR_MS))
    # Those that were under way at that time are not counted.
    go_round(server, client)
    assert len(serve(server, lambda found: len(found) >= 5)) >= 5


@ENDS_ITSELF
def test_a_loop_that_does_not_take_the_message_is_ended_after_the_notice(server, connect, exits):
    """By the time itself: there is no heartbeat and no message by which it would wake up."""
    client = connect((1, 0))
    told_to_leave(server, client, Leave(grace_ms=HOUR_MS, notice_ms=100))
    assert until(lambda: exits) == [1]


@ENDS_ITSELF
def test_a_loop_that_takes_the_message_has_all_of_the_grace(server, connect, exits, clock):
    client, leave = connect((1, 0)), Leave(grace_ms=1_000_000, notice_ms=10_000)
    told_to_leave(server, client, leave)
    assert client.received() == [leave]
    clock.now = 999
    go_round(server, client)
    assert exits == []
    clock.now = 1_001
    client.send(Running(1, 0))
    assert until(lambda: exits) == [1]


# --- strangers, ends --------------------------------------------------------------------------


def test_a_message_to_nobody_is_lost_quietly(server):
    server.send(1, 99, Running(1, 99))
    assert server.wait(10) == []


def test_waking_the_server_ends_its_wait(server):
    waiting = threading.Thread(target=server.wait, args=(HOUR_MS,), daemon=True)
    waiting.start()
    server.wake()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


def test_a_client_with_another_key_is_refused(server, connect):
    stranger = connect((1, 0), keys=(*new_keys(), server.public))
    stranger.send(Register(1, 0, "elsewhere", 1))
    deadline = time.monotonic() + PATIENCE
    while not server._guard.refused and time.monotonic() < deadline:
        assert server.wait(50) == []
    assert server._guard.refused
    assert server.wait(200) == []


def test_a_client_that_trusts_another_server_does_not_connect(exits):
    server = ControlServer(Listening("127.0.0.1"), "the JobMaster", HOUR_MS)
    # Before its thread has the socket.
    failed = server._router.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
    server.start()
    wakeup = Wakeup()
    keys = (server.client_public, server.client_secret, new_keys()[0])
    client = ControlClient(server.address, (1, 0), keys, wakeup)
    client.start(lambda: Heartbeat(1, 0), HOUR_MS, HOUR_MS)
    client.send(Register(1, 0, "host", 1))
    assert until(lambda: server.wait(20) or failed.poll(0)), "it tries to"
    assert recv_monitor_message(failed)["event"] == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    assert server.wait(20) == []
    client.close()
    wakeup.close()
    failed.close(0)
    server.close()


def test_closing_sends_what_is_queued(server, connect, monkeypatch):
    """Also what was queued when the control thread had just sent all there was."""
    drain, sent, go_on = control._drain, threading.Event(), threading.Event()

    def held(socket):
        sent.set()
        go_on.wait(PATIENCE)
        return drain(socket)

    monkeypatch.setattr(control, "_drain", held)
    client = connect((1, 0))
    client.send(Running(-1, 0))
    serve(server, no_beats)
    sent.wait(PATIENCE)
    for n in range(50):
        client.send(Running(n, 0))
    closing = threading.Thread(target=client.close)
    closing.start()
    until(client._stop.is_set)
    go_on.set()
    arrived = no_beats(serve(server, lambda found: len(no_beats(found)) >= 50))
    closing.join()
    assert [message for _, message in arrived] == [Running(n, 0) for n in range(50)]


def test_a_slot_launched_again_takes_its_place(server, connect):
    old = connect((1, 0))
    old.send(Running(1, 0))
    serve(server, no_beats)
    new = connect((1, 0))
    new.send(Running(2, 0))
    serve(server, no_beats)
    server.send(1, 0, "for the new one")
    assert until(new.received) == ["for the new one"]
    assert old.received() == []
