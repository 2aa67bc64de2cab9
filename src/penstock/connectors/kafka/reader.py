"""Reads partitions in a slot: each poll returns records of one partition, in the order of offsets.

A position is the offset after the last record that a poll returned, so what was fetched and not
yet polled is fetched again after a restore.

Messages are sorted, decoded and stamped many at a time: a call for each of them costs as much as
the client library needs to bring it.

A paused partition is paused in the client too; what it had fetched of it before waits here.

A partition that was read to its end stays among the positions until the group has heard of it: when
a checkpoint covers them the group is told, and a slot that dies just then has told nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.kafka.fetcher import Batch, Fetcher
from penstock.connectors.kafka.offsets import Partition
from penstock.connectors.kafka.records import BadRecords, Decode, bad_message, kept_message
from penstock.connectors.kafka.settings import need_client
from penstock.connectors.source import SourceReader
from penstock.metrics import MetricGroup

Fetched = tuple[Partition, list[Any], bool]
"""Messages of a partition, and whether marks of its end are among them."""


class KafkaReader(SourceReader):
    """The reader of a Kafka source."""

    pauses_splits = True

    def __init__(
        self,
        make_fetcher: Callable[[], Fetcher],
        decode: Decode,
        on_bad: BadRecords,
        timed: bool,
        commits: bool,
        metrics: MetricGroup,
        renewed: Callable[[list[Plain]], list[Plain]] = list,
    ) -> None:
        self._renewed = renewed
        """Gives splits of topics that were made anew another position."""
        self._make_fetcher = make_fetcher
        self._fetcher: Fetcher | None = None
        self._decode = decode
        self._on_bad = on_bad
        self._timed = timed
        self._commits = commits
        self._splits: dict[Partition, dict[str, Any]] = {}
        self._ended: dict[Partition, dict[str, Any]] = {}
        """Splits that were read to their ends, of which the group may not have heard."""
        self._fetched: deque[Fetched] = deque()
        self._taken = 0
        """How many messages of the first of those are polled."""
        self._paused: set[Partition] = set()
        self._held: list[Fetched] = []
        """What was fetched of paused partitions."""
        self._last: Partition | None = None
        self._metrics = metrics
        self._bad = metrics.counter("numRecordsInErrors")
        metrics.gauge("pendingRecords", self._lag)

    def open(self) -> None:
        self._fetcher = self._make_fetcher()
        told, group = self._fetcher.group, self._metrics.add_group("KafkaSourceReader")
        group.gauge("commitsSucceeded", lambda: told.succeeded)
        group.gauge("commitsFailed", lambda: told.failed)

    def add_splits(self, splits: list[Plain]) -> None:
        starts = {}
        for split in self._renewed(splits):
            place = (split["topic"], split["partition"])
            self._splits[place] = dict(split)
            self._watch(place)
            if not self._is_read(self._splits[place], split["offset"]):
                starts[place] = split["offset"]
        if starts:
            self._fetching().add(starts)

    # --- polling ------------------------------------------------------------------------------

    def poll(self, limit: int) -> list[Any] | None:
        self._last = None
        while self._splits:
            if not self._fetched:
                batch = self._fetching().take()
                if batch is None:
                    return []
                self._sort(_by_partition(batch))
                continue
            place, messages, marks = self._next(limit)
            split = self._splits.get(place)
            if split is not None and (records := self._records(place, split, messages, marks)):
                self._last = place
                return records
        return None

    def _sort(self, fetched: Iterable[Fetched]) -> None:
        """What is paused waits; the rest can be polled."""
        for part in fetched:
            (self._held if part[0] in self._paused else self._fetched).append(part)

    def _next(self, limit: int) -> Fetched:
        """The next messages of those that were fetched."""
        place, messages, marks = self._fetched[0]
        start, self._taken = self._taken, self._taken + limit
        if self._taken >= len(messages):
            self._fetched.popleft()
            self._taken = 0
        return place, messages[start : start + limit], marks

    def _records(
        self, place: Partition, split: dict[str, Any], messages: list[Any], marks: bool
    ) -> list[Any]:
        """The records among `messages`; moves the split past them, and ends it at its end."""
        stop = split["stop"]
        last = messages[-1]
        end = last.offset() + (last.error() is None)
        if marks:
            # Those that follow the mark of an end came later.
            messages = [message for message in messages if message.error() is None]
        if stop is not None and end > stop:
            messages = [message for message in messages if message.offset() < stop]
        records = self._decoded(messages)
        split["offset"] = end if stop is None else min(end, stop)
        if self._is_read(split, end):
            self._fetching().remove(place)
        return records

    def _is_read(self, split: dict[str, Any], end: int) -> bool:
        """Whether `end` is the end of the split; then it is read no more."""
        if split["stop"] is None or end < split["stop"]:
            return False
        place = (split["topic"], split["partition"])
        del self._splits[place]
        if self._commits:
            self._ended[place] = split
        self._paused.discard(place)
        return True

    def _decoded(self, messages: list[Any]) -> list[Any]:
        try:
            values = self._decode(messages)
        except Exception:
            messages, values = self._one_by_one(messages)
        if not self._timed:
            return values
        times = [time for _, time in map(need_client().Message.timestamp, messages)]
        return list(zip(values, times, strict=True))

    def _one_by_one(self, messages: list[Any]) -> tuple[list[Any], list[Any]]:
        """As `_decoded`, when one of them is bad: say which, leave it out, or mark it."""
        good, values = [], []
        for message in messages:
            try:
                values += self._decode([message])
            except Exception as error:
                if self._on_bad is BadRecords.FAIL:
                    raise bad_message(message, error) from error
                self._bad.inc()
                if self._on_bad is BadRecords.SKIP:
                    continue
                values.append(kept_message(message, error))
            good.append(message)
        return good, values

    # --- positions ----------------------------------------------------------------------------

    def split_of_last_poll(self) -> Hashable | None:
        """The partition whose records the last poll returned."""
        return self._last

    def active_splits(self) -> list[Hashable]:
        """The partitions that are being read."""
        return list(self._splits)

    def snapshot(self) -> list[Plain]:
        if self._ended:
            told = self._fetching().group.committed
            left = {p: s for p, s in self._ended.items() if told.get(p) != s["offset"]}
            self._ended = left
        return [dict(split) for split in (*self._ended.values(), *self._splits.values())]

    def covered(self, splits: list[Plain]) -> None:
        if self._commits:
            offsets = {(split["topic"], split["partition"]): split["offset"] for split in splits}
            self._fetching().commit(offsets)

    def pause_or_resume_splits(self, to_pause: list[Plain], to_resume: list[Plain]) -> None:
        paused = self._paused.union(map(tuple, to_pause)).difference(map(tuple, to_resume))
        self._paused = {place for place in paused if place in self._splits}
        self._fetching().pause(frozenset(self._paused))
        if self._taken:
            place, messages, marks = self._fetched[0]
            self._fetched[0] = (place, messages[self._taken :], marks)
            self._taken = 0
        # Those that wait came before all others of their partition.
        fetched = [*self._held, *self._fetched]
        self._held, self._fetched = [], deque()
        self._sort(fetched)

    # --- metrics ------------------------------------------------------------------------------

    def _watch(self, place: Partition) -> None:
        """Current and committed offset of a partition; those of its end stay when it has ended."""
        topic, number = place
        split, committed = self._splits[place], self._fetching().group.committed
        group = self._metrics.add_group("KafkaSourceReader").add_group("topic", topic)
        group = group.add_group("partition", str(number))
        group.gauge("currentOffset", lambda: split["offset"] - 1)
        group.gauge("committedOffset", lambda: committed.get(place, -1))

    def _lag(self) -> int:
        """How many records wait to be read, as far as the client knows."""
        fetcher, lag = self._fetcher, 0
        for place, split in self._splits.items():
            high = None if fetcher is None else fetcher.high_watermark(place)
            if high is not None:
                lag += max(0, high - split["offset"])
        return lag

    def close(self) -> None:
        if self._fetcher is not None:
            self._fetcher.close()
            self._fetcher = None

    def _fetching(self) -> Fetcher:
        assert self._fetcher is not None, "a reader is opened before it is used"
        return self._fetcher


def _by_partition(batch: Batch) -> list[Fetched]:
    """The messages of a batch, partition by partition, each in the order in which it came."""
    kind = need_client().Message
    messages = batch.messages
    places = list(zip(map(kind.topic, messages), map(kind.partition, messages), strict=True))
    sorted_out: dict[Partition, list[Any]] = {place: [] for place in places}
    if len(sorted_out) == 1:
        return [(places[0], messages, batch.marks)]
    for place, message in zip(places, messages, strict=True):
        sorted_out[place].append(message)
    return [(place, own, batch.marks) for place, own in sorted_out.items()]
