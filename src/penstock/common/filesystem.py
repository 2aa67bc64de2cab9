"""File systems, as far as checkpoints and file sinks need them.

Two promises carry everything above: `create` makes a file with its whole content or not at all,
and of several writers of one name exactly one succeeds. Everything else may fail half-way.

>>> fs, path = filesystem_for("memory:///demo/a")
>>> fs.create(path, b"first"), fs.create(path, b"second")
(True, False)
>>> fs.read(path)
b'first'
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from penstock.common.hdfs_address import webhdfs_uri
from penstock.errors import ConfigurationError, StorageError

Content = bytes | Iterable[bytes]
"""What a file is to have: as a whole, or part after part, which are gone through once."""


def parts_of(content: Content) -> Iterable[bytes]:
    """The parts of what a file is to have."""
    return (content,) if isinstance(content, (bytes, bytearray)) else content


class AppendStream(Protocol):
    """A file that is being written from front to back."""

    def write(self, data: bytes) -> None: ...

    def sync(self) -> None:
        """Make everything written so far durable."""
        ...

    def close(self) -> None: ...


class FileSystem(Protocol):
    """The operations that checkpoints and sinks use. Paths are absolute, with slashes."""

    def create(self, path: str, content: Content) -> bool:
        """Create `path` with exactly these bytes, durably; False if it exists, whatever is in it.

        If the content cannot be gone through to its end, that error comes through, and there is
        no such file. Few of its parts are in memory at a time.
        """
        ...

    def append(self, path: str) -> AppendStream:
        """A new, empty file to be written piece by piece."""
        ...

    def read(self, path: str) -> bytes: ...

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Up to `size` bytes from `start` on: fewer where the file ends before."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move a file, into a new folder if need be.

        StorageError with `FileNotFoundError` as its cause if there is no source.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def list(self, directory: str) -> list[str]:
        """The names in a directory, sorted; empty if there is none."""
        ...

    def sizes(self, directory: str) -> dict[str, int]:
        """The size of every file in a directory, by its name; empty if there is none."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file or an empty directory; nothing happens if it is not there."""
        ...


class LocalFileSystem:
    """Files of this machine, or of a network file system mounted on it."""

    def create(self, path: str, content: Content) -> bool:
        # Linking a finished temporary file is atomic and refuses an existing name, on NFS too.
        temporary = f"{path}.{uuid.uuid4().hex}.tmp"
        with _storage_errors("create", path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            try:
                with open(temporary, "wb") as file:
                    file.writelines(parts_of(content))
                    file.flush()
                    os.fsync(file.fileno())
                os.link(temporary, path)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                    raise StorageError(
                        f"cannot create {path}: the file system has no hard links, without which "
                        "a file cannot be created whole and only if there is none"
                    ) from error
                raise
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
            _sync_directory(os.path.dirname(path))
            return True

    def append(self, path: str) -> AppendStream:
        with _storage_errors("open", path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return _LocalAppendStream(path, open(path, "xb"))

    def read(self, path: str) -> bytes:
        with _storage_errors("read", path), open(path, "rb") as file:
            return file.read()

    def read_part(self, path: str, start: int, size: int) -> bytes:
        with _storage_errors("read", path), open(path, "rb") as file:
            file.seek(start)
            return file.read(size)

    def rename(self, source: str, target: str) -> None:
        with _storage_errors("rename", source):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.rename(source, target)
            _sync_directory(os.path.dirname(target))

    def exists(self, path: str) -> bool:
        # Not os.path.exists: it answers False when the storage does not answer at all.
        with _storage_errors("look at", path):
            try:
                os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def list(self, directory: str) -> list[str]:
        with _storage_errors("list", directory):
            try:
                return sorted(os.listdir(directory))
            except FileNotFoundError:
                return []

    def sizes(self, directory: str) -> dict[str, int]:
        sizes = {}
        with _storage_errors("list", directory):
            for name in self.list(directory):
                # One that was deleted since it was listed is not there.
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(f"{directory}/{name}")
                    if stat.S_ISREG(status.st_mode):
                        sizes[name] = status.st_size
        return sizes

    def delete(self, path: str) -> None:
        with _storage_errors("delete", path), contextlib.suppress(FileNotFoundError):
            if os.path.isdir(path):
                os.rmdir(path)
            else:
                os.unlink(path)


class _LocalAppendStream:
    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path = path
        self._file = file

    def write(self, data: bytes) -> None:
        with _storage_errors("write", self._path):
            self._file.write(data)

    def sync(self) -> None:
        with _storage_errors("write", self._path):
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        with _storage_errors("close", self._path):
            self._file.close()


class MemoryFileSystem:
    """Files in a dict of this process; for jobs whose checkpoints need not outlive it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._creating = threading.Lock()

    def create(self, path: str, content: Content) -> bool:
        data = b"".join(parts_of(content))
        with self._creating:
            if path in self.files:
                return False
            self.files[path] = data
            return True

    def append(self, path: str) -> AppendStream:
        if not self.create(path, b""):
            raise StorageError(f"cannot open {path}: it exists")
        return _MemoryAppendStream(self, path)

    def read(self, path: str) -> bytes:
        try:
            return self.files[path]
        except KeyError:
            raise _missing("read", path) from FileNotFoundError(path)

    def read_part(self, path: str, start: int, size: int) -> bytes:
        return self.read(path)[start : start + size]

    def rename(self, source: str, target: str) -> None:
        try:
            self.files[target] = self.files.pop(source)
        except KeyError:
            raise _missing("rename", source) from FileNotFoundError(source)

    def exists(self, path: str) -> bool:
        return path in self.files

    def list(self, directory: str) -> list[str]:
        prefix = directory.rstrip("/") + "/"
        below = (path[len(prefix) :] for path in list(self.files) if path.startswith(prefix))
        return sorted({name.split("/", 1)[0] for name in below})

    def sizes(self, directory: str) -> dict[str, int]:
        prefix = directory.rstrip("/") + "/"
        files = [(path[len(prefix) :], path) for path in list(self.files)]
        there = [(n, p) for n, p in files if p.startswith(prefix) and "/" not in n]
        return {name: len(self.files[path]) for name, path in there}

    def delete(self, path: str) -> None:
        self.files.pop(path, None)


class _MemoryAppendStream:
    def __init__(self, owner: MemoryFileSystem, path: str) -> None:
        self._owner = owner
        self._path = path

    def write(self, data: bytes) -> None:
        self._owner.files[self._path] = self._owner.files.get(self._path, b"") + data

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


_LOCAL = LocalFileSystem()
_MEMORY = MemoryFileSystem()
_SCHEMES: dict[str, Callable[[str], FileSystem]] = {
    "": lambda authority: _LOCAL,
    "file": lambda authority: _LOCAL,
    "memory": lambda authority: _MEMORY,
}


def register_scheme(scheme: str, opener: Callable[[str], FileSystem]) -> None:
    """Make `scheme://authority/path` mean the file system that `opener(authority)` returns."""
    _SCHEMES[scheme] = opener


def filesystem_for(uri: str) -> tuple[FileSystem, str]:
    """The file system that `uri` names, and the absolute path in it."""
    if "://" not in uri:
        scheme, authority, path = "", "", os.path.abspath(os.path.expanduser(uri))
    else:
        parts = urlsplit(uri)
        scheme, authority, path = parts.scheme, parts.netloc, unquote(parts.path)
    if scheme in _SCHEMES:
        return _SCHEMES[scheme](authority), path.rstrip("/") or "/"
    if scheme == "hdfs":
        return filesystem_for(webhdfs_uri(uri))
    # Imported here: most jobs need no other file system than the local one.
    from penstock.common.fsspec_filesystem import known_schemes, open_filesystem

    if scheme not in known_schemes():
        known = ", ".join(sorted(f"{name}://" for name in _SCHEMES if name))
        raise ConfigurationError(
            f"{uri}: no file system for {scheme}://; known are {known}, and s3:// and others with "
            "their fsspec packages"
        )
    return open_filesystem(scheme, authority), path.rstrip("/")


def keeps_checkpoints(uri: str) -> bool:
    """Whether `uri` is a whole path, in a file system in which checkpoints can be."""
    if "://" not in uri:
        return uri.startswith("/")
    from penstock.common.fsspec_filesystem import CREATES

    return urlsplit(uri).scheme in {*_SCHEMES, *CREATES} - {""}


def _missing(action: str, path: str) -> StorageError:
    return StorageError(f"cannot {action} {path}: there is no such file")


@contextlib.contextmanager
def _storage_errors(action: str, path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise _missing(action, path) from error
    except OSError as error:
        raise StorageError(f"cannot {action} {path}: {error.strerror or error}") from error


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
