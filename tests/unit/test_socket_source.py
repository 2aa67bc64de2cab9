"""Text from a socket: a real server on loopback, and a reader as a slot has it."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from patience import PATIENCE, until

from penstock.connectors import socket_source
from penstock.connectors.source import EnumeratorContext, ReaderContext
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ProgramError, RecordError, SourceError


class Server:
    """Accepts connections one after another and sends each what it is given."""

    def __init__(self, *payloads, hold=False):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._payloads = payloads
        self.release = threading.Event()
        if not hold:
            self.release.set()
        self.sent = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        for payload in self._payloads:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed before anybody came
                return
            with connection:
                for start in range(0, len(payload), 4096):
                    try:
                        connection.sendall(payload[start : start + 4096])
                    except OSError:
                        return
                    self.sent += 1
                self.release.wait(PATIENCE)
        self._listener.close()

    def close(self):
        self.release.set()
        self._listener.close()


@pytest.fixture
def serve():
    servers = []

    def start(*payloads, **kwargs):
        servers.append(Server(*payloads, **kwargs))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def connect(monkeypatch):
    monkeypatch.setattr(socket_source, "RETRY_SECONDS", 0.01)
    readers = []

    def start(port, *arguments, restored=None, **kwargs):
        source = socket_source.SocketTextSource("127.0.0.1", port, *arguments, **kwargs)
        woken = threading.Event()
        reader = source.create_reader(ReaderContext(0, 1, None, woken.set))
        reader.woken = woken
        reader.open()
        enumerator = source.create_enumerator(EnumeratorContext(1), None)
        reader.add_splits(enumerator.next_splits(0) if restored is None else restored)
        readers.append(reader)
        return reader

    yield start
    for reader in readers:
        reader.close()


def drain(reader, limit=1000):
    """All records to the end, polling when woken only, as a slot does."""
    records, deadline = [], time.monotonic() + 20
    while time.monotonic() < deadline:
        reader.woken.clear()
        while batch := reader.poll(limit):
            assert len(batch) <= limit
            records += batch
        if batch is None:
            return records
        assert reader.woken.wait(PATIENCE), "nobody woke the slot"
    raise AssertionError("it does not end")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.parametrize(
    ("payload", "delimiter", "records"),
    [
        (b"", "\n", []),
        (b"a\nb\n", "\n", ["a", "b"]),
        (b"a\r\n\nb", "\n", ["a", "", "b"]),
        ("ü|€".encode(), "|", ["ü", "€"]),
        (b"a||b|c||", "||", ["a", "b|c"]),
    ],
)
def test_records_stand_between_delimiters(serve, connect, payload, delimiter, records):
    reader = connect(serve(payload).port, delimiter)
    assert drain(reader) == records
    assert reader.snapshot() == []


def test_many_records_in_order_through_a_small_queue(serve, connect):
    expected = [f"record {n}" for n in range(200_000)]
    reader = connect(serve("\n".join(expected).encode()).port)
    assert drain(reader, 777) == expected


def test_a_reader_that_is_not_polled_holds_the_server_back(serve, connect):
    payload = b"x" * 99 + b"\n"
    server = serve(payload * 1_000_000, hold=True)
    reader = connect(server.port)
    before = -1
    while server.sent != before:
        before = server.sent
        time.sleep(0.3)
    assert server.sent * 4096 < 50_000_000, "all of it was taken in"
    assert reader.poll(10) == ["x" * 99] * 10


def test_what_is_open_stays_open_in_a_checkpoint(serve, connect):
    server = serve(b"a\n", b"b\n", hold=True)
    reader = connect(server.port)
    reader.woken.wait(PATIENCE)
    assert reader.poll(10) == ["a"]
    splits = reader.snapshot()
    assert splits and reader.poll(10) == []
    reader.close()
    server.release.set()
    assert drain(connect(server.port, restored=splits)) == ["b"]


def test_it_connects_again_as_often_as_allowed(serve, connect):
    server = serve(b"a\n", b"b\n", b"c\n", b"d\n")
    assert drain(connect(server.port, "\n", 2)) == ["a", "b", "c"]


def test_it_waits_for_a_server_as_often_as_allowed(connect, serve):
    port = free_port()
    reader = connect(port, "\n", -1)
    time.sleep(0.05)
    with socket.create_server(("127.0.0.1", port)) as listener:
        connection, _ = listener.accept()
        connection.sendall(b"here\n")
        assert reader.woken.wait(PATIENCE)
        assert reader.poll(10) == ["here"]
        connection.close()


@pytest.mark.parametrize("max_retry", [0, 2])
def test_a_refused_connection_is_one_line(connect, max_retry):
    port = free_port()
    reader = connect(port, "\n", max_retry)
    with pytest.raises(SourceError) as caught:
        drain(reader)
    message = f"socket 127.0.0.1:{port}: cannot connect: Connection refused"
    assert caught.value.message == message


def test_a_host_that_is_not_there_is_named():
    source = socket_source.SocketTextSource("no-such-host.invalid", 9)
    woken = threading.Event()
    reader = source.create_reader(ReaderContext(0, 1, None, woken.set))
    reader.woken = woken
    reader.add_splits(["socket"])
    with pytest.raises(SourceError, match=r"socket no-such-host.invalid:9: cannot connect: \w+"):
        drain(reader)


def test_bytes_that_are_no_text_are_named(serve, connect):
    reader = connect(serve(b"fine\n\xff\xfe" + b"x" * 500 + b"\n").port)
    with pytest.raises(RecordError, match=r"127.0.0.1:\d+, record 2: it is not UTF-8.*\.\.\.$"):
        drain(reader)


def test_a_record_without_an_end_is_an_error(serve, connect, monkeypatch):
    monkeypatch.setattr(socket_source, "LONGEST_RECORD", 1000)
    reader = connect(serve(b"x" * 5000).port)
    with pytest.raises(SourceError, match=r"no delimiter in .* bytes"):
        drain(reader)


def test_closing_does_not_wait_for_the_server(serve, connect):
    reader = connect(serve(b"a\n", hold=True).port)
    reader.woken.wait(PATIENCE)
    reader.close()
    until(lambda: not reader._receiver.is_alive(), "the thread has ended")


@pytest.mark.parametrize(
    "arguments",
    [("h", 0), ("h", 65536), ("h", 9, ""), ("h", 9, "\n", -2)],
)
def test_what_cannot_be_is_refused_where_the_program_is_written(arguments):
    with pytest.raises(ProgramError):
        StreamExecutionEnvironment().socket_text_stream(*arguments)


def test_a_program_reads_a_socket(serve, cluster):
    port = serve(b"b 1\na 2\nb 3\n").port

    def build(env):
        env.set_parallelism(2)
        words = env.socket_text_stream("127.0.0.1", port).map(lambda line: line.split())
        words.add_sink(print)

    running = cluster(build, share_functions=True)
    deadline = time.monotonic() + 10
    while not running.ended() and time.monotonic() < deadline:
        running.turn()
        assert not running.failures()
    assert running.ended()
