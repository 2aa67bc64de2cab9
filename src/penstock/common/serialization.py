"""Schemas: how records become bytes and bytes become records.

Subclass `SerializationSchema` or `DeserializationSchema` for a format of your own.

>>> schema = SimpleStringSchema()
>>> schema.serialize("zażółć"), schema.deserialize(b"a")
(b'za\\xc5\\xbc\\xc3\\xb3\\xc5\\x82\\xc4\\x87', 'a')
>>> Encoder.simple_string_encoder().encode(7)
b'7\\n'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.common.bulk_writer import BulkWriterFactory
from penstock.common.typeinfo.base import TypeInformation, shorten
from penstock.common.typeinfo.texts import text_of
from penstock.errors import ProgramError, TypeMismatchError

__all__ = [
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(ABC):
    """Turns a record into bytes."""

    @abstractmethod
    def serialize(self, value: Any) -> bytes | None:
        """The bytes of a record; None for none (where the system written to has such a thing)."""


class DeserializationSchema(ABC):
    """Turns bytes into a record."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """The record that is in the bytes."""


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Strings, in this character set."""

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = check_charset(charset)

    def serialize(self, value: Any) -> bytes:
        """A str as bytes; TypeMismatchError for anything else."""
        if not isinstance(value, str):
            raise _not_a("str", value, "SimpleStringSchema", "map records to str first")
        return value.encode(self._charset)

    def deserialize(self, message: bytes) -> str:
        """Bytes as a str."""
        return message.decode(self._charset)


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def serialize(self, value: Any) -> bytes:
        """The same bytes; TypeMismatchError for anything else."""
        if not isinstance(value, (bytes, bytearray)):
            raise _not_a("bytes", value, "ByteArraySchema", "map records to bytes first")
        return bytes(value)

    def deserialize(self, message: bytes) -> bytes:
        """The same bytes."""
        return message


class RowFieldExtractorSchema(SerializationSchema):
    """One field of a row or tuple, which holds bytes."""

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"a field index of {field_index} points nowhere")
        self._field_index = field_index

    def serialize(self, value: Any) -> bytes:
        """The field's bytes; none of them where the field, or the row, is None."""
        field = None if value is None else value[self._field_index]
        if field is None:
            return b""
        if isinstance(field, bytes | bytearray):
            return bytes(field)
        raise _not_a("bytes", field, "RowFieldExtractorSchema", "make the field bytes first")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RowFieldExtractorSchema) and self._field_index == other._field_index
        )

    def __hash__(self) -> int:
        return hash(self._field_index)


class Encoder(ABC):
    """Turns a record into what is written to a file for it."""

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """The bytes of a record, with whatever separates it from the next."""

    def __call__(self, value: Any) -> bytes:
        return self.encode(value)

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """As it prints, on a line of its own."""
        return LineEncoder(charset_name)


class LineEncoder(Encoder):
    """Every record on a line of its own, as `print()` shows values of its declared type."""

    def __init__(self, charset: str, declared: TypeInformation | None = None) -> None:
        self._charset = check_charset(charset)
        self._declared = declared
        self._text = text_of(declared)

    def for_type(self, declared: TypeInformation | None) -> LineEncoder:
        """The same for records of this type."""
        return LineEncoder(self._charset, declared)

    def encode(self, value: Any) -> bytes:
        return f"{self._text(value)}\n".encode(self._charset)

    def __reduce__(self) -> tuple[Any, ...]:
        return LineEncoder, (self._charset, self._declared)

    # One call per record, not two.
    __call__ = encode


def check_charset(charset: str) -> str:
    """The charset, if there is one of this name; an unknown one is found before any record is."""
    try:
        "".encode(charset)
    except LookupError:
        raise ProgramError(f"there is no character set {charset!r}") from None
    return charset


def _not_a(expected: str, value: Any, schema: str, hint: str) -> TypeMismatchError:
    return TypeMismatchError(
        f"{schema} takes {expected}, not {type(value).__name__}; {hint}", shown=shorten(value)
    )
