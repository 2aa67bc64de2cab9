"""Messages of a sink: which topic, key, value, headers, timestamp and partition a record gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.serialization import SerializationSchema
from penstock.errors import ProgramError, RecordError

_END_OF_TIME = (1 << 63) - 1
"""The timestamp of results of windows without event time, such as those that count."""
_FIRST = 1
"""Written for 0, which the client library takes for "now", in every way that it has to produce."""

ToMessage = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class MessageSchema:
    """How a record becomes a message."""

    topic: str | Callable[[Any], str]
    key: SerializationSchema | None = None
    value: SerializationSchema | None = None
    headers: Callable[[Any], Any] | None = None
    timestamp: Callable[[Any], int] | None = None
    """Without one, a message has the timestamp of its record, if that is one that Kafka takes."""
    partition: Callable[[Any, Any], int] | None = None
    """From the record and its key's bytes to the number of a partition."""

    def compiled(self) -> ToMessage:
        """A function from a record and its timestamp to the arguments of `produce`."""
        topic, fixed = self.topic, isinstance(self.topic, str)
        of_value = plain_bytes if self.value is None else self.value.serialize
        of_key = None if self.key is None else self.key.serialize
        headers, timestamp, partition = self.headers, self.timestamp, self.partition

        def message(record: Any, time: int | None = None) -> dict[str, Any]:
            made: dict[str, Any] = {
                "topic": topic if fixed else topic(record),  # type: ignore[operator]
                "value": of_value(record),
            }
            key = None
            if of_key is not None:
                made["key"] = key = of_key(record)
            if headers is not None:
                made["headers"] = headers(record)
            if timestamp is not None:
                made["timestamp"] = timestamp(record) or _FIRST
            elif time is not None and 0 <= time < _END_OF_TIME:
                made["timestamp"] = time or _FIRST
            if partition is not None:
                made["partition"] = partition(record, key)
            return made

        return message


def plain_bytes(record: Any) -> bytes | None:
    """A record without a schema: str and bytes as they are, None as none, all else as JSON."""
    if isinstance(record, str):
        return record.encode()
    if record is None or isinstance(record, bytes):
        return record
    try:
        return json.dumps(record).encode()
    except (TypeError, ValueError) as error:
        raise RecordError(
            f"a record of type {type(record).__name__} cannot be written as JSON: {error}; give "
            "the sink a value serialization schema, or map records to str first"
        ) from error


def check_serializer(schema: Any, method: str) -> SerializationSchema:
    """The schema, if it is one."""
    if not callable(getattr(schema, "serialize", None)):
        raise ProgramError(f"{method}() needs a SerializationSchema, not a {type(schema).__name__}")
    found: SerializationSchema = schema
    return found
