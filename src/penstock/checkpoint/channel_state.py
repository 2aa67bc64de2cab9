"""Segments of channel state: what was under way between subtasks at an unaligned checkpoint.

A subtask that a barrier overtook records, per channel, the elements that were before the barrier
and had not been processed: batches of records as they travel, and watermarks. What it had not
sent yet is recorded by the sender, what had arrived or was on the way by the receiver; on restore
the receiver reads both, its own first. A subtask may also have part of a batch in its hands that
belongs to no channel: what a source had read, or records that are to be called again.

Layout: magic, version, length of the index, index (JSON), then the batches' bytes one after
another. The index is

    {"channels": [{"edge": name, "sender": 0, "receiver": 1, "elements": [...]}, ...],
     "batch": null or {"uid": head of the chain, "subtask": 1, "at": [offset, length],
                       "split": the split that it was read from}}

where an element is a watermark (a number) or a batch ([offset, length]). Only the batches, which
are pickled lists of records, are not JSON. The checksum stands in the segment's handle.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.common import plain
from penstock.common.plain import Plain
from penstock.errors import CorruptCheckpointError

_HEADER = struct.Struct("<4sHI")
_MAGIC = b"PCHN"
_VERSION = 1

IN_FLIGHT = "in flight"
"""The kind of what a handle says to be in such a segment."""


@dataclass(frozen=True)
class ChannelState:
    """What was under way in one channel, in order: watermarks as numbers, batches as bytes."""

    edge: str
    sender: int
    receiver: int
    elements: tuple[int | bytes, ...]


@dataclass(frozen=True)
class OwnBatch:
    """The rest of a batch that a subtask had in its hands and that came in no channel."""

    uid: str
    """Of the head of its chain."""
    subtask: int
    batch: bytes
    split: Plain = None


@dataclass(frozen=True)
class InFlightData:
    """All of it that one subtask recorded."""

    channels: tuple[ChannelState, ...] = ()
    own: OwnBatch | None = None

    def __bool__(self) -> bool:
        return bool(self.channels) or self.own is not None


def encode_in_flight(data: InFlightData) -> bytes:
    """All of it as one segment."""
    return b"".join(in_flight_parts(data))


def in_flight_parts(data: InFlightData) -> list[bytes]:
    """The same in parts, which are written one after another."""
    blocks = _Blocks()
    channels = [
        {
            "edge": channel.edge,
            "sender": channel.sender,
            "receiver": channel.receiver,
            "elements": [e if isinstance(e, int) else blocks.add(e) for e in channel.elements],
        }
        for channel in data.channels
    ]
    own = data.own
    batch: dict[str, Any] | None = None
    if own is not None:
        batch = {
            "uid": own.uid,
            "subtask": own.subtask,
            "at": blocks.add(own.batch),
            "split": plain.encode(own.split, "a split"),
        }
    index = {"channels": channels, "batch": batch}
    head = json.dumps(index, separators=(",", ":")).encode()
    return [_HEADER.pack(_MAGIC, _VERSION, len(head)), head, *blocks.blocks]


class _Blocks:
    """The bytes behind the index."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self._offset = 0

    def add(self, block: bytes) -> list[int]:
        self.blocks.append(block)
        place = [self._offset, len(block)]
        self._offset += len(block)
        return place


def decode_in_flight(data: bytes) -> InFlightData:
    """What a verified segment holds."""
    try:
        magic, version, length = _HEADER.unpack_from(data)
        start = _HEADER.size + length
        if magic != _MAGIC or version != _VERSION:
            raise CorruptCheckpointError(f"not a segment of channel state of version {_VERSION}")
        index = json.loads(data[_HEADER.size : start])
    except (struct.error, ValueError) as error:
        raise CorruptCheckpointError("a segment is cut short or not channel state") from error

    def block(place: list[int]) -> bytes:
        return data[start + place[0] : start + place[0] + place[1]]

    def elements(listed: Iterable[Any]) -> tuple[int | bytes, ...]:
        return tuple(each if isinstance(each, int) else block(each) for each in listed)

    channels = tuple(
        ChannelState(c["edge"], c["sender"], c["receiver"], elements(c["elements"]))
        for c in index["channels"]
    )
    own: OwnBatch | None = None
    if (batch := index["batch"]) is not None:
        split = plain.decode(batch["split"])
        own = OwnBatch(batch["uid"], batch["subtask"], block(batch["at"]), split)
    return InFlightData(channels, own)
