"""Marks of commits: `_committed` beside a manifest says that all that it covers is committed.

Whoever restores a checkpoint commits what it covers, again if need be. A server forgets finished
transactions after some days, and then nobody could tell a transaction that was committed from one
that was lost. So the commit is noted here, with a checksum of the manifest that it belongs to, and
a restore asks servers only about what has no mark. A mark that is missing or cannot be read only
means that they are asked.
"""

from __future__ import annotations

import hashlib

from penstock.common.filesystem import filesystem_for
from penstock.errors import StorageError

NAME = "_committed"


def mark(folder: str, manifest: bytes) -> bool:
    """Note that everything is committed that `manifest`, of the checkpoint in `folder`, covers.

    False if there is a mark of another manifest.
    """
    fs, path = filesystem_for(f"{folder}/{NAME}")
    checksum = _checksum(manifest)
    return fs.create(path, checksum) or fs.read(path) == checksum


def mark_existing(folder: str) -> None:
    """The same, of the manifest that is there."""
    fs, path = filesystem_for(f"{folder}/_metadata")
    mark(folder, fs.read(path))


def is_marked(folder: str) -> bool:
    """Whether all that the checkpoint in `folder` covers is known to be committed."""
    fs, path = filesystem_for(folder)
    try:
        return fs.read(f"{path}/{NAME}") == _checksum(fs.read(f"{path}/_metadata"))
    except StorageError:
        return False


def _checksum(manifest: bytes) -> bytes:
    return hashlib.sha256(manifest).hexdigest().encode()
