"""A producer that knows how its messages fared.

The client library sends in the background and reports later. Reports are gathered here: the first
error, and which offsets messages got, so that a transaction can say what it covers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from penstock.connectors.kafka.refusals import Refused, code_of, refusal
from penstock.connectors.kafka.settings import logged, need_client
from penstock.errors import SinkError

ROOM = 50_000
"""Messages that may wait in a producer before its writer takes no more records."""
_FULL_PAUSE_SECONDS = 0.01


class _Reports:
    """What the client says of messages.

    It does not know the producer, which knows it: a cycle would keep a producer that nobody needs,
    with its threads and connections, until the garbage collector comes round.
    """

    def __init__(self) -> None:
        self.refused: Refused | None = None
        self.offsets: dict[tuple[str, int], list[int]] = {}

    def delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            one = Refused.of(error, message)
            self.refused = one if self.refused is None else self.refused.joined(one)
            return
        place, offset = (message.topic(), message.partition()), message.offset()
        known = self.offsets.get(place)
        if known is None:
            self.offsets[place] = [offset, offset]
        elif offset > known[1]:
            known[1] = offset


class Production:
    """One producer of the client library; it ends when nobody holds this any more.

    Then its transaction, if it has one, is left as it is.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        kafka = need_client()
        self._error: type[Exception] = kafka.KafkaException
        self._reports = _Reports()
        settings = {"queue.buffering.max.messages": "500000", **properties}
        settings["on_delivery"] = self._reports.delivered
        try:
            self.producer = kafka.Producer(logged(settings))
        except kafka.KafkaException as error:
            raise SinkError(f"a Kafka producer cannot be made: {error}") from error
        self._closed = False
        self._since_poll = 0
        self._alarm: threading.Timer | None = None

    def produce(self, message: dict[str, Any]) -> None:
        """Send a message, or note that it cannot be: the next call raises."""
        while True:
            try:
                self.producer.produce(**message)
                break
            except BufferError:
                self._serve(self.producer.poll, _FULL_PAUSE_SECONDS)
                self.check()
            except self._error as error:
                key, value = message.get("key") or b"", message.get("value") or b""
                what = (
                    f"topic {message['topic']}: a message of {len(key) + len(value)} bytes cannot "
                    f"be sent: {error}"
                )
                raise refusal(code_of(error), what, message["topic"]) from error
        self._since_poll += 1
        if self._since_poll >= 256:
            self.poll()

    def poll(self) -> None:
        """Take in reports; raise if one is bad."""
        self._since_poll = 0
        self._serve(self.producer.poll, 0)
        self.check()

    def has_room(self, wake: Callable[[], None]) -> bool:
        """Whether messages may be sent; while not, `wake` is called when it is worth asking."""
        if len(self.producer) < ROOM:
            return True
        self.poll()
        if len(self.producer) < ROOM:
            return True
        if self._alarm is None or not self._alarm.is_alive():
            self._alarm = threading.Timer(_FULL_PAUSE_SECONDS, wake)
            self._alarm.daemon = True
            self._alarm.start()
        return False

    def flush(self, seconds: float) -> None:
        """Wait until every message is delivered; SinkError if one is not."""
        deadline = time.monotonic() + seconds
        while left := self._serve(self.producer.flush, 0.5):
            self.check()
            if time.monotonic() > deadline:
                raise SinkError(
                    f"{left} messages were not taken by Kafka within {seconds:g} s; is it away?"
                )
        self.check()

    def check(self) -> None:
        """Raise if a message was not delivered."""
        if self._closed:
            raise SinkError("the writer was closed before its messages were delivered")
        refused = self._reports.refused
        if refused is not None:
            raise (self._with_reason(refused) if refused.purged else refused).error()

    def _with_reason(self, purged: Refused) -> Refused:
        """The client only says that it gave the message up: why its transaction has failed."""
        try:
            # Not possible in a transaction that has failed, and the client says why.
            self.producer.begin_transaction()
        except self._error as error:
            return purged.because(error.args[0])
        return purged

    def abandon(self) -> None:
        """Nobody waits for its messages any more; a transaction is left as it is."""
        self._closed = True
        self.producer.purge()

    def covered(self) -> list[dict[str, Any]]:
        """The offsets that messages got, first and last by partition."""
        return [
            {"topic": topic, "partition": number, "first": first, "last": last}
            for (topic, number), (first, last) in sorted(self._reports.offsets.items())
        ]

    def _serve(self, serve: Callable[[float], int], seconds: float) -> int:
        """Let the client report, which is also how it says that it has failed for good."""
        try:
            return serve(seconds)
        except (self._error, SystemError) as error:
            # A report that is called while the failure is raised turns it into a SystemError.
            found = error.__cause__ if isinstance(error, SystemError) else error
            what = f"the Kafka producer failed: {found or error}"
            raise refusal(code_of(found or error), what) from error
