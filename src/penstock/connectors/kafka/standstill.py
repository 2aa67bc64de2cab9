"""A source that makes no progress says so: nothing comes although there is something to come."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from penstock.connectors.kafka.offsets import Partition
from penstock.connectors.kafka.settings import log

_PATIENCE_SECONDS = 60.0


class Standstill:
    """Watches over one consumer; called by whoever has it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._trouble: str | None = None
        self._ends: dict[Partition, int] = {}
        """Where the client said that a partition ends."""

    def heard(self) -> None:
        """Messages came, or marks of an end."""
        self._since = self._clock()
        self._trouble = None

    def ended(self, partition: Partition, offset: int) -> None:
        """The client has come to the end of a partition."""
        self._ends[partition] = offset

    def cut_off(self, trouble: str) -> None:
        """No broker can be reached."""
        self._trouble = trouble

    def due(self) -> bool:
        """Whether nothing was heard for so long that it is worth a look."""
        return self._clock() - self._since >= _PATIENCE_SECONDS

    def look(self, positions: Mapping[Partition, int], ends: Mapping[Partition, int]) -> None:
        """Warn if records wait behind `positions`, or if no broker can be reached.

        `ends` are the ends of partitions as far as the client knows. The next look is due later.
        """
        seconds = self._clock() - self._since
        self._since += seconds
        behind = {
            partition: offset
            for partition, offset in positions.items()
            if max(offset, self._ends.get(partition, 0)) < ends.get(partition, 0)
        }
        for (topic, number), offset in sorted(behind.items())[:1]:
            more = f", and {len(behind) - 1} more partitions" if len(behind) > 1 else ""
            log.warning(
                "no record came for %.0f s: topic %s, partition %d, stands at offset %d of %d%s%s",
                *(seconds, topic, number, offset, ends[topic, number], more),
                f"; {self._trouble}" if self._trouble else "",
            )
        if not behind and self._trouble is not None:
            log.warning("no record came for %.0f s: %s", seconds, self._trouble)
