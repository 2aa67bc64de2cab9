"""Folders of local databases: whose process is gone is removed by the next, and nobody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from penstock.state import rocks_folders
from penstock.state.rocks_folders import OwnedFolder, sweep

_OWNER = """
import sys, time
from penstock.state.rocks_folders import OwnedFolder

folder = OwnedFolder(sys.argv[1])
open(f"{folder.path}/data", "w").write("x")
print(folder.path, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def first_in_this_process(monkeypatch):
    monkeypatch.setattr(rocks_folders, "_swept", set())


@pytest.fixture
def owner(tmp_path):
    """Another process with a folder of its own; the process, and the folder."""
    command = [sys.executable, "-c", _OWNER, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process, process.stdout.readline().strip()
    process.kill()
    process.wait()


def aged(folder, seconds=3600):
    then = time.time() - seconds
    os.utime(folder, (then, then))
    return folder


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, owner):
    process, left = owner
    aged(left)
    process.send_signal(signal.SIGKILL)
    process.wait()
    mine = OwnedFolder(str(tmp_path))
    assert os.listdir(tmp_path) == [os.path.basename(mine.path)]
    mine.remove()
    assert os.listdir(tmp_path) == []


def test_what_a_living_process_has_stays(tmp_path, owner):
    aged(owner[1])
    OwnedFolder(str(tmp_path)).remove()
    assert [owner[1]] == [entry.path for entry in os.scandir(tmp_path)]


def test_ones_own_folders_stay(tmp_path):
    mine = OwnedFolder(str(tmp_path))
    aged(mine.path)
    assert sweep(str(tmp_path)) == []
    mine.remove()


def test_what_has_just_been_made_stays(tmp_path):
    young = tmp_path / "penstock-rocksdb-young"
    young.mkdir()
    assert sweep(str(tmp_path)) == []
    aged(young)
    assert sweep(str(tmp_path)) == [str(young)], "its process never got any further"


def test_what_has_no_owner_and_is_not_empty_stays(tmp_path):
    other = tmp_path / "penstock-rocksdb-of-another-version"
    other.mkdir()
    (other / "LOCK").touch()
    (tmp_path / "penstock-rocksdb-a-file").touch()
    (tmp_path / "something-else").mkdir()
    for path in tmp_path.iterdir():
        aged(path)
    assert sweep(str(tmp_path)) == []
    assert len(os.listdir(tmp_path)) == 3


def test_another_users_folders_stay(tmp_path, monkeypatch):
    folder = tmp_path / "penstock-rocksdb-x"
    folder.mkdir()
    aged(folder)
    monkeypatch.setattr(os, "getuid", lambda: os.stat(folder).st_uid + 1)
    assert sweep(str(tmp_path)) == []


def test_a_place_is_looked_at_once(tmp_path):
    OwnedFolder(str(tmp_path)).remove()
    folder = tmp_path / "penstock-rocksdb-x"
    folder.mkdir()
    aged(folder)
    OwnedFolder(str(tmp_path)).remove()
    assert folder.exists()
