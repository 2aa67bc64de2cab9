"""Reads partitions in a slot: each poll returns records of one partition, in the order of offsets.

A position is the offset after the last record that a poll returned, so what was fetched and not
yet polled is fetched again after a restore.

Messages are sorted, decoded and stamped many at a time: a call for each of them costs as much as
the client library needs to bring it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

from penstock.common.plain import Plain
from penstock.connectors.kafka.fetcher import Batch, Fetcher
from penstock.connectors.kafka.offsets import Partition
from penstock.connectors.kafka.records import Decode, bad_message
from penstock.connectors.kafka.settings import need_client
from penstock.connectors.source import SourceReader


class KafkaReader(SourceReader):
    """The reader of a Kafka source."""

    def __init__(
        self,
        make_fetcher: Callable[[], Fetcher],
        decode: Decode,
        skip_bad: bool,
        timed: bool,
        commits: bool,
    ) -> None:
        self._make_fetcher = make_fetcher
        self._fetcher: Fetcher | None = None
        self._decode = decode
        self._skip_bad = skip_bad
        self._timed = timed
        self._commits = commits
        self._splits: dict[Partition, dict[str, Any]] = {}
        self._fetched: deque[tuple[Partition, list[Any], bool]] = deque()
        """By partition: messages, and whether marks of its end are among them."""
        self._taken = 0
        self._last: Partition | None = None
        self._committed: dict[Partition, int] = {}
        self.skipped = 0
        """Records that could not be decoded and were left out."""

    def open(self) -> None:
        self._fetcher = self._make_fetcher()

    def add_splits(self, splits: list[Plain]) -> None:
        starts = {}
        for split in splits:
            place = (split["topic"], split["partition"])
            self._splits[place] = dict(split)
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
                self._fetched.extend(_by_partition(batch))
                continue
            place, messages, marks = self._next(limit)
            split = self._splits.get(place)
            if split is not None and (records := self._records(place, split, messages, marks)):
                self._last = place
                return records
        return None

    def _next(self, limit: int) -> tuple[Partition, list[Any], bool]:
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
        """Whether `end` is the end of the split; then it is forgotten."""
        if split["stop"] is None or end < split["stop"]:
            return False
        del self._splits[split["topic"], split["partition"]]
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
        """As `_decoded`, when one of them is bad: say which, or leave it out and count it."""
        good, values = [], []
        for message in messages:
            try:
                values += self._decode([message])
            except Exception as error:
                if not self._skip_bad:
                    raise bad_message(message, error) from error
                self.skipped += 1
            else:
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
        return [dict(split) for split in self._splits.values()]

    def covered(self, splits: list[Plain]) -> None:
        offsets = {(split["topic"], split["partition"]): split["offset"] for split in splits}
        news = {p: offset for p, offset in offsets.items() if self._committed.get(p) != offset}
        if self._commits and news:
            self._fetching().commit(news)
            self._committed.update(news)

    def metrics(self) -> dict[str, float]:
        """Current and committed offset and lag by partition, and what was skipped."""
        found: dict[str, float] = {"numRecordsInErrors": self.skipped}
        lag = 0
        for (topic, number), split in self._splits.items():
            name = f"KafkaSourceReader.topic.{topic}.partition.{number}"
            found[f"{name}.currentOffset"] = split["offset"] - 1
            found[f"{name}.committedOffset"] = self._committed.get((topic, number), -1)
            high = self._fetching().high_watermark((topic, number))
            if high is not None:
                lag += max(0, high - split["offset"])
        found["pendingRecords"] = lag
        return found

    def close(self) -> None:
        if self._fetcher is not None:
            self._fetcher.close()
            self._fetcher = None

    def _fetching(self) -> Fetcher:
        assert self._fetcher is not None, "a reader is opened before it is used"
        return self._fetcher


def _by_partition(batch: Batch) -> list[tuple[Partition, list[Any], bool]]:
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
