"""Columns: many values of one declared type as bytes, compact and made at the speed of C.

A column says itself what it holds, by a letter at its front, so reading one needs no declaration.
Writing follows the declared type; values of types that nobody declared are pickled. To unpickle is
to run what the bytes say, so whoever reads decides what is done with a pickled column.

>>> from penstock.common.typeinfo import Types
>>> numbers = encode_column(Types.LIST(Types.LONG()), [[1, 2], [], [3, None]])
>>> len(numbers), decode_column(numbers, 3)
(14, [[1, 2], [], [3, None]])

Nothing is lost: a whole number keeps all its digits whatever width was declared, and a float all
its bits. A value that cannot be what was declared is a TypeMismatchError.
"""

from __future__ import annotations

import datetime
import decimal
import json
import pickle
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from penstock import kept
from penstock.common.slices import listed
from penstock.common.spool import Part, whole
from penstock.common.time import Instant
from penstock.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicTypeInfo,
    InstantTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    SqlTimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from penstock.common.typeinfo.base import mismatch
from penstock.common.types import Row, RowKind
from penstock.errors import CorruptCheckpointError

_LENGTH = struct.Struct("<Q")
_WIDTHS = (("b", 1 << 7), ("h", 1 << 15), ("i", 1 << 31), ("q", 1 << 63))
_LISTS = (ListTypeInfo, ObjectArrayTypeInfo, BasicArrayTypeInfo, PrimitiveArrayTypeInfo)
_NONE = type(None)
_TEMPORAL = {
    "DATE": (b"c", datetime.date),
    "TIME": (b"t", datetime.time),
    "TIMESTAMP": (b"m", datetime.datetime),
}

Parts = list[Part]
"""Bytes that are not joined yet: joining many megabytes takes time."""


def encode_column(kind: TypeInformation, values: Sequence[Any]) -> bytes:
    """The values, each of which may be None; TypeMismatchError for one that is not of the type."""
    parts: Parts = []
    write_column(parts, kind, values)
    return whole(parts)


def decode_column(data: bytes, count: int) -> list[Any]:
    """The `count` values that were written."""
    return ColumnReader(data).column(count)


# --- writing ----------------------------------------------------------------------------------


def write_column(
    parts: Parts, kind: TypeInformation, values: Sequence[Any], only: type | None = None
) -> None:
    """Append the bytes of a column to `parts`.

    `only`, if given, is the type of all values: whoever knows it spares the time to look.
    """
    if not values:
        # Any column of numbers will do: it takes one byte.
        parts.append(b"b")
        return
    types = set(map(type, values)) if only is None else {only}
    if _NONE in types:
        parts.append(b"N")
        parts.append(bytes([value is not None for value in values]))
        write_column(parts, kind, [value for value in values if value is not None])
        return
    _writer(kind)(parts, kind, values, types)


def joined_letter(kind: TypeInformation, only: type | None) -> bytes | None:
    """The letter of a column that is its values, joined, if all are of the type `only`.

    None where a column is more than that.
    """
    return None if only is None else _JOINED.get((_writer(kind), only))


def write_joined(parts: Parts, letter: bytes, lengths: Sequence[int], data: Parts) -> None:
    """Append a column of values that are joined already."""
    parts.append(letter)
    _ints(parts, lengths)
    parts.append(_LENGTH.pack(sum(map(len, data))))
    parts.extend(data)


Writer = Callable[[Parts, Any, Sequence[Any], "set[type]"], None]


def _writer(kind: TypeInformation) -> Writer:
    if isinstance(kind, BasicTypeInfo):
        return _BASIC[kind.name]
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_immutable():
        return _write_bytes
    if isinstance(kind, _LISTS):
        return _write_lists
    return _WRITERS.get(type(kind), _write_pickled)


def _fitting(
    kind: TypeInformation, plain: type, values: Sequence[Any], types: set[type]
) -> Sequence[Any]:
    """The values as `plain`; those that are something else must be equal to one that is."""
    if types <= {plain}:
        return values
    fitting = []
    for value in values:
        converted = kind.to_internal_type(value)
        # NaN is equal to nothing and fits all the same.
        if converted.__class__ is not plain or (converted != value and value == value):
            raise mismatch(kind, value)
        fitting.append(converted)
    return fitting


def _write_text(parts: Parts, kind: TypeInformation, values: Sequence[Any], types: Any) -> None:
    _texts(parts, b"s", _fitting(kind, str, values, types))


def _texts(parts: Parts, letter: bytes, texts: Sequence[str]) -> None:
    # First what touches all of each text: then its length is near.
    data = "".join(texts).encode("utf-8", "surrogatepass")
    write_joined(parts, letter, list(map(len, texts)), [data])


def _sized(parts: Parts, data: bytes) -> None:
    parts.append(_LENGTH.pack(len(data)))
    parts.append(data)


def _write_bytes(parts: Parts, kind: TypeInformation, values: Sequence[Any], types: Any) -> None:
    plain = _fitting(kind, bytes, values, types)
    write_joined(parts, b"y", list(map(len, plain)), [b"".join(plain)])


def _write_ints(parts: Parts, kind: TypeInformation, values: Sequence[Any], types: Any) -> None:
    _ints(parts, _fitting(kind, int, values, types))


def _ints(parts: Parts, numbers: Sequence[int]) -> None:
    try:
        small = bytes(numbers)
    except ValueError:
        pass
    else:
        # Lengths mostly are: nothing below 0 and nothing above 127.
        if small.isascii():
            parts.append(b"b")
            parts.append(small)
            return
    low, high = (min(numbers), max(numbers)) if numbers else (0, 0)
    for code, bound in _WIDTHS:
        if -bound <= low and high < bound:
            column = array(code, numbers)
            if sys.byteorder == "big":
                column.byteswap()
            parts.append(code.encode())
            parts.append(column.tobytes())
            return
    _texts(parts, b"G", [f"{number:x}" for number in numbers])


def _write_floats(parts: Parts, kind: TypeInformation, values: Sequence[Any], types: Any) -> None:
    # As doubles whatever was declared: what comes back must be what was there.
    column = array("d", _fitting(Types.DOUBLE(), float, values, types))
    if sys.byteorder == "big":
        column.byteswap()
    parts.append(b"d")
    parts.append(column.tobytes())


def _write_flags(parts: Parts, kind: TypeInformation, values: Sequence[Any], types: Any) -> None:
    parts.append(b"?")
    parts.append(bytes(_fitting(kind, bool, values, types)))


def _write_decimals(parts: Parts, kind: TypeInformation, values: Sequence[Any], types: Any) -> None:
    _texts(parts, b"D", list(map(str, _fitting(kind, decimal.Decimal, values, types))))


def _write_times(parts: Parts, kind: SqlTimeTypeInfo, values: Sequence[Any], types: Any) -> None:
    letter, plain = _TEMPORAL[kind.kind]
    # By their text: state keeps what is below a millisecond and the offset, which records lose.
    _texts(parts, letter, [v.isoformat() for v in _fitting(kind, plain, values, types)])


def _write_instants(parts: Parts, kind: InstantTypeInfo, values: Sequence[Any], types: Any) -> None:
    plain = _fitting(kind, Instant, values, types)
    parts.append(b"I")
    _ints(parts, [instant.seconds for instant in plain])
    _ints(parts, [instant.nanos for instant in plain])


def _write_lists(parts: Parts, kind: Any, values: Sequence[Any], types: Any) -> None:
    lists = values if types <= {list} else [kind.to_internal_type(value) for value in values]
    parts.append(b"L")
    _ints(parts, list(map(len, lists)))
    write_column(parts, kind.element_type, [item for each in lists for item in each])


def _write_maps(parts: Parts, kind: MapTypeInfo, values: Sequence[Any], types: Any) -> None:
    maps = values if types <= {dict} else [kind.to_internal_type(value) for value in values]
    parts.append(b"M")
    _ints(parts, list(map(len, maps)))
    write_column(parts, kind.key_type, [key for each in maps for key in each])
    write_column(parts, kind.value_type, [value for each in maps for value in each.values()])


def _write_tuples(parts: Parts, kind: TupleTypeInfo, values: Sequence[Any], types: Any) -> None:
    width = len(kind.field_types)
    if not types <= {tuple} or any(len(value) != width for value in values):
        values = [kind.to_internal_type(value) for value in values]
    parts.append(b"T")
    _ints(parts, [width])
    for index, field in enumerate(kind.field_types):
        write_column(parts, field, [value[index] for value in values])


def _write_rows(parts: Parts, kind: RowTypeInfo, values: Sequence[Any], types: Any) -> None:
    names = list(kind.field_names)
    if not types <= {Row} or any(row._fields != names for row in values):
        values = [kind.to_internal_type(value) for value in values]
    parts.append(b"R")
    _sized(parts, json.dumps(names).encode())
    _ints(parts, [row.get_row_kind().value for row in values])
    for index, field in enumerate(kind.field_types):
        write_column(parts, field, [row._values[index] for row in values])


def _write_pickled(parts: Parts, kind: TypeInformation, values: Sequence[Any], types: Any) -> None:
    frames = _Frames()
    pickle.Pickler(frames, protocol=5).dump(list(values))
    parts.append(b"P")
    parts.append(_LENGTH.pack(sum(map(len, frames.taken))))
    parts.extend(frames.taken)


class _Frames:
    """What a pickler makes, as a file. It writes a frame of 64 KiB, or one large object, at a time.

    To write it calls this, which is Python; so the interpreter can let other threads run. Without a
    file all values would be pickled in one go, and a heartbeat would wait for the last.
    """

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def write(self, data: bytes) -> None:
        # A large object may come as it is, and change later.
        self.taken.append(bytes(data))


_BASIC: dict[str, Writer] = {
    "STRING": _write_text,
    "CHAR": _write_text,
    "BOOLEAN": _write_flags,
    **dict.fromkeys(("BYTE", "SHORT", "INT", "LONG", "BIG_INT"), _write_ints),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _write_floats),
    "BIG_DEC": _write_decimals,
}
_JOINED: dict[tuple[Writer, type], bytes] = {
    (_write_text, str): b"s",
    (_write_bytes, bytes): b"y",
}
_WRITERS: dict[type, Writer] = {
    SqlTimeTypeInfo: _write_times,
    InstantTypeInfo: _write_instants,
    MapTypeInfo: _write_maps,
    TupleTypeInfo: _write_tuples,
    RowTypeInfo: _write_rows,
}


# --- reading ----------------------------------------------------------------------------------


Unpickle = Callable[[bytes], list[Any]]
"""Makes values of a pickled column, or refuses to."""


def unpickled(data: bytes) -> list[Any]:
    """The values of a pickled column, made again."""
    return kept.loads(data)  # type: ignore[no-any-return]


class ColumnReader:
    """Reads columns one after another, from verified bytes."""

    def __init__(self, data: bytes, position: int = 0, unpickle: Unpickle = unpickled) -> None:
        self._data = data
        self.position = position
        self.unpickle = unpickle
        """For the columns that are read from now on."""

    def column(self, count: int) -> list[Any]:
        """The next column, of `count` values."""
        letter = self._take(1)
        if letter == b"N":
            there = self._take(count)
            values = iter(self.column(sum(there)))
            return [next(values) if is_there else None for is_there in there]
        reader = _READERS.get(letter)
        if reader is None:
            raise CorruptCheckpointError(f"a column of state begins with {letter!r}")
        return reader(self, letter, count)

    def _take(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        return self._data[start : self.position]

    def _sized(self) -> bytes:
        (size,) = _LENGTH.unpack(self._take(_LENGTH.size))
        return self._take(size)

    def _numbers(self, letter: bytes, count: int) -> list[Any]:
        column = array(letter.decode())
        column.frombytes(self._take(count * column.itemsize))
        if sys.byteorder == "big":
            column.byteswap()
        return listed(column)

    def _flags(self, letter: bytes, count: int) -> list[Any]:
        return listed(map(bool, self._take(count)))

    def _texts(self, letter: bytes, count: int) -> list[Any]:
        lengths = self.column(count)
        text = self._sized().decode("utf-8", "surrogatepass")
        texts = _pieces(text, lengths)
        parse = _PARSED.get(letter)
        return texts if parse is None else listed(map(parse, texts))

    def _bytes(self, letter: bytes, count: int) -> list[Any]:
        lengths = self.column(count)
        return _pieces(self._sized(), lengths)

    def _instants(self, letter: bytes, count: int) -> list[Any]:
        return list(map(Instant, self.column(count), self.column(count)))

    def _lists(self, letter: bytes, count: int) -> list[Any]:
        lengths = self.column(count)
        return _pieces(self.column(sum(lengths)), lengths)

    def _maps(self, letter: bytes, count: int) -> list[Any]:
        lengths = self.column(count)
        total = sum(lengths)
        keys, values = self.column(total), self.column(total)
        pairs = zip(_pieces(keys, lengths), _pieces(values, lengths), strict=True)
        return [dict(zip(ks, vs, strict=True)) for ks, vs in pairs]

    def _tuples(self, letter: bytes, count: int) -> list[Any]:
        (width,) = self.column(1)
        columns = [self.column(count) for _ in range(width)]
        return listed(zip(*columns, strict=True)) if width else [()] * count

    def _rows(self, letter: bytes, count: int) -> list[Any]:
        names = json.loads(self._sized())
        kinds = self.column(count)
        columns = [self.column(count) for _ in names]
        rows = []
        for index, kind in enumerate(kinds):
            row = Row(*[column[index] for column in columns])
            row.set_field_names(names)
            if kind:
                row.set_row_kind(RowKind(kind))
            rows.append(row)
        return rows

    def _pickled(self, letter: bytes, count: int) -> list[Any]:
        return self.unpickle(self._sized())


def _pieces(whole: Any, lengths: list[int]) -> list[Any]:
    ends = listed(accumulate(lengths))
    return [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)]


_PARSED: dict[bytes, Callable[[str], Any]] = {
    b"G": lambda text: int(text, 16),
    b"D": decimal.Decimal,
    b"c": datetime.date.fromisoformat,
    b"t": datetime.time.fromisoformat,
    b"m": datetime.datetime.fromisoformat,
}
_READERS: dict[bytes, Callable[[ColumnReader, bytes, int], list[Any]]] = {
    **dict.fromkeys((b"b", b"h", b"i", b"q", b"d"), ColumnReader._numbers),
    **dict.fromkeys((b"s", b"G", b"D", b"c", b"t", b"m"), ColumnReader._texts),
    b"?": ColumnReader._flags,
    b"y": ColumnReader._bytes,
    b"I": ColumnReader._instants,
    b"L": ColumnReader._lists,
    b"M": ColumnReader._maps,
    b"T": ColumnReader._tuples,
    b"R": ColumnReader._rows,
    b"P": ColumnReader._pickled,
}
