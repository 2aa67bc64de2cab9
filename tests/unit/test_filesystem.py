"""One suite for every file system, and what only one of them can do."""

from __future__ import annotations

import errno
import os
import stat
import threading

import pytest

from penstock.common import filesystem
from penstock.common.filesystem import LocalFileSystem, MemoryFileSystem, filesystem_for
from penstock.errors import ConfigurationError, CorruptCheckpointError, StorageError


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    """A file system and an empty directory in it."""
    if request.param == "local":
        return LocalFileSystem(), str(tmp_path)
    return MemoryFileSystem(), "/base"


# --- what every file system promises ----------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"x", b"some bytes", bytes(range(256)) * 1000])
def test_of_two_writers_the_first_wins(place, content):
    fs, base = place
    assert fs.create(f"{base}/deep/down/a", content) is True
    assert fs.create(f"{base}/deep/down/a", content) is False
    assert fs.create(f"{base}/deep/down/a", b"other") is False
    assert fs.read(f"{base}/deep/down/a") == content


@pytest.mark.parametrize("content", [lambda n: b"", lambda n: b"x", lambda n: b"%d" % n * 1000])
def test_of_racing_writers_exactly_one_wins(place, content):
    fs, base = place
    writers = 8
    for turn in range(10):
        path = f"{base}/race-{turn}"
        start, won = threading.Barrier(writers), []

        def write(n, path=path, start=start, won=won):
            start.wait()
            if fs.create(path, content(n)):
                won.append(n)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert fs.read(path) == content(won[0])
    assert fs.list(base) == sorted(f"race-{turn}" for turn in range(10)), "something was left over"


def test_create_keeps_the_content_it_was_given(place):
    fs, base = place
    data = bytearray(b"before")
    fs.create(f"{base}/a", data)
    data[:] = b"after!"
    assert fs.read(f"{base}/a") == b"before"


def test_what_is_created_in_parts_is_one_file(place):
    fs, base = place
    assert fs.create(f"{base}/f", iter([b"a", b"", b"b" * 20_000, b"c"]))
    assert fs.read(f"{base}/f") == b"a" + b"b" * 20_000 + b"c"
    assert not fs.create(f"{base}/f", [b"other", b"parts"])
    assert fs.read(f"{base}/f")[:1] == b"a"


def test_what_cannot_be_gone_through_to_its_end_is_no_file(place):
    fs, base = place

    def breaks_off():
        yield b"x" * 100_000
        raise CorruptCheckpointError("the rest is damaged")

    with pytest.raises(CorruptCheckpointError, match="the rest is damaged"):
        fs.create(f"{base}/f", breaks_off())
    assert fs.list(base) == []
    assert fs.create(f"{base}/f", b"whole")


def test_a_missing_file_cannot_be_read(place):
    fs, base = place
    with pytest.raises(StorageError, match=r"cannot read .*/nothing: there is no such file") as e:
        fs.read(f"{base}/nothing")
    assert isinstance(e.value.__cause__, FileNotFoundError)


def test_rename_moves(place):
    fs, base = place
    fs.create(f"{base}/a", b"1")
    fs.rename(f"{base}/a", f"{base}/b")
    assert not fs.exists(f"{base}/a")
    assert fs.read(f"{base}/b") == b"1"


def test_rename_of_a_missing_source_says_so_and_touches_nothing(place):
    fs, base = place
    fs.create(f"{base}/b", b"kept")
    with pytest.raises(StorageError, match=r"cannot rename .*/a: there is no such file") as e:
        fs.rename(f"{base}/a", f"{base}/b")
    assert isinstance(e.value.__cause__, FileNotFoundError)
    assert fs.read(f"{base}/b") == b"kept"


def test_list_gives_the_names_of_one_level(place):
    fs, base = place
    for name in ("b", "a/x", "a/y/z", "c.tmp"):
        fs.create(f"{base}/{name}", b"")
    assert fs.list(base) == ["a", "b", "c.tmp"]
    assert fs.list(f"{base}/a") == ["x", "y"]


def test_list_of_no_directory_is_empty(place):
    fs, base = place
    assert fs.list(f"{base}/nowhere") == []


def test_a_name_that_begins_alike_is_not_below(place):
    fs, base = place
    fs.create(f"{base}/chk-10/x", b"")
    assert fs.list(f"{base}/chk-1") == []


def test_delete_is_for_files_that_are_there_and_for_those_that_are_not(place):
    fs, base = place
    fs.create(f"{base}/a", b"")
    fs.delete(f"{base}/a")
    fs.delete(f"{base}/a")
    assert not fs.exists(f"{base}/a")
    assert fs.create(f"{base}/a", b"again")


def test_append_writes_piece_by_piece(place):
    fs, base = place
    stream = fs.append(f"{base}/new/a")
    stream.write(b"one ")
    stream.write(b"two")
    stream.sync()
    assert fs.read(f"{base}/new/a") == b"one two"
    stream.write(b" three")
    stream.close()
    assert fs.read(f"{base}/new/a") == b"one two three"


@pytest.mark.parametrize("content", [b"", b"x", b"there"])
def test_append_never_opens_what_exists(place, content):
    fs, base = place
    fs.create(f"{base}/a", content)
    with pytest.raises(StorageError, match="cannot open"):
        fs.append(f"{base}/a")
    assert fs.read(f"{base}/a") == content


# --- local files ------------------------------------------------------------------------------


@pytest.fixture
def below_a_file(tmp_path):
    """A path that cannot exist, for root either: its parent is a regular file."""
    (tmp_path / "file").write_bytes(b"")
    return f"{tmp_path}/file/below"


@pytest.mark.parametrize(
    "action",
    [
        lambda fs, path: fs.create(path, b""),
        lambda fs, path: fs.create(f"{path}/deeper", b""),
        lambda fs, path: fs.append(path),
        lambda fs, path: fs.read(path),
        lambda fs, path: fs.rename(path, "/tmp/never"),
        lambda fs, path: fs.list(path),
        lambda fs, path: fs.delete(path),
    ],
    ids=["create", "create deeper", "append", "read", "rename", "list", "delete"],
)
def test_the_systems_errors_become_storage_errors(below_a_file, action):
    with pytest.raises(StorageError, match=f"cannot [a-z ]+ {below_a_file}") as refused:
        action(LocalFileSystem(), below_a_file)
    assert isinstance(refused.value.__cause__, OSError)


def failing(number):
    def call(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO], ids=os.strerror)
@pytest.mark.parametrize("call", ["fsync", "link"])
def test_a_create_that_fails_leaves_nothing_behind(tmp_path, monkeypatch, number, call):
    with monkeypatch.context() as patch:
        patch.setattr(filesystem.os, call, failing(number))
        with pytest.raises(StorageError, match=os.strerror(number)):
            LocalFileSystem().create(f"{tmp_path}/a", b"data")
    assert LocalFileSystem().list(str(tmp_path)) == []
    assert LocalFileSystem().create(f"{tmp_path}/a", b"data")


def test_the_bytes_of_a_file_and_then_its_name_survive_a_power_cut(tmp_path, monkeypatch):
    """They do when the file was synced, and then the folder with the file's name in it."""
    synced = []

    def fsync(descriptor):
        status = os.fstat(descriptor)
        folder = stat.S_ISDIR(status.st_mode)
        synced.append(os.listdir(descriptor) if folder else status.st_size)

    monkeypatch.setattr(filesystem.os, "fsync", fsync)
    fs = LocalFileSystem()
    fs.create(f"{tmp_path}/here/a", b"four")
    assert synced == [4, ["a"]]
    fs.rename(f"{tmp_path}/here/a", f"{tmp_path}/there/b")
    assert synced[2:] == [["b"]]


def test_a_full_disk_is_seen_while_appending(tmp_path, monkeypatch):
    stream = LocalFileSystem().append(f"{tmp_path}/a")
    stream.write(b"data")
    monkeypatch.setattr(filesystem.os, "fsync", failing(errno.ENOSPC))
    with pytest.raises(StorageError, match=r"cannot write .*/a: No space left on device"):
        stream.sync()


def test_exists_does_not_take_an_error_for_an_answer(tmp_path, monkeypatch):
    """Storage that does not answer is not storage without the file."""
    fs = LocalFileSystem()
    fs.create(f"{tmp_path}/a", b"")
    assert fs.exists(f"{tmp_path}/a") and not fs.exists(f"{tmp_path}/b")
    assert not fs.exists(f"{tmp_path}/a/below")
    monkeypatch.setattr(filesystem.os, "stat", failing(errno.EIO))
    with pytest.raises(StorageError, match="Input/output error"):
        fs.exists(f"{tmp_path}/a")


def test_a_directory_is_deleted_only_when_empty(tmp_path):
    fs = LocalFileSystem()
    fs.create(f"{tmp_path}/d/a", b"")
    with pytest.raises(StorageError, match="not empty"):
        fs.delete(f"{tmp_path}/d")
    fs.delete(f"{tmp_path}/d/a")
    fs.delete(f"{tmp_path}/d")
    assert fs.list(str(tmp_path)) == []


# --- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "kind", "path"),
    [
        ("/tmp/x", LocalFileSystem, "/tmp/x"),
        ("/tmp/x/", LocalFileSystem, "/tmp/x"),
        ("file:///tmp/a%20b", LocalFileSystem, "/tmp/a b"),
        ("memory:///a/b/", MemoryFileSystem, "/a/b"),
        ("memory:///", MemoryFileSystem, "/"),
    ],
)
def test_a_uri_names_a_file_system_and_a_path(uri, kind, path):
    fs, found = filesystem_for(uri)
    assert isinstance(fs, kind)
    assert found == path


def test_a_relative_path_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert filesystem_for("out")[1] == f"{tmp_path}/out"
    assert filesystem_for("~/out")[1] == "/home/someone/out"


def test_an_unknown_scheme_names_the_known_ones():
    with pytest.raises(ConfigurationError, match="no file system for gopher://; known are file://"):
        filesystem_for("gopher://host/x")


def test_all_of_a_process_share_one_memory():
    fs, path = filesystem_for("memory:///test-shared/a")
    assert fs.create(path, b"1")
    other, same = filesystem_for("memory:///test-shared/a")
    assert other.read(same) == b"1"
    other.delete(same)


def test_a_registered_scheme_gets_its_authority(monkeypatch):
    opened = []

    def opener(authority):
        opened.append(authority)
        return MemoryFileSystem()

    monkeypatch.setitem(filesystem._SCHEMES, "bucket", opener)
    assert filesystem_for("bucket://mine/a/b")[1] == "/a/b"
    assert opened == ["mine"]


# --- through fsspec ---------------------------------------------------------------------------


def test_where_the_server_cannot_decide_a_create_is_refused_with_the_reason():
    pytest.importorskip("fsspec")
    from fsspec.implementations.memory import MemoryFileSystem as FsspecMemory

    from penstock.common.fsspec_filesystem import FsspecFileSystem

    fs = FsspecFileSystem("sftp", FsspecMemory(), "/unit-test")
    with pytest.raises(StorageError, match=r"on sftp:// a file cannot be created on the condition"):
        fs.create("/a", b"")
    with fs.append("/a")._file as file:
        file.write(b"1")
    assert fs.list("") == ["a"] and fs.read("/a") == b"1", "reading is fine"


def test_a_scheme_that_nobody_knows_is_refused():
    with pytest.raises(ConfigurationError, match=r"nonsense://.*known are file://, memory://"):
        filesystem_for("nonsense://somewhere/a")


def test_a_file_system_without_hard_links_says_so(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError, match="no hard links"):
        LocalFileSystem().create(f"{tmp_path}/a", b"x")
    assert list(tmp_path.iterdir()) == []
