"""Segments: the files that hold keyed state.

A segment holds, per state and key group, the entries that changed and the keys that were removed.
A checkpoint names a list of segments per operator and subtask; reading them in order, later
entries over earlier ones, gives the state. The index at the front lets a rescaled subtask read
only the key groups it owns.

Layout: magic, version, length of the index, index (JSON), then the key groups' bytes one after
another. The checksum stands in the segment's handle, which is part of the checkpoint's metadata.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.errors import CorruptCheckpointError

_HEADER = struct.Struct("<4sHI")
_MAGIC = b"PSEG"
_VERSION = 1

NO_GROUP = -1
"""The group of a block that belongs to the subtask as a whole and to no key."""


@dataclass(frozen=True)
class GroupBlock:
    """One state's changes in one key group, as bytes that only the backend understands."""

    state: str
    kind: str
    group: int
    payload: bytes


def encode_segment(blocks: list[GroupBlock]) -> bytes:
    index, offset = [], 0
    for block in blocks:
        index.append([block.state, block.kind, block.group, offset, len(block.payload)])
        offset += len(block.payload)
    head = json.dumps(index, separators=(",", ":")).encode()
    payloads = b"".join(block.payload for block in blocks)
    return _HEADER.pack(_MAGIC, _VERSION, len(head)) + head + payloads


def decode_segment(data: bytes, groups: range) -> Iterator[GroupBlock]:
    """The blocks of a verified segment that lie in `groups` or in none."""
    try:
        magic, version, head_length = _HEADER.unpack_from(data)
        start = _HEADER.size + head_length
        index = json.loads(data[_HEADER.size : start])
    except (struct.error, ValueError) as error:
        raise CorruptCheckpointError("a segment is cut short or not a segment") from error
    if magic != _MAGIC or version != _VERSION:
        raise CorruptCheckpointError(f"not a segment of version {_VERSION}")
    for state, kind, group, offset, length in index:
        if group in groups or group == NO_GROUP:
            yield GroupBlock(state, kind, group, data[start + offset : start + offset + length])
