"""Fetches messages in a thread, a bounded number of batches ahead of the reader.

The thread waits inside the client library, so messages wake the slot the moment they arrive; when
the reader does not take what is there, the thread stops asking, the client's own bounded queue
fills, and fetching stops.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from penstock.connectors.kafka.offsets import Partition
from penstock.connectors.kafka.settings import logged, need_client
from penstock.errors import PenstockError, SourceError

BATCH = 2000
_AHEAD = 4
_WAIT_SECONDS = 0.1
_NOTE_SECONDS = 0.5


class Fetcher:
    """A consumer and its thread. Splits are added and removed from the slot's thread."""

    def __init__(self, settings: dict[str, Any], wake: Callable[[], None]) -> None:
        self._kafka = need_client()
        try:
            self._consumer = self._kafka.Consumer(logged(settings))
        except self._kafka.KafkaException as error:
            raise SourceError(f"a Kafka consumer cannot be made: {error}") from error
        self._wake = wake
        self._batches: queue.Queue[list[Any] | PenstockError] = queue.Queue(_AHEAD)
        # Only the thread calls the consumer: some calls wait for it while they hold Python's lock.
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._read: set[Partition] = set()
        self._ends: dict[Partition, int] = {}
        self._noted = 0.0

    def add(self, starts: dict[Partition, int]) -> None:
        """Read these partitions from these offsets on."""
        self._read.update(starts)
        places = [self._kafka.TopicPartition(*place, offset) for place, offset in starts.items()]
        self._commands.put(lambda: self._consumer.incremental_assign(places))
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="penstock-kafka-fetcher", daemon=True
            )
            self._thread.start()

    def remove(self, partition: Partition) -> None:
        """Read this partition no longer; what was fetched of it may still come."""
        self._read.discard(partition)
        places = [self._kafka.TopicPartition(*partition)]
        self._commands.put(lambda: self._consumer.incremental_unassign(places))

    def take(self) -> list[Any] | None:
        """The next batch of messages, marks of a partition's end among them; None: none yet."""
        try:
            batch = self._batches.get_nowait()
        except queue.Empty:
            return None
        if isinstance(batch, PenstockError):
            raise batch
        return batch

    def commit(self, offsets: dict[Partition, int]) -> None:
        """Tell the group how far it is, without waiting for the answer."""
        places = [self._kafka.TopicPartition(*place, offset) for place, offset in offsets.items()]
        self._commands.put(lambda: self._consumer.commit(offsets=places, asynchronous=True))

    def high_watermark(self, partition: Partition) -> int | None:
        """The end of a partition as of the last fetch, if there was one."""
        return self._ends.get(partition)

    def close(self) -> None:
        """Stop fetching and leave."""
        self._closed.set()
        if self._thread is None:
            self._consumer.close()
        else:
            self._thread.join(5.0)

    def _run(self) -> None:
        try:
            while not self._closed.is_set():
                while not self._commands.empty():
                    self._commands.get()()
                # Wait for one, then take what is there: `consume` would wait for a whole batch.
                first = self._consumer.poll(_WAIT_SECONDS)
                if first is not None:
                    messages = [first, *self._consumer.consume(BATCH, 0)]
                    self._put([message for message in messages if self._useful(message)])
                self._note_ends()
        except PenstockError as error:
            self._put(error)
        except Exception as error:
            self._put(SourceError(f"reading from Kafka failed: {error}"))
        finally:
            self._consumer.close()

    def _note_ends(self) -> None:
        """Remember, now and then, how far partitions reach, as far as the client knows."""
        if time.monotonic() < self._noted + _NOTE_SECONDS:
            return
        self._noted = time.monotonic()
        for place in list(self._read):
            partition = self._kafka.TopicPartition(*place)
            _, high = self._consumer.get_watermark_offsets(partition, cached=True)
            if high >= 0:
                self._ends[place] = int(high)

    def _useful(self, message: Any) -> bool:
        """Whether a message or the mark of an end; a passing error is neither."""
        error = message.error()
        if error is None or error.code() == self._kafka.KafkaError._PARTITION_EOF:
            return True
        place = (message.topic(), message.partition())
        if place[0] is not None and place not in self._read and place[1] >= 0:
            return False
        code = error.code()
        if code == self._kafka.KafkaError._AUTO_OFFSET_RESET:
            raise SourceError(
                f"topic {place[0]}, partition {place[1]}, offset {message.offset()}: it is not "
                f"there any more or not yet ({error.str()}); was it deleted by retention, or the "
                "topic made anew?"
            )
        if code in self._fatal() or error.fatal():
            where = f"topic {place[0]}" + (f", partition {place[1]}" if place[1] >= 0 else "")
            raise SourceError(f"{where}: {error.str()}")
        return False

    def _fatal(self) -> tuple[int, ...]:
        errors = self._kafka.KafkaError
        return (
            errors.UNKNOWN_TOPIC_OR_PART,
            errors._UNKNOWN_TOPIC,
            errors._UNKNOWN_PARTITION,
            errors.TOPIC_AUTHORIZATION_FAILED,
            errors.GROUP_AUTHORIZATION_FAILED,
            errors._AUTHENTICATION,
            errors._FATAL,
        )

    def _put(self, batch: list[Any] | PenstockError) -> None:
        while not self._closed.is_set():
            try:
                self._batches.put(batch, timeout=_WAIT_SECONDS)
            except queue.Full:
                continue
            self._wake()
            return
