"""Object stores and other file systems, through fsspec.

Reading works on whatever fsspec can reach. Checkpoints need one thing more: to create a file only
if there is none of that name, decided by the server. Object stores have it as a conditional put,
HDFS by renaming (`penstock.common.webhdfs_filesystem`); where the server cannot decide, `create`
refuses, because two drivers could both believe that a checkpoint is theirs.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from itertools import chain
from typing import Any

from penstock.common.filesystem import AppendStream, Content, FileSystem, parts_of
from penstock.common.s3_creation import UPLOAD, in_lots, upload_new
from penstock.errors import ConfigurationError, PenstockError, StorageError

_CONDITIONAL_PUT = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"})
"""Where `pipe_file(mode="create")` is one request that the server refuses if the name is taken."""

_MULTIPART = frozenset({"s3", "s3a"})
"""Where a large file is uploaded in pieces, and the condition holds for all of it."""

CREATES = _CONDITIONAL_PUT | {"webhdfs"}
"""Where a file can be created only if there is none."""

_PACKAGES = {
    **dict.fromkeys(["s3", "s3a"], "penstock[s3]"),
    **dict.fromkeys(["gs", "gcs"], "penstock[gcs]"),
    **dict.fromkeys(["az", "abfs", "abfss"], "penstock[azure]"),
    "webhdfs": "penstock[hdfs]",
}


def known_schemes() -> list[str]:
    """What fsspec has heard of; without fsspec, what a package is known for."""
    try:
        import fsspec
    except ImportError:
        return sorted(_PACKAGES)
    return sorted({*_PACKAGES, *fsspec.available_protocols()})


@functools.lru_cache(maxsize=64)
def open_filesystem(scheme: str, authority: str) -> FileSystem:
    """The file system of `scheme://authority`; ConfigurationError if a package is missing."""
    hint = f"install it with: pip install '{_PACKAGES.get(scheme, 'fsspec')}'"
    try:
        import fsspec
    except ImportError:
        raise ConfigurationError(f"{scheme}:// needs a package; {hint}") from None
    try:
        # Listings must be those of this moment: another driver may have written since.
        options = {"use_listings_cache": False, "skip_instance_cache": True}
        fs, root = fsspec.core.url_to_fs(f"{scheme}://{authority}", **options)
    except ImportError as error:
        raise ConfigurationError(f"{scheme}:// needs a package: {error}; {hint}") from None
    except ValueError as error:
        raise ConfigurationError(f"no file system for {scheme}://: {error}") from None
    if scheme == "webhdfs":
        from penstock.common.webhdfs_filesystem import WebHdfsFileSystem

        return WebHdfsFileSystem(scheme, fs, root.rstrip("/"))
    return FsspecFileSystem(scheme, fs, root.rstrip("/"))


class FsspecFileSystem:
    """A file system of fsspec, with the promises of `penstock.common.filesystem.FileSystem`."""

    def __init__(self, scheme: str, fs: Any, root: str) -> None:
        self._scheme = scheme
        self._fs = fs
        self._root = root

    def create(self, path: str, content: Content) -> bool:
        if self._scheme not in _CONDITIONAL_PUT:
            others = _listed(CREATES)
            raise StorageError(
                f"cannot create {self._shown(path)}: on {self._scheme}:// a file cannot be created "
                "on the condition that there is none, so two drivers could overwrite each other; "
                f"use a local or mounted directory, or {others}"
            )
        with self._errors("create", path):
            try:
                self._upload(self._root + path, iter(parts_of(content)))
            except Exception as error:
                if _is_taken(error):
                    return False
                raise
            return True

    def _upload(self, path: str, parts: Iterator[bytes]) -> None:
        if self._scheme not in _MULTIPART:
            self._fs.pipe_file(path, b"".join(parts), mode="create")
            return
        lots = in_lots(parts, UPLOAD)
        first = next(lots, b"")
        if len(first) < UPLOAD:
            self._fs.pipe_file(path, first, mode="create")
        else:
            upload_new(self._fs, path, chain([first], lots))

    def append(self, path: str) -> AppendStream:
        with self._errors("open", path):
            return _UploadStream(self, path, self._fs.open(self._root + path, "wb"))

    def read(self, path: str) -> bytes:
        with self._errors("read", path):
            content: bytes = self._fs.cat_file(self._root + path)
            return content

    def read_part(self, path: str, start: int, size: int) -> bytes:
        with self._errors("read", path):
            content: bytes = self._fs.cat_file(self._root + path, start=start, end=start + size)
            return content

    def rename(self, source: str, target: str) -> None:
        # Not in one step. A reader may see both for a moment, and each of them whole.
        with self._errors("rename", source):
            self._fs.cp_file(self._root + source, self._root + target)
            self._fs.rm_file(self._root + source)

    def exists(self, path: str) -> bool:
        # Not fs.exists: it answers False when the storage does not answer at all.
        with self._errors("look at", path):
            try:
                self._fs.info(self._root + path)
            except FileNotFoundError:
                return False
            return True

    def list(self, directory: str) -> list[str]:
        with self._errors("list", directory):
            whole = (self._root + directory).strip("/")
            try:
                found = self._fs.ls(self._root + directory, detail=False)
            except FileNotFoundError:
                return []
            names = {name.strip("/").removeprefix(whole).strip("/") for name in found}
            return sorted(name for name in names if name)

    def sizes(self, directory: str) -> dict[str, int]:
        with self._errors("list", directory):
            try:
                found = self._fs.ls(self._root + directory, detail=True)
            except FileNotFoundError:
                return {}
            files = (entry for entry in found if entry["type"] == "file")
            return {entry["name"].rsplit("/", 1)[-1]: int(entry["size"]) for entry in files}

    def delete(self, path: str) -> None:
        with self._errors("delete", path), contextlib.suppress(FileNotFoundError):
            # On an object store there are no directories: an empty one is gone by itself.
            if self._fs.isfile(self._root + path):
                self._fs.rm_file(self._root + path)
            elif self._scheme not in _CONDITIONAL_PUT and self._fs.isdir(self._root + path):
                self._fs.rmdir(self._root + path)

    def _shown(self, path: str) -> str:
        return f"{self._scheme}://{self._root}{path}"

    @contextlib.contextmanager
    def _errors(self, action: str, path: str) -> Iterator[None]:
        try:
            yield
        except PenstockError:
            # Of this room, or of whoever makes what is to be written.
            raise
        except FileNotFoundError as error:
            missing = f"cannot {action} {self._shown(path)}: there is no such file"
            raise StorageError(missing) from error
        except Exception as error:
            # Clients of object stores have exceptions of their own; their text is one line.
            reason = str(error).split("\n", 1)[0] or type(error).__name__
            raise StorageError(f"cannot {action} {self._shown(path)}: {reason}") from error


class _UploadStream:
    """A file that is uploaded while it is written, and is there when it is synced or closed."""

    def __init__(self, owner: FsspecFileSystem, path: str, file: Any) -> None:
        self._owner = owner
        self._path = path
        self._file = file

    def write(self, data: bytes) -> None:
        with self._owner._errors("write", self._path):
            self._file.write(data)

    def sync(self) -> None:
        # An upload is durable when it is complete, and then nothing can be added to it.
        self.close()

    def close(self) -> None:
        with self._owner._errors("close", self._path):
            self._file.close()


def _is_taken(error: Exception) -> bool:
    """Whether the server refused because the name is taken."""
    if isinstance(error, FileExistsError):
        return True
    causes = (error, error.__cause__, error.__context__)
    return any("PreconditionFailed" in repr(cause) for cause in causes if cause is not None)


def _listed(schemes: frozenset[str]) -> str:
    return ", ".join(f"{scheme}://" for scheme in sorted(schemes))
