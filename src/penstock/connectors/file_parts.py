"""Part files on their way to the storage: open, settled, and then a committer's to show.

A part is *in progress* while records go into it, *pending* once it is settled (durable, ended, and
described by a committable) and *finished* when the committer has made it visible. Where there is a
rename in one step, all of this is one file that changes its name: `RenamedParts`. Object stores
have no rename; there a part is a multipart upload, see `penstock.connectors.file_multipart`.
"""

from __future__ import annotations

from typing import Protocol
from urllib.parse import urlsplit

from penstock.common.filesystem import AppendStream, FileSystem, filesystem_for
from penstock.common.fsspec_filesystem import FsspecFileSystem
from penstock.common.plain import Plain
from penstock.connectors.file_committables import SUFFIX
from penstock.errors import ConfigurationError

_WHOLE = ("gs", "gcs", "az", "abfs", "abfss", "webhdfs")
"""Where the server renames or copies, and the file is there whole or not at all."""


class PartStream(Protocol):
    """One part: its bytes, from the first to the last."""

    def write(self, data: bytes) -> None: ...

    def end(self) -> None:
        """There will be no more bytes: begin to make them durable. May block, for the network."""
        ...

    def settle(self) -> None:
        """Wait until all of it is durable; slow, and once is enough. Ends it if need be."""
        ...

    def committable(self) -> dict[str, Plain]:
        """What the committer must know of it, once it is settled."""
        ...

    def close(self) -> None:
        """Give it up if it is not settled; release what it holds."""
        ...


class PartStorage(Protocol):
    """Where the parts of one writer go."""

    most_open: int
    """How many parts a writer may have in progress; and how many ended that are not settled."""

    def begin(self, name: str, bucket: str) -> PartStream:
        """A new part that is to be called `name` in the folder `bucket`."""
        ...

    def close(self) -> None: ...


class RenamedParts:
    """Parts that are hidden files in the sink's directory until they are renamed."""

    # Open files are scarce, 1024 for a process as a rule.
    most_open = 64

    def __init__(self, directory: str) -> None:
        self._fs, self._directory = renaming_filesystem(directory)

    def begin(self, name: str, bucket: str) -> PartStream:
        path = f"{self._directory}/.{name}{SUFFIX}"
        folder = f"{self._directory}/{bucket}" if bucket else self._directory
        return _RenamedPart(self._fs.append(path), {"from": path, "to": f"{folder}/{name}"})

    def close(self) -> None:
        pass


class _RenamedPart:
    def __init__(self, stream: AppendStream, committable: dict[str, Plain]) -> None:
        self._stream: AppendStream | None = stream
        self._committable = committable

    def write(self, data: bytes) -> None:
        # A writer that is given up half-way may still try to end its file, which nobody will see.
        if self._stream is not None:
            self._stream.write(data)

    def end(self) -> None:
        pass

    def settle(self) -> None:
        if self._stream is not None:
            self._stream.sync()
            self.close()

    def committable(self) -> dict[str, Plain]:
        return self._committable

    def close(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            stream.close()


def renaming_filesystem(directory: str) -> tuple[FileSystem, str]:
    """The file system of `directory` and the path in it; refused if a rename can be seen half."""
    fs, path = filesystem_for(directory)
    scheme = urlsplit(directory).scheme if "://" in directory else ""
    if isinstance(fs, FsspecFileSystem) and scheme not in _WHOLE:
        known = ", ".join(f"{name}://" for name in ("s3", *_WHOLE))
        raise ConfigurationError(
            f"a file sink cannot write to {directory}: on {scheme}:// a finished file could be "
            f"seen half; use a local or mounted directory, or one of {known}"
        )
    return fs, path


def is_unfinished(name: str, owner: str, last_attempt: int) -> bool:
    """Whether the part `name` was begun by a sink, in an attempt that is not later than this.

    `owner` is the beginning of the names of all unfinished parts of that sink.
    """
    if not name.startswith(owner):
        return False
    attempt = name.removeprefix(owner).split("-", 1)[0]
    return not attempt.isdigit() or int(attempt) <= last_attempt
