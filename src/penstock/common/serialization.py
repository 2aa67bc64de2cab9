"""How a record is written to a file: an encoder, by PyFlink's name.

>>> Encoder.simple_string_encoder().encode(42)
b'42\\n'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.errors import ProgramError


class Encoder(ABC):
    """Turns a record into the bytes that stand for it in a file."""

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """The bytes of one record, with whatever ends it."""

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """A record as its string, on a line of its own."""
        return _LineEncoder(charset_name)


class _LineEncoder(Encoder):
    def __init__(self, charset: str) -> None:
        try:
            "".encode(charset)
        except LookupError as error:
            raise ProgramError(f"there is no charset {charset}") from error
        self._charset = charset

    def encode(self, value: Any) -> bytes:
        return f"{value}\n".encode(self._charset)
