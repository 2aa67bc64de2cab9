"""Finds partitions, at the start and while the job runs, and hands them to readers.

Asking the cluster is slow, and an enumerator must answer at once: a thread asks, and what it found
waits here. A partition that appears while the job runs, or while it is stopped, is read from its
beginning, so that nothing written between two looks is missed. One that disappears fails the job,
and so does a topic that was deleted and made anew (`penstock.connectors.kafka.topic_ids`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.kafka.client_log import OncePerMinute
from penstock.connectors.kafka.offsets import Partition
from penstock.connectors.kafka.partitions import owner
from penstock.connectors.kafka.topic_ids import TopicIds
from penstock.connectors.source import SplitEnumerator
from penstock.errors import (
    PenstockError,
    SourceError,
    SourceMissingError,
    SourceRefusedError,
)

log = logging.getLogger("penstock.kafka.discovery")
log.addFilter(OncePerMinute())

Find = Callable[[frozenset[Partition], bool], list[dict[str, Any]]]
"""Splits of the partitions that are not among the known ones; the flag: is this the first look."""

_SOON_MS = 1_000
"""When a cluster that did not answer is asked again, and how long readers wait for that."""

_IDS_MS = 10_000
"""How often the ids of topics are compared, at least."""

_COMPARED_SECONDS = 5.0
"""How long a job that goes on waits for a cluster that does not tell the ids of its topics."""


class KafkaEnumerator(SplitEnumerator):
    """The enumerator of a Kafka source.

    It looks for partitions when the job starts and when it goes on, and with an interval again and
    again. Ids of topics are compared in any case: now and then, and before a reader comes to its
    end.
    """

    def __init__(
        self,
        find: Find,
        ids: TopicIds,
        parallelism: int,
        interval_ms: int | None,
        restored: Plain | None,
    ) -> None:
        self._find = find
        self._ids = ids
        self._parallelism = parallelism
        self._interval_ms = interval_ms
        self._lock = threading.Lock()
        self._known: set[Partition] = set()
        self._waiting: list[dict[str, Any]] = []
        self._has_looked = restored is None
        self._ask_again_ms = self._pause_ms(self._has_looked)
        if restored is None:
            self._add(find(frozenset(), True))
            ids.compare(ids.ask(self._topics()), False)
        else:
            self._known = {(topic, number) for topic, number in restored["known"]}
            # Older versions kept none.
            ids.known.update(restored.get("ids", {}))
            self._waiting = [dict(split) for split in restored["waiting"]]
        self._due = self._next_due() if self._has_looked else time.monotonic()
        self._missing = 0
        self._problem: SourceError | None = None
        self._closed = threading.Event()
        self._compared = threading.Event()
        """Ids have been compared once, or could not be."""
        name = "penstock-kafka-discovery"
        threading.Thread(target=self._watch, name=name, daemon=True).start()
        if restored is not None:
            # Readers would run into positions that the new topic does not have, and fail of that.
            self._compared.wait(_COMPARED_SECONDS)
            self.check()

    def must_look(self, subtask: int) -> bool:
        """Whether this reader is to be told that there will be no more: it has read all it had."""
        with self._lock:
            own = any(self._owner(split) == subtask for split in self._waiting)
            return self._interval_ms is None and self._has_looked and not own

    def look(self) -> Mapping[str, str]:
        try:
            return self._ids.ask(self._topics())
        except PenstockError as error:
            log.warning("the ids of topics cannot be compared: %s", error)
            return {}

    def found(self, result: Mapping[str, str]) -> None:
        self._ids.compare(result, True)

    def next_splits(self, subtask: int) -> list[Plain] | None:
        with self._lock:
            own = [split for split in self._waiting if self._owner(split) == subtask]
            self._waiting = [split for split in self._waiting if self._owner(split) != subtask]
            has_looked = self._has_looked
        self._ask_again_ms = self._pause_ms(has_looked)
        if not own and has_looked and self._interval_ms is None:
            return None
        return own

    def ask_again_ms(self, subtask: int) -> int | None:
        return self._ask_again_ms

    def check(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _pause_ms(self, has_looked: bool) -> int | None:
        """How long until there may be news; None if there will be none."""
        if has_looked:
            return self._interval_ms
        return _SOON_MS if self._interval_ms is None else min(_SOON_MS, self._interval_ms)

    def snapshot(self) -> Plain:
        with self._lock:
            known = [list(partition) for partition in sorted(self._known)]
            waiting = [dict(split) for split in self._waiting]
        return {"known": known, "waiting": waiting, "ids": dict(self._ids.known)}

    def close(self) -> None:
        self._closed.set()

    # --- the thread ---------------------------------------------------------------------------

    def _watch(self) -> None:
        """Compare ids, and look for partitions when that is due, until there is a problem."""
        pause_ms = self._rhythm_ms() if self._has_looked else 0
        while not self._closed.wait(pause_ms / 1000):
            try:
                # First: partitions of a topic that was made anew may be missing too.
                self._ids.compare(self._ids.ask(self._topics()), self._has_looked)
                self._compared.set()
                if self._due is not None and time.monotonic() >= self._due:
                    self._look_for_partitions()
            except (SourceMissingError, SourceRefusedError) as error:
                self._problem = error
                return
            except PenstockError as error:
                # The readers notice a cluster that is away; the next look may succeed.
                log.warning("changes of topics cannot be looked for: %s", error)
            finally:
                self._compared.set()
            pause_ms = self._rhythm_ms()

    def _rhythm_ms(self) -> int:
        pause_ms = self._pause_ms(self._has_looked)
        return _IDS_MS if pause_ms is None else min(pause_ms, _IDS_MS)

    def _look_for_partitions(self) -> None:
        with self._lock:
            known = frozenset(self._known)
        try:
            found = self._find(known, False)
        except SourceMissingError:
            # Brokers may not know all topics for a moment; twice in a row is not a moment.
            self._missing += 1
            if self._missing > 1:
                raise
            return
        self._missing = 0
        self._add(found)
        self._due = self._next_due()

    def _next_due(self) -> float | None:
        """When to look for partitions again; None: never."""
        return None if self._interval_ms is None else time.monotonic() + self._interval_ms / 1000

    def _topics(self) -> set[str]:
        with self._lock:
            return {topic for topic, _ in self._known}

    def _add(self, splits: list[dict[str, Any]]) -> None:
        with self._lock:
            self._has_looked = True
            self._waiting.extend(splits)
            self._known.update((split["topic"], split["partition"]) for split in splits)

    def _owner(self, split: dict[str, Any]) -> int:
        return owner((split["topic"], split["partition"]), self._parallelism)
