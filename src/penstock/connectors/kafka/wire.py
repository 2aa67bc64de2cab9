"""Kafka's wire format, as far as five requests need it.

A request is a header (which request, which version, a number to match the answer by, a client
name) and a body of big-endian integers, strings and arrays. Newer, *flexible* versions write
lengths as unsigned varints plus one and end every structure with a list of tagged fields, which is
always empty here.
"""

from __future__ import annotations

import struct


class Writer:
    """Builds the bytes of a request."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def int8(self, value: int) -> Writer:
        return self._add(struct.pack(">b", value))

    def int16(self, value: int) -> Writer:
        return self._add(struct.pack(">h", value))

    def int32(self, value: int) -> Writer:
        return self._add(struct.pack(">i", value))

    def int64(self, value: int) -> Writer:
        return self._add(struct.pack(">q", value))

    def boolean(self, value: bool) -> Writer:
        return self.int8(int(value))

    def string(self, value: str) -> Writer:
        """A string of an older version."""
        data = value.encode()
        return self.int16(len(data))._add(data)

    def compact_string(self, value: str) -> Writer:
        """A string of a flexible version."""
        data = value.encode()
        return self.varint(len(data) + 1)._add(data)

    def compact_bytes(self, value: bytes) -> Writer:
        return self.varint(len(value) + 1)._add(value)

    def compact_array(self, values: list[str]) -> Writer:
        self.varint(len(values) + 1)
        for value in values:
            self.compact_string(value)
        return self

    def tags(self) -> Writer:
        """The end of a structure of a flexible version."""
        return self.varint(0)

    def varint(self, value: int) -> Writer:
        data = bytearray()
        while value >= 0x80:
            data.append(value & 0x7F | 0x80)
            value >>= 7
        data.append(value)
        return self._add(bytes(data))

    def done(self) -> bytes:
        return b"".join(self._parts)

    def _add(self, data: bytes) -> Writer:
        self._parts.append(data)
        return self


class Reader:
    """Takes the bytes of an answer apart."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int8(self) -> int:
        return int(self._unpack(">b"))

    def int16(self) -> int:
        return int(self._unpack(">h"))

    def int32(self) -> int:
        return int(self._unpack(">i"))

    def int64(self) -> int:
        return int(self._unpack(">q"))

    def string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._take(length).decode()

    def compact_string(self) -> str | None:
        length = self.varint() - 1
        return None if length < 0 else self._take(length).decode()

    def compact_bytes(self) -> bytes:
        return self._take(max(0, self.varint() - 1))

    def compact_length(self) -> int:
        """How many elements an array has."""
        return max(0, self.varint() - 1)

    def tags(self) -> None:
        """Skip the end of a structure."""
        for _ in range(self.varint()):
            self.varint()
            self._take(self.varint())

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _unpack(self, form: str) -> int:
        (value,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return int(value)

    def _take(self, length: int) -> bytes:
        data = self._data[self._at : self._at + length]
        if len(data) < length:
            raise EOFError("the answer is shorter than it should be")
        self._at += length
        return data
