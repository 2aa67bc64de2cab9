"""Where drivers and slots listen: names, addresses, interfaces, ports."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import zmq

from penstock.common.listening import Listening, parse_ports
from penstock.errors import AddressError
from penstock.network.binding import bind, connect
from penstock.testing.ports import free_ports


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context() as context:
        yield context


def exchange(context: zmq.Context[zmq.Socket[bytes]], listening: Listening) -> str:
    """Send a message to a socket that listens; the address that it told."""
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        address = bind(pull, listening, "some.key")
        connect(push, address)
        push.send(b"hello")
        assert pull.poll(60_000), "the message comes"
        assert pull.recv() == b"hello"
        return address


def test_an_address_is_bound_as_it_is(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    assert exchange(context, Listening("127.0.0.1")).startswith("tcp://127.0.0.1:")


def test_a_name_is_told_and_all_interfaces_are_bound(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    assert exchange(context, Listening("localhost")).startswith("tcp://localhost:")
    assert Listening("localhost").to_bind() == "*"


def test_another_address_than_the_bound_one_is_told(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    """As behind NAT: nobody here has the address that is told."""
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        told = bind(pull, Listening("203.0.113.7", "127.0.0.1"), "some.key")
        host, _, port = told.rpartition(":")
        assert host == "tcp://203.0.113.7"
        connect(push, f"tcp://127.0.0.1:{port}")
        push.send(b"hello")
        assert pull.poll(60_000), "the message comes"


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_address_of_the_newer_protocol(
    context: zmq.Context[zmq.Socket[bytes]], host: str
) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        # Also the refusal is one sentence.
        with pytest.raises(AddressError, match="cannot listen at"):
            exchange(context, Listening(host))
        return
    assert exchange(context, Listening(host)).startswith("tcp://[::1]:")


def test_ports_of_a_range_are_taken_one_after_another(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    [port] = free_ports(1)
    listening = Listening("127.0.0.1", ports=(port, port))
    with context.socket(zmq.PULL) as first, context.socket(zmq.PULL) as second:
        assert bind(first, listening, "some.key") == f"tcp://127.0.0.1:{port}"
        with pytest.raises(AddressError, match=f"no port from {port} to {port} is free.*some.key"):
            bind(second, listening, "some.key")
        wider = Listening("127.0.0.1", ports=(port, port + 20))
        told = bind(second, wider, "some.key")
        assert port < int(told.rpartition(":")[2]) <= port + 20


def test_an_address_of_another_host_is_refused(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    with (
        context.socket(zmq.PULL) as pull,
        pytest.raises(AddressError, match=r"cannot listen at 203\.0\.113\.7: .*bindAddress"),
    ):
        bind(pull, Listening("203.0.113.7"), "some.key")


def test_ports_are_read() -> None:
    assert parse_ports("7000") == (7000, 7000)
    assert parse_ports("7000-7010") == (7000, 7010)
    for wrong in ("", "x", "7010-7000", "0", "70000", "7000-", "-7000"):
        with pytest.raises(ValueError, match="expected"):
            parse_ports(wrong)
