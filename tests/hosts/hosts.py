"""Hosts on one machine: each has an address, a name, processes and a `/tmp` of its own.

    with network() as net:
        one, two = net.host("one"), net.host("two")
        one.run("ping", two.address)
        net.cut(two)              # as if its cable were pulled
        net.join(two)

A host is a set of Linux namespaces that one process holds, and that process dies with the test's.
The kernel then kills whatever runs in the host and removes its interfaces, also after a kill -9 of
the test. Nothing is set up outside of the namespaces: they have no way out of the machine, and the
bridge between them is in one too. Only folders of a run that was killed stay; the next run removes
them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
from patience import until

from penstock.testing.children import die_with_parent

_PREFIX = "penstock-hosts-"
_NOWHERE = "02:00:00:00:00:01"
"""No interface has this link address."""

_SET_UP = """
set -e
hostname "$1"
mount --bind "$2/hosts" /etc/hosts
own=$2/tmp
shift 2
for path in "$@"; do
    mkdir -p "$own${path#/tmp}"
    mount --bind "$path" "$own${path#/tmp}"
done
mount --rbind "$own" /tmp
touch /tmp/.up
# The first process of a host gets its orphans; who ignores this signal leaves no zombies.
exec env --ignore-signal=CHLD sleep infinity
"""


def missing_tools() -> list[str]:
    """The programs that hosts need and this machine does not have."""
    tools = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
    return [f"{tool} ({package})" for tool, package in tools.items() if not shutil.which(tool)]


def refusal() -> str | None:
    """Why this process may not make namespaces; None: it may."""
    command = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return tried.stderr.strip() or "unshare failed" if tried.returncode else None


class Host:
    """A host. Made by `Network.host`."""

    def __init__(self, name: str, number: int, folder: Path, shared: Path) -> None:
        self.name = name
        self.number = number
        self.address = f"10.99.0.{number}"
        self.second_address = f"10.99.1.{number}"
        """On an interface that leads to no other host's services."""
        self.folder = folder
        own = folder / "tmp"
        own.mkdir(parents=True)
        (folder / "hosts").touch()
        self._holder = subprocess.Popen(
            [
                *("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc"),
                *("--kill-child=SIGKILL", "sh", "-c", _SET_UP, "host", name, str(folder)),
                *_needed_below_tmp(shared),
            ],
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        until(lambda: self._came_up(own), f"host {name} is up")
        [first] = psutil.Process(self._holder.pid).children()
        self.pid = first.pid
        """The process that holds the namespaces, as it is called outside of them."""

    def _came_up(self, own: Path) -> bool:
        assert self._holder.poll() is None, f"host {self.name} could not be made"
        return (own / ".up").exists()

    def enter(self, *command: str) -> list[str]:
        """The command that runs `command` in this host."""
        into = ["nsenter", "--target", str(self.pid), "--net", "--uts", "--mount", "--pid"]
        return [*into, "--", *command]

    def run(self, *command: str) -> str:
        """Run a command in this host to its end; what it wrote."""
        done = subprocess.run(self.enter(*command), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)} on {self.name}: {done.stderr}"
        return done.stdout

    def processes(self) -> dict[int, psutil.Process]:
        """All that runs in this host but for its holder, by the process id that it has there."""
        here = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.status() == psutil.STATUS_ZOMBIE or process.pid == self.pid:
                    continue
                if _namespace(process.pid) == here:
                    found[_inner_pid(process.pid)] = process
        return found

    def named(self, part: str) -> list[psutil.Process]:
        """The processes in this host whose command line has that part."""
        return [p for p in self.processes().values() if part in _command(p)]

    def kill_all(self) -> None:
        """kill -9 everything in this host, and wait until it is gone."""
        while left := list(self.processes().values()):
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=5)

    def close(self) -> None:
        """The host and all that runs in it are gone."""
        self._holder.kill()
        self._holder.wait()


class Network:
    """Hosts on one bridge. Made by `network`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.shared = folder / "shared"
        """A folder that all hosts see, under this path."""
        self.shared.mkdir()
        self._hosts: list[Host] = []
        self._switch = Host("switch", 1, folder / "switch", self.shared)
        for bridge in ("bridge0", "bridge1"):
            self._switch.run("ip", "link", "add", bridge, "type", "bridge")
            self._switch.run("ip", "link", "set", bridge, "up")

    def host(self, name: str, interfaces: int = 1) -> Host:
        """A new host; all hosts know it by `name` and `name.net`."""
        host = Host(name, 10 + len(self._hosts), self._folder / name, self.shared)
        self._hosts.append(host)
        host.run("ip", "link", "set", "lo", "up")
        for index, address in enumerate((host.address, host.second_address)[:interfaces]):
            self._plug_in(host, index, address)
        self.write_hosts_files()
        return host

    def _plug_in(self, host: Host, index: int, address: str) -> None:
        plug, device = f"{host.name}{index}", f"eth{index}"
        ends = ["link", "add", plug, "netns", str(self._switch.pid), "type", "veth"]
        self._ip(*ends, "peer", "name", device, "netns", str(host.pid))
        self._switch.run("ip", "link", "set", plug, "master", f"bridge{index}", "up")
        host.run("ip", "address", "add", f"{address}/24", "dev", device)
        host.run("ip", "link", "set", device, "up")

    def _ip(self, *args: str) -> None:
        subprocess.run(["ip", *args], check=True, capture_output=True, text=True)

    def write_hosts_files(self, own: str | None = None) -> None:
        """Write who is who; `own` is the address that every host has for its own short name."""
        for host in self._hosts:
            lines = ["127.0.0.1 localhost"]
            for other in self._hosts:
                if other is host and own is not None:
                    lines += [f"{own} {other.name}", f"{other.address} {other.name}.net"]
                else:
                    lines.append(f"{other.address} {other.name}.net {other.name}")
            # In place: the file is mounted.
            (host.folder / "hosts").write_text("\n".join(lines) + "\n")

    # --- faults -------------------------------------------------------------------------------

    def cut(self, host: Host) -> None:
        """Pull the host's cable."""
        self._switch.run("ip", "link", "set", f"{host.name}0", "down")

    def join(self, host: Host) -> None:
        """Put the host's cable back."""
        self._switch.run("ip", "link", "set", f"{host.name}0", "up")

    def lose(self, sender: Host, receiver: Host) -> None:
        """Lose whatever `sender` sends to `receiver`; the other direction goes on."""
        entry = [receiver.address, "lladdr", _NOWHERE, "dev", "eth0", "nud", "permanent"]
        sender.run("ip", "neighbour", "replace", *entry)

    def lose_no_more(self, sender: Host, receiver: Host) -> None:
        sender.run("ip", "neighbour", "del", receiver.address, "dev", "eth0")

    def close(self) -> None:
        for host in [*self._hosts, self._switch]:
            host.close()


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """A network without hosts; nothing of it is left after the block."""
    _remove_leftovers()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    folder.chmod(0o755)
    net = None
    try:
        net = Network(folder)
        yield net
    finally:
        if net is not None:
            net.close()
        shutil.rmtree(folder, ignore_errors=True)


def _remove_leftovers() -> None:
    """Folders of runs that were killed. Their namespaces went with them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _needed_below_tmp(shared: Path, environ: Mapping[str, str] = os.environ) -> Sequence[str]:
    """What hosts need of this machine's /tmp, which they do not see."""
    checkout = Path(__file__).parents[2]
    needed = [shared, checkout, Path(sys.prefix), Path(sys.base_prefix)]
    needed += [Path(environ[name]) for name in ("JAVA_HOME", "SPARK_HOME") if environ.get(name)]
    below = {str(path.resolve()) for path in needed if Path("/tmp") in path.resolve().parents}
    return sorted(below)


def _namespace(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/pid")


def _inner_pid(pid: int) -> int:
    """What the process is called in its own namespace."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    raise OSError(f"process {pid} has no NSpid")


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
