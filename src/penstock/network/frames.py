"""Frames: how channel elements and credits travel between slots.

A frame is a fixed head (kind, attempt, channel, sequence number) and a payload. The sequence
number counts the elements of a channel, so a receiver sees at once when one is missing. That
the last ones are missing is seen by a frame with a count (`penstock.runtime.links`).
"""

from __future__ import annotations

import enum
import io
import pickle
import struct
from typing import Any, NamedTuple

from penstock import kept
from penstock.common.unpicklable import why
from penstock.errors import ChannelBrokenError, RecordError

_HEAD = struct.Struct("<BIIIIQ")
MAX_FRAME_BYTES = 1 << 30


class FrameKind(enum.IntEnum):
    DATA = 1
    CONTROL = 2
    CREDIT = 3
    COUNT = 4
    """How much the sender has put into this link before; about no channel."""


class Frame(NamedTuple):
    """One frame, decoded.

    For credits `sequence` counts all buffers granted so far. Of a count it is the count, and
    `sender` and `receiver` are slots.
    """

    kind: int
    attempt: int
    edge: int
    sender: int
    receiver: int
    sequence: int
    payload: bytes


def encode_frame(frame: Frame) -> list[bytes]:
    return [_HEAD.pack(*frame[:6]), frame.payload]


def decode_frame(parts: list[bytes]) -> Frame:
    try:
        head, payload = parts
        kind, attempt, edge, sender, receiver, sequence = _HEAD.unpack(head)
        return Frame(kind, attempt, edge, sender, receiver, sequence, payload)
    except (ValueError, struct.error) as error:
        raise ChannelBrokenError("a frame from a peer cannot be read") from error


def dump_element(element: Any, flat: bool = False) -> bytes:
    """The payload for an element; `flat` promises a batch of records that hold no containers."""
    try:
        payload = _dump_flat(element) if flat else pickle.dumps(element, protocol=5)
    except Exception as error:
        raise RecordError(f"a record cannot be pickled: {why(error)}", lasting=True) from error
    if len(payload) > MAX_FRAME_BYTES:
        raise RecordError(
            f"a buffer of {len(payload)} bytes is larger than the limit of {MAX_FRAME_BYTES}; "
            "send a reference to the data instead of the data"
        )
    return payload


def _dump_flat(batch: list[Any]) -> bytes:
    # Without a memo of what was written before: nothing in flat records can refer to it but equal
    # strings, and noting every object costs more than a third of the whole.
    written = io.BytesIO()
    pickler = pickle.Pickler(written, protocol=5)
    pickler.fast = True
    pickler.dump(batch)
    return written.getvalue()


def load_element(payload: bytes) -> Any:
    return kept.loads(payload)
