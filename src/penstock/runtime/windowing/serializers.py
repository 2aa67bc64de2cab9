"""Windows as bytes, for programs that ask an assigner for its serializer.

Penstock itself keeps windows in its state as it keeps all values, so that an assigner of a user's
own needs none.

>>> import io
>>> stream = io.BytesIO()
>>> TimeWindowSerializer().serialize(TimeWindow(0, 60_000), stream)
>>> TimeWindowSerializer().deserialize(io.BytesIO(stream.getvalue()))
TimeWindow(start=0, end=60000)
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from typing import IO, Generic, TypeVar

from penstock.runtime.windowing.windows import CountWindow, GlobalWindow, TimeWindow

T = TypeVar("T")

_TIMES = struct.Struct(">qq")
_NUMBER = struct.Struct(">q")


class TypeSerializer(ABC, Generic[T]):
    """Writes values to a stream of bytes, and reads them."""

    @abstractmethod
    def serialize(self, element: T, stream: IO[bytes]) -> None: ...

    @abstractmethod
    def deserialize(self, stream: IO[bytes]) -> T: ...


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Start and end, as two long integers."""

    def serialize(self, element: TimeWindow, stream: IO[bytes]) -> None:
        """Write the window."""
        stream.write(_TIMES.pack(element.start, element.end))

    def deserialize(self, stream: IO[bytes]) -> TimeWindow:
        """Read a window."""
        return TimeWindow(*_TIMES.unpack(stream.read(_TIMES.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """The number, as a long integer."""

    def serialize(self, element: CountWindow, stream: IO[bytes]) -> None:
        """Write the window."""
        stream.write(_NUMBER.pack(element.id))

    def deserialize(self, stream: IO[bytes]) -> CountWindow:
        """Read a window."""
        return CountWindow(*_NUMBER.unpack(stream.read(_NUMBER.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """One byte: there is one such window only."""

    def serialize(self, element: GlobalWindow, stream: IO[bytes]) -> None:
        """Write the window."""
        stream.write(b"\x00")

    def deserialize(self, stream: IO[bytes]) -> GlobalWindow:
        """Read a window."""
        stream.read(1)
        return GlobalWindow.get()
