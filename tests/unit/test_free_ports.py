"""Ports for servers of tests."""

from __future__ import annotations

import socket

import pytest

from penstock.testing import ports


def test_a_port_is_handed_out_once_though_nobody_listens_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, marks = range(29_000, 29_008), list[socket.socket]()
    monkeypatch.setattr(ports, "_CHOICE", few)
    monkeypatch.setattr(ports, "_marks", marks)
    given = [port for _ in range(3) for port in ports.free_ports(2)]
    with pytest.raises(OSError, match="fewer than 3 of the ports 29000 to 29008"):
        ports.free_ports(3)
    for mark in marks:
        mark.close()
    assert len(set(given)) == 6
