"""What takes the place of a record that a source cannot decode, where the job is to go on.

It travels as a record does, so that nothing is lost and the order is kept; a timestamp assigner
does not see it. `DivertBadRecords`, of `penstock.datastream.connectors.base`, sends it to a side
output.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from penstock import kept


@kept.named("BadRecord", attrgetter("error", "record"))
@dataclass(frozen=True)
class BadRecord:
    """A record that cannot be decoded."""

    error: str
    """What went wrong: the kind of the error and its message."""
    record: Any
    """What there was to decode, raw; of Kafka a `ConsumerRecord` with key and value as bytes."""
