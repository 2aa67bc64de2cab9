"""Users of systems that Penstock was not tried on hear so first, in one sentence."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.common.processes import is_alive
from penstock.spark.platforms import say_where_it_was_tried


def test_windows_is_told_what_to_use_before_any_traceback() -> None:
    code = "import sys; sys.platform = 'win32'; sys.path.insert(0, sys.argv[1]); import penstock"
    package = str(Path(penstock.__file__).absolute().parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code, package], capture_output=True, text=True, check=False
    )
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("Penstock runs on Linux, and on Windows within WSL")
    assert last == f"ImportError: {first}"


@pytest.mark.parametrize(("platform", "name"), [("darwin", "macOS"), ("freebsd14", "freebsd14")])
def test_other_systems_are_told_once(
    platform: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    say_where_it_was_tried.cache_clear()
    with caplog.at_level(logging.WARNING):
        say_where_it_was_tried(platform)
        say_where_it_was_tried(platform)
        say_where_it_was_tried("linux")
    [record] = caplog.records
    assert f"on {name} it is meant to work and was not tried" in record.getMessage()


def test_a_process_is_alive_until_it_is_buried() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_alive(process.pid)
    process.communicate(b"\n")
    assert not is_alive(process.pid)
    assert is_alive(os.getpid()) and is_alive(1), "also one of somebody else"
