"""Records of a source: what is made of a message, and what happens when nothing can be.

A *decoder* is a function from messages to as many records: one call for many, since calls are what
costs. Those here are built from schemas that turn bytes into values; a full-record decoder sees all
of a message as a `ConsumerRecord`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any

from penstock import kept
from penstock.common.serialization import DeserializationSchema
from penstock.connectors.bad_records import BadRecord
from penstock.connectors.kafka.settings import need_client
from penstock.errors import ProgramError, RecordError

Decode = Callable[[list[Any]], list[Any]]
"""From messages of the client library to records."""
_Part = Callable[[bytes | None], Any]

_SHOWN_BYTES = 100


_PARTS = attrgetter("topic", "partition", "offset", "timestamp", "key", "value", "headers")


@kept.named("ConsumerRecord", _PARTS)
@dataclass(frozen=True)
class ConsumerRecord:
    """A message, whole."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970, as the producer or the broker set it; -1 without one."""
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...] = ()


class BadRecords(Enum):
    """What happens to messages that cannot be decoded."""

    FAIL = "fail"
    SKIP = "skip"
    KEEP = "keep"
    """A `BadRecord` takes their place."""


class JsonSchema(DeserializationSchema):
    """JSON, in UTF-8: objects become dicts."""

    def deserialize(self, message: bytes) -> Any:
        return json.loads(message)


@dataclass(frozen=True)
class ValueDecoder:
    """The value alone. A message without a value is None."""

    schema: DeserializationSchema | None = None

    def compiled(self) -> Decode:
        value_of = need_client().Message.value
        if self.schema is None:
            return lambda messages: [
                None if data is None else data.decode() for data in map(value_of, messages)
            ]
        deserialize = self.schema.deserialize
        return lambda messages: [
            None if data is None else deserialize(data) for data in map(value_of, messages)
        ]


@dataclass(frozen=True)
class KeyValueDecoder:
    """Pairs of key and value."""

    key: DeserializationSchema | None = None
    value: DeserializationSchema | None = None

    def compiled(self) -> Decode:
        of_key, of_value = _part(self.key), _part(self.value)
        return lambda messages: [
            (of_key(message.key()), of_value(message.value())) for message in messages
        ]


@dataclass(frozen=True)
class RecordDecoder:
    """A `ConsumerRecord`, or what `function` makes of one."""

    key: DeserializationSchema | None = None
    value: DeserializationSchema | None = None
    function: Callable[[ConsumerRecord], Any] | None = None
    raw: bool = False
    """Key and value stay bytes: what they mean is the function's business."""

    def compiled(self) -> Decode:
        of_key, of_value = (_same, _same) if self.raw else (_part(self.key), _part(self.value))
        function = self.function

        def decode(message: Any) -> Any:
            record = _whole(message, of_key, of_value)
            return record if function is None else function(record)

        return lambda messages: list(map(decode, messages))


Decoder = ValueDecoder | KeyValueDecoder | RecordDecoder


def check_schema(schema: Any, method: str) -> DeserializationSchema:
    """The schema, if it is one."""
    if not callable(getattr(schema, "deserialize", None)):
        raise ProgramError(
            f"{method}() needs a DeserializationSchema, not a {type(schema).__name__}"
        )
    found: DeserializationSchema = schema
    return found


def bad_message(message: Any, error: Exception) -> RecordError:
    """The error for a message that cannot be decoded: where it is, what is wrong, how it begins."""
    place = f"topic {message.topic()}, partition {message.partition()}, offset {message.offset()}"
    value = message.value()
    shown = "no value" if value is None else repr(value[:_SHOWN_BYTES])
    dots = "..." if value is not None and len(value) > _SHOWN_BYTES else ""
    what = f"{type(error).__name__}: {error}"
    return RecordError(f"{place}: the record cannot be decoded: {what}: {shown}{dots}", place)


def kept_message(message: Any, error: Exception) -> BadRecord:
    """What takes the place of a message that cannot be decoded: all of it, as bytes."""
    return BadRecord(f"{type(error).__name__}: {error}", _whole(message, _same, _same))


def _whole(message: Any, of_key: _Part, of_value: _Part) -> ConsumerRecord:
    return ConsumerRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        of_key(message.key()),
        of_value(message.value()),
        tuple(message.headers() or ()),
    )


def _part(schema: DeserializationSchema | None) -> _Part:
    deserialize = bytes.decode if schema is None else schema.deserialize
    return lambda data: None if data is None else deserialize(data)


def _same(data: bytes | None) -> bytes | None:
    return data
