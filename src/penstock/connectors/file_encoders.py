"""Encoders for row formats, besides lines of text.

>>> JsonLineEncoder()({"name": "Zoë", "tags": ("a", "b")})
b'{"name": "Zo\\xc3\\xab", "tags": ["a", "b"]}\\n'
"""

from __future__ import annotations

import json
from typing import Any

from penstock.common.serialization import Encoder
from penstock.common.typeinfo.base import shorten
from penstock.common.types import Row
from penstock.errors import RecordError


class JsonLineEncoder(Encoder):
    """Every record is a JSON value on a line of its own; a Row is an object, or an array.

    What JSON has no form for (a date, a set, a NaN) is a RecordError that names the record: map
    records to plain values first.
    """

    def __init__(self) -> None:
        self._dump = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, default=_plain_row, check_circular=True
        ).encode

    def encode(self, value: Any) -> bytes:
        try:
            return f"{self._dump(value)}\n".encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise RecordError(
                f"a record cannot be written as JSON: {error}: {shorten(value)}"
            ) from error

    # One call per record, not two.
    __call__ = encode


def _plain_row(value: Any) -> Any:
    if isinstance(value, Row):
        try:
            return value.as_dict()
        except TypeError:
            return list(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")
