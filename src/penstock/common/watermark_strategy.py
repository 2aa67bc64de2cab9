"""Watermark strategies: how event time is read off records.

A strategy says two things. A *timestamp assigner* reads off a record when it happened, in
milliseconds since the epoch. A *watermark generator* says, from the timestamps seen so far, how
far event time has come: no record at or before the watermark is expected any more.

>>> strategy = (
...     WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
...     .with_timestamp_assigner(lambda value, record_timestamp: value["ts_ms"])
...     .with_idleness(Duration.of_minutes(1))
... )
>>> strategy.delay_ms, strategy.idle_timeout_ms
(5000, 60000)

Watermarks are made per split of a source (a Kafka partition, say) and merged by minimum; they are
sent on every `pipeline.auto-watermark-interval`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.common.output_tag import OutputTag
from penstock.common.time import Duration
from penstock.errors import ProgramError


class TimestampAssigner(ABC):
    """Reads off a record when it happened."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int | None) -> int:
        """Milliseconds since the epoch.

        `record_timestamp` is what the record had before: from its source (Kafka's timestamp, for
        example) or from an earlier assigner; None if it had none.
        """


class WatermarkOutput(ABC):
    """Where a generator says how far event time has come."""

    @abstractmethod
    def emit_watermark(self, timestamp: int) -> None:
        """No record at or before `timestamp` is expected any more. Going back is ignored."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Do not wait for this one until its next record or watermark."""

    @abstractmethod
    def mark_active(self) -> None:
        """Wait for this one again."""


class WatermarkGenerator(ABC):
    """Makes watermarks from the records of one split; it holds no state that must survive."""

    @abstractmethod
    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Called after every record: a punctuated generator emits here."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called every `pipeline.auto-watermark-interval`."""


Assigner = Callable[[Any, "int | None"], int]


@dataclass(frozen=True)
class WatermarkStrategy:
    """Where timestamps and watermarks come from; every `with_` method gives a new strategy."""

    delay_ms: int | None = None
    """How far records may be out of order, for generators of that kind."""
    generator: Callable[[], WatermarkGenerator] | None = None
    """Makes the generator of one split, for strategies with one of the user's."""
    assigner: Assigner | None = None
    idle_timeout_ms: int | None = None
    alignment: WatermarkAlignment | None = None
    jump: JumpBound | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """The timestamps of a split only ever grow."""
        return WatermarkStrategy(delay_ms=0)

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """A record is at most so much older than the newest one before it."""
        delay = _millis(max_out_of_orderness, "for_bounded_out_of_orderness")
        if delay < 0:
            raise ProgramError(f"for_bounded_out_of_orderness(): {delay} ms is negative")
        return WatermarkStrategy(delay_ms=delay)

    @staticmethod
    def for_generator(
        generator_supplier: Callable[[], WatermarkGenerator],
    ) -> WatermarkStrategy:
        """Watermarks of a generator of your own; the supplier is called once for every split."""
        if isinstance(generator_supplier, WatermarkGenerator) or not callable(generator_supplier):
            raise ProgramError(
                "for_generator() needs a class or function that makes a WatermarkGenerator, since "
                "every split has its own"
            )
        return WatermarkStrategy(generator=generator_supplier)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Event time stands still until the input ends."""
        return WatermarkStrategy()

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Assigner
    ) -> WatermarkStrategy:
        """Read timestamps off records with this assigner, or with `f(value, record_timestamp)`."""
        assign: Any = timestamp_assigner
        if isinstance(timestamp_assigner, TimestampAssigner):
            assign = timestamp_assigner.extract_timestamp
        elif not callable(timestamp_assigner):
            raise ProgramError(
                "with_timestamp_assigner() needs a TimestampAssigner or a function, not a "
                f"{type(timestamp_assigner).__name__}"
            )
        return replace(self, assigner=assign)

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """Do not wait for a split that has had no record for so long."""
        timeout = _millis(idle_timeout, "with_idleness")
        if timeout <= 0:
            raise ProgramError(f"with_idleness(): {timeout} ms is not a positive time")
        return replace(self, idle_timeout_ms=timeout)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration,
        update_interval: Duration | None = None,
    ) -> WatermarkStrategy:
        """Do not read on while this source is so far ahead of the slowest one of its group."""
        drift = _millis(max_allowed_watermark_drift, "with_watermark_alignment")
        every = 1000
        if update_interval is not None:
            every = _millis(update_interval, "with_watermark_alignment")
        if drift < 0 or every <= 0:
            raise ProgramError(
                "with_watermark_alignment(): the drift must not be negative and the update "
                f"interval must be positive, not {drift} ms and {every} ms"
            )
        return replace(self, alignment=WatermarkAlignment(watermark_group, drift, every))

    def with_max_jump(
        self, max_jump: Duration, output_tag: OutputTag | None = None
    ) -> WatermarkStrategy:
        """Keep records of a wrong clock from closing every window.

        A record that is so far ahead of both the processing time and the newest record before it
        is diverted: counted as `numRecordsAheadOfTime`, sent to the side output `output_tag` if
        there is one, and otherwise left out.
        """
        bound = _millis(max_jump, "with_max_jump")
        if bound <= 0:
            raise ProgramError(f"with_max_jump(): {bound} ms is not a positive time")
        tag = None if output_tag is None else output_tag.tag_id
        return replace(self, jump=JumpBound(bound, tag))

    def diverts_to(self, output_tag: OutputTag) -> bool:
        """Whether records that are too far ahead go to this side output."""
        return self.jump is not None and self.jump.tag == output_tag.tag_id


@dataclass(frozen=True)
class WatermarkAlignment:
    """Sources of one group stay within `drift_ms` of the slowest."""

    group: str
    drift_ms: int
    update_interval_ms: int


@dataclass(frozen=True)
class JumpBound:
    """How far ahead a record may be, and where it goes otherwise."""

    bound_ms: int
    tag: str | None


def _millis(length: Any, where: str) -> int:
    if not isinstance(length, Duration):
        raise ProgramError(f"{where}() needs a Duration, not a {type(length).__name__}")
    return length.to_millis()
