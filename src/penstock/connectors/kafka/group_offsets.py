"""What the group of a source was told about positions, and what its broker said to that.

Offsets of a group are a courtesy: the job goes on from its own checkpoints. So a commit that is
refused does not fail the job; it is a warning that says what to ask for, and the metrics tell what
the broker has really taken.

A commit waits until the one before it is answered. The client may carry out the later of two first,
while it still looks for the coordinator, and then the group would stand where the earlier one was.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from penstock.connectors.kafka.fetch_errors import passes
from penstock.connectors.kafka.offsets import Partition
from penstock.connectors.kafka.rights import right_to_ask_for
from penstock.connectors.kafka.settings import log


class GroupOffsets:
    """The commits of one consumer, whose answers come in whichever thread polls the client."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._lock = threading.Lock()
        self._wanted: dict[Partition, int] = {}
        """What the broker is told next."""
        self._unanswered: dict[Partition, int] = {}
        """What it is being told."""
        self._denied: Any = None
        """Why the group may have no coordinator, if the broker said so."""
        self._refusal = ""
        """The last one that was logged, if no commit has succeeded since."""
        self.committed: dict[Partition, int] = {}
        """What the broker has taken."""
        self.succeeded = 0
        """How many commits the broker has taken."""
        self.failed = 0
        """How many it has not."""

    @property
    def waits(self) -> bool:
        """Whether the broker has yet to be told, or to answer."""
        return bool(self._unanswered or self._wanted)

    def want(self, offsets: dict[Partition, int]) -> None:
        """The broker is to be told those of `offsets` that it does not have."""
        with self._lock:
            told = {**self.committed, **self._unanswered, **self._wanted}
            news = {p: offset for p, offset in offsets.items() if told.get(p) != offset}
            self._wanted.update(news)
        if news and self._denied is not None:
            # The client gives up on a coordinator only after a long time.
            self._warn(next(iter(news)), self._denied)

    def due(self) -> dict[Partition, int]:
        """What the broker is told now, by whoever asks; nothing while it has yet to answer."""
        with self._lock:
            if self._unanswered:
                return {}
            self._unanswered, self._wanted = self._wanted, {}
            return dict(self._unanswered)

    def answered(self, error: Any, places: Iterable[Any]) -> None:
        """The answer to a commit, as the client gives it: one for all, one for each place."""
        refusals = []
        with self._lock:
            for place in places:
                partition = (place.topic, place.partition)
                if self._unanswered.get(partition) == place.offset:
                    del self._unanswered[partition]
                if (problem := place.error or error) is None:
                    self.committed[partition] = place.offset
                else:
                    refusals.append((partition, problem))
        if refusals:
            self.failed += 1
            self._warn(*refusals[0])
        else:
            self.succeeded += 1
            self._denied, self._refusal = None, ""

    def refused(self, error: Any) -> None:
        """The broker does not let the group have a coordinator: none of its offsets is taken."""
        self._denied = error
        with self._lock:
            refused = {**self._unanswered, **self._wanted}
            self._unanswered, self._wanted = {}, {}
        if refused:
            self.failed += 1
            self._warn(next(iter(refused)), error)

    def closed(self) -> None:
        """The source is closed: what has no answer by now gets none."""
        if unknown := {**self._unanswered, **self._wanted}:
            log.warning(
                "group %s: the broker did not say whether it has committed the last offsets: %s",
                self._group,
                ", ".join(f"{p[0]}-{p[1]} {offset}" for p, offset in unknown.items()),
            )

    def _warn(self, partition: Partition, problem: Any) -> None:
        """Say so, once for as long as the reason is the same; the next commit may go through."""
        if passes(problem):
            if self._denied is None:
                return
            problem = self._denied
        topic, number = partition
        reason = problem.str() + right_to_ask_for(problem, topic, self._group)
        if reason != self._refusal:
            self._refusal = reason
            log.warning(
                "offsets of topic %s, partition %d, cannot be committed for group %s: %s",
                *(topic, number, self._group, reason),
            )
