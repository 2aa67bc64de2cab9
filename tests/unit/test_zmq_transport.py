"""The network between slots, on the loopback interface."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import patience
import pytest
import zmq

from penstock.common.listening import Listening
from penstock.errors import ChannelBrokenError
from penstock.network import zmq_transport
from penstock.network.curve import new_keys, secure_client
from penstock.network.frames import Frame, FrameKind
from penstock.network.local_endpoint import LocalEndpoint
from penstock.network.wakeup import Wakeup
from penstock.network.zmq_transport import ZmqTransport

PATIENCE = 10.0


@pytest.fixture
def make():
    """Opens transports and closes them at the end."""
    opened = []

    def open_transport(keys):
        wakeup = Wakeup()
        transport = ZmqTransport(Listening("127.0.0.1"), *keys, wakeup)
        opened.append((transport, wakeup))
        return transport

    yield open_transport
    for transport, wakeup in opened:
        if not transport._context.closed:
            transport.close()
        wakeup.close()


def from_elsewhere(transport):
    """The address that a slot on another machine uses."""
    return transport.address.partition(" or ")[0]


@pytest.fixture(params=["one machine", "two machines"])
def pair(make, request):
    """Two transports with the keys of one attempt, connected in both directions."""
    keys = new_keys()
    left, right = make(keys), make(keys)
    local = request.param == "one machine"
    left.connect({1: right.address if local else from_elsewhere(right)})
    right.connect({0: left.address if local else from_elsewhere(left)})
    return left, right


def frame(sequence, payload=b""):
    return Frame(FrameKind.DATA, 1, 0, 0, 1, sequence, payload)


def receive(transport, count):
    """`count` frames, or fewer if they take too long."""
    frames, deadline = [], time.monotonic() + PATIENCE
    while len(frames) < count and time.monotonic() < deadline:
        transport.wait(50)
        frames.extend(transport.receive())
    return frames


def until(condition, transport):
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        transport.wait(20)
        transport.receive()
    return condition()


def test_frames_arrive_in_order(pair):
    left, right = pair
    sent = [frame(n, b"%d" % n) for n in range(500)]
    for each in sent:
        left.send(1, each)
    assert receive(right, 500) == sent


def test_a_sender_is_never_full_whatever_the_receiver_does(make):
    """Credits bound what is under way; ZeroMQ must not refuse a frame before they do."""
    transport = make(new_keys())
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        transport.connect({1: f"tcp://127.0.0.1:{nobody.getsockname()[1]}"})
        for sequence in range(3_000):
            transport.send(1, frame(sequence))


def test_both_directions_are_independent(pair):
    left, right = pair
    left.send(1, frame(1, b"to right"))
    right.send(0, frame(2, b"to left"))
    assert receive(right, 1) == [frame(1, b"to right")]
    assert receive(left, 1) == [frame(2, b"to left")]


def test_a_big_payload_arrives_whole(pair):
    left, right = pair
    payload = bytes(range(256)) * (16 << 10)
    left.send(1, frame(1, payload))
    left.send(1, frame(2, b"small"))
    [big, small] = receive(right, 2)
    assert big.payload == payload
    assert small == frame(2, b"small")


def test_sending_does_not_wait_for_the_receiver(pair):
    left, right = pair
    payload = bytes(100_000)
    for n in range(200):
        left.send(1, frame(n, payload))
    assert [each.sequence for each in receive(right, 200)] == list(range(200))


def test_receive_never_blocks(pair):
    assert pair[0].receive() == []


def test_waiting_ends_when_time_is_up_and_when_woken(make):
    transport = make(new_keys())
    started = time.monotonic()
    transport.wait(30)
    assert time.monotonic() - started > 0.02
    threading.Timer(0.05, transport._wakeup.wake).start()
    transport.wait(3_600_000)


def test_garbage_from_a_stranger_is_counted_and_harms_nobody(pair):
    left, right = pair
    host, port = from_elsewhere(right).removeprefix("tcp://").split(":")
    with socket.create_connection((host, int(port))) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(200))
        assert until(lambda: right.strangers() > 0, right)
    left.send(1, frame(1, b"still here"))
    assert receive(right, 1) == [frame(1, b"still here")]


@pytest.mark.parametrize("count", [1, 5])
def test_strangers_are_counted_and_members_are_not(make, count):
    keys = new_keys()
    transport = make(keys)
    host, port = from_elsewhere(transport).removeprefix("tcp://").split(":")
    members = [make(keys) for _ in range(3)]
    for n in range(max(count, len(members))):
        if n < count:
            with socket.create_connection((host, int(port))) as stranger:
                stranger.sendall(b"\xff" + bytes(8) + b"\x7f" + b"nonsense" * 20)
        if n < len(members):
            members[n].connect({0: from_elsewhere(transport)})
            members[n].send(0, frame(n))
    assert len(receive(transport, 3)) == 3
    assert until(lambda: transport.strangers() == count, transport)
    transport.wait(50)
    assert transport.strangers() == count


def test_a_client_with_another_key_is_refused(make):
    server_keys = new_keys()
    transport = make(server_keys)
    context = zmq.Context()
    stranger = context.socket(zmq.PUSH)
    stranger.linger = 0
    try:
        secure_client(stranger, *new_keys(), server_keys[0])
        stranger.connect(from_elsewhere(transport))
        with contextlib.suppress(zmq.Again):
            # It may be refused before it can say anything.
            stranger.send_multipart([b"head", b"payload"], zmq.NOBLOCK)
        assert until(lambda: transport.strangers() > 0, transport)
        assert transport._guard.refused > 0
        assert transport.receive() == []
    finally:
        stranger.close()
        context.term()


def test_a_client_without_a_key_is_refused(make):
    transport = make(new_keys())
    context = zmq.Context()
    stranger = context.socket(zmq.PUSH)
    stranger.linger = 0
    try:
        stranger.connect(from_elsewhere(transport))
        with contextlib.suppress(zmq.Again):
            # It may be refused before it can say anything.
            stranger.send_multipart([b"head", b"payload"], zmq.NOBLOCK)
        assert until(lambda: transport.strangers() > 0, transport)
        assert transport.receive() == []
    finally:
        stranger.close()
        context.term()


def test_slots_of_different_attempts_do_not_connect(make):
    old, new = make(new_keys()), make(new_keys())
    old.connect({1: from_elsewhere(new)})
    old.send(1, frame(1, b"from the past"))
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        new.wait(20)
        assert new.receive() == []


def test_a_peer_that_disappears_breaks_the_channel(pair):
    left, right = pair
    left.send(1, frame(1))
    assert receive(right, 1)
    right.close()

    def wait():
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            left.wait(50)

    with pytest.raises(ChannelBrokenError, match="the connection to slot 1 was lost"):
        wait()


class Relay:
    """Stands between two slots, and can stop to carry anything without a word."""

    def __init__(self, address):
        host, port = address.removeprefix("tcp://").split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cut = threading.Event()
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._sockets += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self.cut.is_set():
                    target.sendall(data)

    def close(self):
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def relayed(make, monkeypatch):
    """A slot, its peer on another machine, and the relay between them."""
    monkeypatch.setattr(zmq_transport, "_PING_MS", 200)
    monkeypatch.setattr(zmq_transport, "_DEAD_AFTER_MS", 3_000)
    keys = new_keys()
    left, right = make(keys), make(keys)
    relay = Relay(from_elsewhere(right))
    left.connect({1: relay.address})
    yield left, right, relay
    relay.close()


def test_a_link_that_died_without_a_word_is_noticed(relayed):
    left, right, relay = relayed
    left.send(1, frame(1))
    assert patience.until(lambda: right.wait(20) or right.receive(), "the first frame")
    relay.cut.set()
    with pytest.raises(ChannelBrokenError, match="the connection to slot 1 was lost"):
        patience.until(lambda: left.wait(50), "that the link is dead")


def test_only_senders_ask_whether_their_link_is_alive(make):
    """A receiver would take a large frame on a slow link, whose end has not come, for a death."""
    keys = new_keys()
    left, right = make(keys), make(keys)
    left.connect({1: from_elsewhere(right)})
    assert left._push[1].heartbeat_ivl > 0
    assert all(pull.heartbeat_ivl == 0 for pull in left._pulls)
    # While one large frame is under way nobody can ask, and the system watches the connection.
    assert left._push[1].tcp_keepalive == 1
    assert left._push[1].tcp_maxrt > 0


def test_a_frame_that_cannot_be_read_breaks_the_channel(make):
    keys = new_keys()
    transport = make(keys)
    context = zmq.Context()
    member = context.socket(zmq.PUSH)
    member.linger = 0
    try:
        secure_client(member, *keys, keys[0])
        member.connect(from_elsewhere(transport))
        member.send_multipart([b"junk", b"payload"])
        with pytest.raises(ChannelBrokenError, match="a frame from a peer cannot be read"):
            receive(transport, 1)
    finally:
        member.close()
        context.term()


def test_slots_of_one_machine_use_a_socket_file_that_is_gone_afterwards(make):
    keys = new_keys()
    left, right = make(keys), make(keys)
    path = Path(right.address.partition(" or ipc://")[2])
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    left.connect({1: right.address})
    left.send(1, frame(1))
    assert receive(right, 1)
    assert left._push[1].last_endpoint == f"ipc://{path}".encode()
    right.close()
    assert not path.parent.exists()


def test_a_socket_file_that_is_not_there_is_on_another_machine(make, tmp_path):
    keys = new_keys()
    left, right = make(keys), make(keys)
    for slot, path in enumerate((tmp_path / "nothing", tmp_path)):
        left.connect({slot: f"{from_elsewhere(right)} or ipc://{path}"})
        left.send(slot, frame(1))
        assert receive(right, 1)


def test_without_a_place_for_the_file_there_is_tcp(make, monkeypatch, tmp_path):
    deep = tmp_path / ("x" * 90)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    transport = make(new_keys())
    assert "ipc" not in transport.address


def test_what_killed_processes_left_is_swept_when_it_is_old(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen(["true"])
    dead.wait()
    old, young, living = (
        tmp_path / f"penstock-slot-{pid}-{name}"
        for pid, name in ((dead.pid, "old"), (dead.pid, "young"), (os.getpid(), "living"))
    )
    for folder in (old, young, living):
        folder.mkdir()
    for folder in (old, living):
        os.utime(folder, (1, 1))
    endpoint = LocalEndpoint()
    assert not old.exists() and young.exists() and living.exists()
    endpoint.close()


def test_a_closed_endpoint_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    endpoint = LocalEndpoint()
    # There is a folder also where the path in it is too long for a socket, as here it may be.
    assert len(list(tmp_path.iterdir())) == 1
    endpoint.close()
    assert list(tmp_path.iterdir()) == []


def test_where_no_folder_can_be_made_there_is_no_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    endpoint = LocalEndpoint()
    assert endpoint.path is None
    endpoint.close()
