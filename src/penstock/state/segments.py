"""Segments: the files that hold state.

A segment of keyed state holds, per state and key group, the entries that changed and the keys that
were removed. A checkpoint names a list of segments per operator and subtask; reading them in
order, later entries over earlier ones, gives the state. The index at the front lets a rescaled
subtask read only the key groups it owns, and says of each state its kind, its type, and whether
its values are in the compact binary form or pickled. State that belongs to a subtask as a whole
lies in segments of its own.

Layout: magic, version, length of the index, index (JSON), then the blocks' bytes one after
another, each compressed where the version says so. The checksum stands in the segment's handle,
which is part of the checkpoint's metadata.

The index has the sizes of all blocks and comes first, so a block waits until the last one is made:
in a spool (`penstock.common.spool`), which has few of their bytes in memory.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.common.spool import Part, Spool, chunks_of, whole
from penstock.errors import CorruptCheckpointError, StateError
from penstock.state.schema import PICKLED, Schema, needs_pickle, schema_of

_HEADER = struct.Struct("<4sHI")
_MAGIC = b"PSEG"
_VERSION = 2
_COMPRESSED = 3
"""The version of segments whose blocks are compressed."""
_QUICKLY = 1
_RUN = 1 << 24
"""About so many bytes are read at once at most."""


@dataclass(frozen=True)
class GroupBlock:
    """One state's changes in one key group, as bytes that only the backend understands."""

    state: str
    kind: str
    group: int
    parts: Sequence[Part]
    """One after another: joining many megabytes takes time, and writing needs it not."""
    schema: Schema = field(default_factory=lambda: schema_of(PICKLED))
    """The type of the values."""

    @property
    def payload(self) -> bytes:
        return whole(self.parts)

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))

    def compressed(self) -> GroupBlock:
        """The same, with its bytes compressed."""
        packer = zlib.compressobj(_QUICKLY)
        parts = [packed for chunk in chunks_of(self.parts) if (packed := packer.compress(chunk))]
        return replace(self, parts=[*parts, packer.flush()])

    def kept_in(self, spool: Spool) -> GroupBlock:
        """The same, with its bytes where the spool has room for them."""
        parts = spool.keep(self.parts)
        return self if parts is self.parts else replace(self, parts=parts)


@dataclass(frozen=True)
class Origin:
    """Which subtask wrote a segment, out of how many, and on which state backend."""

    subtask: int = 0
    parallelism: int = 1
    backend: str = ""
    """The only one that may read it; empty if any may."""

    def check_backend(self, backend: str) -> None:
        """StateError if a segment of this origin is not for `backend`."""
        if self.backend not in ("", backend):
            raise StateError(
                f"its checkpoint was written on the state backend {self.backend!r} and the job "
                f"runs on {backend!r}; set state.backend.type to {self.backend}, or go on from a "
                "savepoint, which any backend reads"
            )


def encode_segment(blocks: Iterable[GroupBlock], origin: Origin | None = None) -> bytes:
    """The blocks as one segment."""
    return b"".join(segment_parts(blocks, origin))


def segment_parts(
    blocks: Iterable[GroupBlock], origin: Origin | None = None, compress: bool = False
) -> Iterator[bytes]:
    """The same in parts, which are written one after another; each block compressed or not."""
    spool = Spool()
    blocks = [block.compressed().kept_in(spool) if compress else block for block in blocks]
    states = _States()
    index: list[list[int]] = []
    offset = 0
    for block in blocks:
        size = block.size
        index.append([states.number(block), block.group, offset, size])
        offset += size
    content = {"origin": vars(origin or Origin()), "states": states.listed, "blocks": index}
    head = json.dumps(content, separators=(",", ":")).encode()
    yield _HEADER.pack(_MAGIC, _COMPRESSED if compress else _VERSION, len(head))
    yield head
    for block in blocks:
        yield from chunks_of(block.parts)


class _States:
    """The states of a segment under construction: each is described once."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        # By identity first: a state's many blocks share one schema, which is kept alive meanwhile.
        self._known: dict[tuple[str, str, int], int] = {}
        self._schemas: list[Schema] = []

    def number(self, block: GroupBlock) -> int:
        """The place of the block's state in the list."""
        key = (block.state, block.kind, id(block.schema))
        number = self._known.get(key)
        if number is None:
            described = _describe(block)
            if described not in self.listed:
                self.listed.append(described)
            number = self._known[key] = self.listed.index(described)
            self._schemas.append(block.schema)
        return number


def _describe(block: GroupBlock) -> dict[str, Any]:
    form = "pickle" if needs_pickle(block.schema) else "binary"
    return {"name": block.state, "kind": block.kind, "form": form, "schema": block.schema}


def decode_segment(data: bytes, groups: range) -> Iterator[GroupBlock]:
    """The blocks of a verified segment that lie in `groups` or in none."""
    index, start = _index(data)
    states, unpacked = index["states"], _unpacked(_is_compressed(data))
    for number, group, offset, length in index["blocks"]:
        if group in groups or group < 0:
            state, begin = states[number], start + offset
            payload = unpacked(data[begin : begin + length])
            yield GroupBlock(state["name"], state["kind"], group, [payload], state["schema"])


def origin_of(data: bytes) -> Origin:
    """Who wrote a verified segment."""
    return Origin(**_index(data)[0]["origin"])


@dataclass(frozen=True)
class BlockPlace:
    """Where in its segment a block is, and what it is of."""

    state: str
    kind: str
    group: int
    schema: Schema
    start: int
    size: int
    compressed: bool = False


def read_index(read_part: Callable[[int, int], bytes]) -> tuple[Origin, list[BlockPlace]]:
    """Who wrote a segment, and what is where in it, without reading the rest.

    `read_part` gives the bytes from a place on, up to a number of them. Whether they are verified
    is up to it.
    """
    head = read_part(0, _HEADER.size)
    size = _HEADER.size + (_HEADER.unpack(head)[2] if len(head) == _HEADER.size else 0)
    index, start = _index(head + read_part(_HEADER.size, size - _HEADER.size))
    states = index["states"]
    places = []
    for number, group, offset, length in index["blocks"]:
        state = states[number]
        what = (state["name"], state["kind"], group, state["schema"])
        places.append(BlockPlace(*what, start + offset, length, _is_compressed(head)))
    return Origin(**index["origin"]), places


def read_blocks(
    read_part: Callable[[int, int], bytes], places: Iterable[BlockPlace], groups: range
) -> Iterator[GroupBlock]:
    """The blocks that lie in `groups` or in none; what lies together is read together."""
    wanted = [place for place in places if place.group in groups or place.group < 0]
    for run in _runs(wanted):
        begin = run[0].start
        data = read_part(begin, run[-1].start + run[-1].size - begin)
        for place in run:
            payload = data[place.start - begin : place.start - begin + place.size]
            payload = _unpacked(place.compressed)(payload)
            yield GroupBlock(place.state, place.kind, place.group, [payload], place.schema)


def _runs(places: Iterable[BlockPlace]) -> Iterator[list[BlockPlace]]:
    run: list[BlockPlace] = []
    size = 0
    for place in places:
        if run and (place.start != run[-1].start + run[-1].size or size >= _RUN):
            yield run
            run, size = [], 0
        run.append(place)
        size += place.size
    if run:
        yield run


def describe_segment(data: bytes) -> list[dict[str, Any]]:
    """The states in a verified segment: name, kind, form (binary or pickle) and schema."""
    return list(_index(data)[0]["states"])


def _index(data: bytes) -> tuple[dict[str, Any], int]:
    try:
        magic, version, head_length = _HEADER.unpack_from(data)
        start = _HEADER.size + head_length
        if magic != _MAGIC or version not in (_VERSION, _COMPRESSED):
            raise CorruptCheckpointError(f"not a segment of version {_VERSION} or {_COMPRESSED}")
        return json.loads(data[_HEADER.size : start]), start
    except (struct.error, ValueError) as error:
        raise CorruptCheckpointError("a segment is cut short or not a segment") from error


def _is_compressed(head: bytes) -> bool:
    return bool(_HEADER.unpack_from(head)[1] == _COMPRESSED)


def _unpacked(compressed: bool) -> Callable[[bytes], bytes]:
    return zlib.decompress if compressed else bytes
