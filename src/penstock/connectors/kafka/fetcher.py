"""Takes messages from the client library, and waits for them in a thread when there are none.

While messages come, the slot's own thread takes them: handing them over from a thread that fetches
would cost more than fetching them, because of the two only one can run at a time. When there are
none, the consumer is left to a thread that waits inside the client library and wakes the slot the
moment one arrives. So the consumer has one user at any time, which it needs: some of its calls
wait for others while they hold Python's lock.

A reader that is not polled takes nothing; the client's own bounded queue fills, and fetching stops.

A partition that is paused is taken from the client, and given back with its offset when it goes on.
The client's own calls for that, `pause` and `resume`, may leave a partition paused for good when
one follows the other at once (librdkafka's issue 5591), and a partition that changes often was
read four times slower with them.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.connectors.kafka.fetch_errors import ends_the_attempt, passes
from penstock.connectors.kafka.group_offsets import GroupOffsets
from penstock.connectors.kafka.offsets import Partition
from penstock.connectors.kafka.settings import log, logged, need_client
from penstock.connectors.kafka.standstill import Standstill
from penstock.errors import PenstockError, SourceError

BATCH = 2000
_WAIT_SECONDS = 0.1
_ENDS_SECONDS = 0.5
"""How often the ends of partitions are looked up, for the lag."""
_LAST_COMMIT_SECONDS = 10.0
"""How long a source that is closed waits for the answer to its last commit."""


@dataclass(frozen=True)
class Batch:
    """Messages of any partitions, those of one partition in the order of offsets."""

    messages: list[Any]
    marks: bool
    """Whether marks of a partition's end are among them."""


class Fetcher:
    """A consumer and its thread. All methods are called from the slot's thread."""

    def __init__(self, settings: dict[str, Any], wake: Callable[[], None]) -> None:
        self._kafka = need_client()
        self._group_id = settings["group.id"]
        self.group = GroupOffsets(self._group_id)
        self._standstill = Standstill()
        own = {"on_commit": self.group.answered, "error_cb": self._reported}
        try:
            self._consumer = self._kafka.Consumer({**logged(settings), **own})
        except self._kafka.KafkaException as error:
            raise SourceError(f"a Kafka consumer cannot be made: {error}") from error
        self._wake = wake
        self._error_of = self._kafka.Message.error
        # Carried out by whoever has the consumer.
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._at_hand = True
        """Whether the consumer is the slot's; else it is the thread's, which gives it back."""
        self._wait = threading.Semaphore(0)
        self._arrived: list[Any] = []
        self._problem: PenstockError | None = None
        self._read: set[Partition] = set()
        self._to_pause: frozenset[Partition] = frozenset()
        self._fetched_from: dict[Partition, int] = {}
        """Where the client began with the partitions that it has now."""
        self._paused: dict[Partition, int] = {}
        """Where the partitions go on that were taken from the client."""
        self._ends: dict[Partition, int] = {}
        self._ends_due = 0.0

    def add(self, starts: dict[Partition, int]) -> None:
        """Read these partitions from these offsets on."""
        self._read.update(starts)
        self._command(lambda: self._assign(starts))
        self._begin()

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="penstock-kafka-fetcher", daemon=True
            )
            self._thread.start()

    def remove(self, partition: Partition) -> None:
        """Read this partition no longer; what was fetched of it may still come."""
        self._read.discard(partition)
        self._command(lambda: self._forget(partition))

    def pause(self, partitions: frozenset[Partition]) -> None:
        """Fetch nothing of these, and all others; what was fetched may still come.

        Others go on behind the last message that was taken of them.
        """
        self._to_pause = partitions
        self._command(self._pause)

    def _pause(self) -> None:
        """Make it so; by then somebody may have said otherwise."""
        to_resume = self._paused.keys() - self._to_pause
        if to_pause := self._to_pause & self._fetched_from.keys():
            self._paused.update(self._unassign(to_pause))
        if to_resume:
            self._assign({partition: self._paused.pop(partition) for partition in to_resume})

    def _forget(self, partition: Partition) -> None:
        if self._paused.pop(partition, None) is None:
            self._unassign({partition})

    def _assign(self, starts: dict[Partition, int]) -> None:
        places = [self._kafka.TopicPartition(*place, offset) for place, offset in starts.items()]
        self._consumer.incremental_assign(places)
        self._fetched_from.update(starts)

    def _unassign(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Take partitions from the client; returns the offsets behind what was taken of them."""
        places = [self._kafka.TopicPartition(*partition) for partition in partitions]
        ends = {}
        for place in self._consumer.position(places):
            partition = (place.topic, place.partition)
            start = self._fetched_from.pop(partition)
            ends[partition] = place.offset if place.offset >= 0 else start
        self._consumer.incremental_unassign(places)
        return ends

    def take(self) -> Batch | None:
        """The next messages; None: there are none, and `wake` is called when there are."""
        if not self._at_hand:
            return None
        if self._problem is not None:
            raise self._problem
        with _SourceErrors():
            self._carry_out()
            arrived, self._arrived = self._arrived, []
            messages = arrived + self._consumer.consume(BATCH, 0)
            self._note_ends()
            batch = self._batch(messages)
        if batch is None:
            self._hand_over()
        return batch

    def _hand_over(self) -> None:
        """From now on the thread waits with the consumer."""
        self._at_hand = False
        self._wait.release()

    def commit(self, offsets: dict[Partition, int]) -> None:
        """Tell the group how far it is, without waiting for the answer."""
        self.group.want(offsets)
        self._carry_out_at_hand()
        if self._at_hand and not self._read and self.group.waits:
            # Nobody polls a source that has read all: the thread hears the answer.
            self._begin()
            self._hand_over()

    def high_watermark(self, partition: Partition) -> int | None:
        """The end of a partition as of the last fetch, if there was one."""
        if self._at_hand:
            self._note_ends()
        return self._ends.get(partition)

    def _note_ends(self) -> None:
        """Look up the ends of the partitions, now and then; for whoever has the client at hand.

        The client lets one thread in at a time, so asking it from outside would wait for a poll.
        """
        now = time.monotonic()
        if now < self._ends_due:
            return
        self._ends_due = now + _ENDS_SECONDS
        for partition in tuple(self._read):
            place = self._kafka.TopicPartition(*partition)
            try:
                _, high = self._consumer.get_watermark_offsets(place, cached=True)
            except self._kafka.KafkaException:
                continue
            if high >= 0:
                self._ends[partition] = int(high)

    def close(self) -> None:
        """Stop fetching, see to the last commit, and leave."""
        self._closed.set()
        if self._thread is None:
            self._leave()
        else:
            # The thread closes the consumer: nobody knows how long that takes.
            self._wait.release()
            self._thread.join(5.0 + (_LAST_COMMIT_SECONDS if self.group.waits else 0.0))

    def _leave(self) -> None:
        """For whoever has the consumer last."""
        deadline = time.monotonic() + _LAST_COMMIT_SECONDS
        try:
            self._carry_out()
            self._consumer.unassign()
            while self.group.waits and time.monotonic() < deadline:
                self._consumer.poll(_WAIT_SECONDS)
                self._carry_out()
        except self._kafka.KafkaException as error:
            log.warning("a Kafka source could not leave in order: %s", error)
        self.group.closed()
        self._consumer.close()

    def _run(self) -> None:
        """Whenever the slot found nothing: wait until something arrives, and give it back."""
        while True:
            self._wait.acquire()
            try:
                with _SourceErrors():
                    while not self._closed.is_set() and not self._arrived:
                        self._carry_out()
                        first = self._consumer.poll(_WAIT_SECONDS)
                        self._arrived = [] if first is None else [first]
                        self._note_ends()
                        if first is None and self._standstill.due():
                            self._look_around()
            except PenstockError as error:
                self._problem = error
            if self._closed.is_set():
                self._leave()
                return
            self._at_hand = True
            self._wake()

    def _look_around(self) -> None:
        """Nothing has come for long: is there something to come?"""
        places = [self._kafka.TopicPartition(*partition) for partition in self._fetched_from]
        found = self._consumer.position(places) if places else []
        positions = {
            (place.topic, place.partition): place.offset
            if place.offset >= 0
            else self._fetched_from[place.topic, place.partition]
            for place in found
        }
        self._standstill.look(positions, self._ends)

    def _command(self, command: Callable[[], None]) -> None:
        self._commands.put(command)
        self._carry_out_at_hand()

    def _carry_out_at_hand(self) -> None:
        """Carry out what is to be done, unless the thread has the consumer and does it."""
        if self._at_hand:
            with _SourceErrors():
                self._carry_out()

    def _carry_out(self) -> None:
        while not self._commands.empty():
            self._commands.get()()
        if due := self.group.due():
            places = [self._kafka.TopicPartition(*place, offset) for place, offset in due.items()]
            self._consumer.commit(offsets=places, asynchronous=True)

    def _batch(self, messages: list[Any]) -> Batch | None:
        """What is useful of `messages`; None: nothing."""
        if not any(map(self._error_of, messages)):
            if not messages:
                return None
            self._standstill.heard()
            return Batch(messages, False)
        useful = [message for message in messages if self._useful(message)]
        if useful:
            self._standstill.heard()
        return Batch(useful, True) if useful else None

    def _useful(self, message: Any) -> bool:
        """Whether a message or the mark of an end; a passing error is neither."""
        error = message.error()
        if error is None:
            return True
        place = (message.topic(), message.partition())
        if error.code() == self._kafka.KafkaError._PARTITION_EOF:
            self._standstill.ended(place, message.offset())
            return True
        if place[0] is not None and place not in self._read and place[1] >= 0:
            return False
        if place[0] is None and error.code() == self._kafka.KafkaError.GROUP_AUTHORIZATION_FAILED:
            # Partitions are read without the group.
            self.group.refused(error)
        elif not passes(error):
            raise ends_the_attempt(error, message, self._group_id)
        return False

    def _reported(self, error: Any) -> None:
        """What the client reports of itself rather than of a partition."""
        if error.code() == self._kafka.KafkaError._ALL_BROKERS_DOWN:
            self._standstill.cut_off(error.str())


class _SourceErrors:
    """What the client library raises within the block is a SourceError outside."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, PenstockError):
            raise SourceError(f"reading from Kafka failed: {error}") from error
