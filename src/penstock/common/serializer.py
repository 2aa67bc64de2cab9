"""TypeSerializer: how values are written to a stream of bytes, and read from it.

>>> import io
>>> class Numbers(TypeSerializer[int]):
...     def serialize(self, element, stream):
...         stream.write(element.to_bytes(8, "big", signed=True))
...
...     def deserialize(self, stream):
...         return int.from_bytes(stream.read(8), "big", signed=True)
>>> stream = io.BytesIO()
>>> Numbers().serialize(-7, stream)
>>> Numbers().deserialize(io.BytesIO(stream.getvalue()))
-7
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import IO, Generic, TypeVar

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes values of one kind as bytes; subclass it for a kind of your own."""

    @abstractmethod
    def serialize(self, element: T, stream: IO[bytes]) -> None:
        """Write `element` to the stream, so that it can be told where it ends."""

    @abstractmethod
    def deserialize(self, stream: IO[bytes]) -> T:
        """Read one value from the stream, and nothing behind it."""
