"""Bytes that wait in memory and in a file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import spool as spools
from penstock.common.spool import Spool, chunks_of, whole

FULL_DISK = """
    import logging, resource
    from penstock.common.spool import Spool, whole

    logging.basicConfig(format="%(message)s")
    # The system refuses to write on, as it does when a disk is full.
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.RLIM_INFINITY))
    spool = Spool(in_memory=0)
    parts = [part for n in range(10) for part in spool.keep([b"%d" % n * 1_000])]
    assert whole(parts) == b"".join(b"%d" % n * 1_000 for n in range(10))
    print([type(part).__name__ for part in parts])
"""


def files_without_name() -> list[str]:
    """Those that this process has open where temporary files go."""
    opened = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            opened.append(os.readlink(f"/proc/self/fd/{entry}"))
        except FileNotFoundError:
            continue
    folder = tempfile.gettempdir()
    return [path for path in opened if path.startswith(folder) and path.endswith("(deleted)")]


@given(
    st.lists(st.lists(st.binary(max_size=40), max_size=6), max_size=9),
    st.integers(0, 100),
    st.booleans(),
)
def test_what_is_kept_is_what_was_given(kept: list[list[bytes]], room: int, put: bool) -> None:
    spool = Spool(room)
    found = [(spool.put if put else spool.keep)(parts) for parts in kept]
    # Once more: what is in the file already stays there.
    found = [spool.keep(parts) for parts in found]
    for _ in range(2):
        assert [whole(parts) for parts in found] == [b"".join(parts) for parts in kept]
    assert [sum(map(len, parts)) for parts in found] == [sum(map(len, parts)) for parts in kept]
    in_memory = [part for parts in found for part in parts if isinstance(part, bytes)]
    assert sum(map(len, in_memory)) <= room


def test_much_is_read_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "CHUNK", 100)
    [part] = Spool(0).keep([b"x" * 250, b"y"])
    assert len(part) == 251
    assert [len(chunk) for chunk in chunks_of([part])] == [100, 100, 51]


def test_the_file_goes_with_the_last_part() -> None:
    before = files_without_name()
    spool = Spool(0)
    parts = spool.keep([b"first"])
    more = spool.keep([b"second"])
    assert len(files_without_name()) == len(before) + 1
    del spool, parts
    assert whole(more) == b"second"
    del more
    assert files_without_name() == before


def test_a_full_disk_costs_memory_and_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL_DISK)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(["Spooled"] * 5 + ["bytes"] * 5)
    [line] = done.stderr.strip().splitlines()
    assert "stays in memory" in line and "TMPDIR" in line
