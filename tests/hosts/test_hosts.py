"""The hosts themselves: apart from each other, to be cut off, and gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from clusters import one_at_a_time
from hosts import Host, Network
from patience import until

pytestmark = [pytest.mark.full, one_at_a_time]

_KILLED = """
import sys
sys.path[:0] = sys.argv[1:]
from hosts import network
with network() as net:
    host = net.host("one")
    print(host.pid, host.folder.parent, flush=True)
    import time; time.sleep(1000)
"""


def test_hosts_are_apart_from_each_other(net: Network) -> None:
    one, two = net.host("one"), net.host("two", interfaces=2)
    assert one.run("hostname").strip() == "one"
    assert one.run("getent", "hosts", "two").split() == [two.address, "two.net", "two"]
    one.run("sh", "-c", f"touch /tmp/own {net.shared}/common")
    assert "own" not in two.run("ls", "/tmp") and "common" in two.run("ls", str(net.shared))
    assert not Path("/tmp/own").exists()
    assert two.second_address in two.run("ip", "address")
    assert "one0" not in subprocess.run(["ip", "link"], capture_output=True, text=True).stdout


def test_hosts_hear_each_other_until_they_are_cut_off(net: Network) -> None:
    one, two = net.host("one"), net.host("two")
    until(lambda: _reaches(one, two), "one reaches two")
    net.cut(two)
    assert not _reaches(one, two)
    net.join(two)
    until(lambda: _reaches(one, two), "one reaches two again")
    net.lose(two, one)
    assert not _reaches(one, two), "no answer comes back"
    net.lose_no_more(two, one)
    until(lambda: _reaches(one, two), "answers come back")


def test_nothing_is_left_of_a_run_that_was_killed(namespaces: None, tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", _KILLED, *filter(None, sys.path)], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    pid, folder = run.stdout.readline().split()
    holder = psutil.Process(int(pid))
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close()
    until(lambda: not holder.is_running(), "the host's processes are gone")
    from hosts import network

    with network():
        assert not Path(folder).exists(), "the next run clears up"


_CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=2)
except ConnectionRefusedError:
    print("reached")
except OSError as error:
    print(error)
"""


def _reaches(one: Host, two: Host) -> bool:
    """Nobody listens at that port of `two`: its refusal is an answer."""
    return one.run(sys.executable, "-c", _CONNECT, two.address).strip() == "reached"
