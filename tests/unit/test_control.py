"""The control connection: in order, alive while the loop is busy, closed to strangers."""

from __future__ import annotations

import threading
import time

import pytest

from penstock.network.control import ControlClient, ControlServer
from penstock.network.curve import new_keys
from penstock.network.messages import Heartbeat, Register, Running
from penstock.network.wakeup import Wakeup

PATIENCE = 10.0
HOUR_MS = 3_600_000
"""A client that hears nothing for its timeout ends the process: never let that happen here."""


@pytest.fixture
def server():
    server = ControlServer("127.0.0.1")
    yield server
    server.close()


@pytest.fixture
def connect(server):
    """Starts clients and closes them at the end."""
    clients = []

    def start(identity, keys=None, interval_ms=HOUR_MS):
        keys = keys or (server.client_public, server.client_secret, server.public)
        wakeup = Wakeup()
        client = ControlClient(server.address, identity, keys, wakeup)
        client.start(lambda: Heartbeat(1, identity[1], 0), interval_ms, HOUR_MS)
        clients.append((client, wakeup))
        return client

    yield start
    for client, wakeup in clients:
        client.close()
        wakeup.close()


def serve(server, done):
    """What arrives at the server until `done` says that it is enough."""
    arrived, deadline = [], time.monotonic() + PATIENCE
    while not done(arrived) and time.monotonic() < deadline:
        arrived.extend(server.wait(50))
    return arrived


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


def test_heartbeats_come_by_themselves_and_are_answered(server, connect):
    client = connect((1, 5), interval_ms=20)
    beats = serve(server, lambda found: len(found) >= 5)
    assert all(beat == (1, Heartbeat(1, 5, 0)) for beat in beats)
    assert len(beats) >= 5
    # The answers are signs of life, not messages.
    assert client.received() == []


def test_heartbeats_do_not_wait_for_a_busy_loop(server, connect):
    connect((1, 0), interval_ms=20)
    # Nobody calls `received`: the slot's loop is in user code.
    assert len(serve(server, lambda found: len(found) >= 10)) >= 10


def test_a_message_to_nobody_is_lost_quietly(server):
    server.send(1, 99, Running(1, 99))
    assert server.wait(10) == []


def test_waking_the_server_ends_its_wait(server):
    threading.Timer(0.05, server.wake).start()
    started = time.monotonic()
    server.wait(20_000)
    assert time.monotonic() - started < 5


def test_a_client_with_another_key_is_refused(server, connect):
    stranger = connect((1, 0), keys=(*new_keys(), server.public))
    stranger.send(Register(1, 0, "elsewhere", 1))
    deadline = time.monotonic() + PATIENCE
    while not server._guard.refused and time.monotonic() < deadline:
        assert server.wait(50) == []
    assert server._guard.refused
    assert server.wait(200) == []


def test_a_client_that_trusts_another_server_does_not_connect(server, connect):
    client = connect((1, 0), keys=(server.client_public, server.client_secret, new_keys()[0]))
    client.send(Register(1, 0, "host", 1))
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline:
        assert server.wait(20) == []


def test_closing_sends_what_is_queued(server, connect):
    client = connect((1, 0))
    client.send(Running(1, 0))
    serve(server, no_beats)
    for n in range(50):
        client.send(Running(n, 0))
    closing = threading.Thread(target=client.close)
    closing.start()
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
    deadline = time.monotonic() + PATIENCE
    arrived = []
    while not arrived and time.monotonic() < deadline:
        arrived = new.received()
        time.sleep(0.01)
    assert arrived == ["for the new one"]
    assert old.received() == []
