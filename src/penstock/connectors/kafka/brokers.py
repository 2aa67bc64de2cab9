"""Which brokers of a cluster can be asked, and the connections to them.

A question that any broker answers goes first to the one that answered last, then to the others in
turn: those that the cluster named and those in `bootstrap.servers`. A broker that takes connections
and stays silent is given a second, not the whole patience of the caller; if all are silent, the
next round gives each of them twice as long.

A question to one broker, such as the coordinator of a transaction, has no other to go to. That one
is given ten seconds, a third of what Kafka's own clients give it: a broker may stand for that long
with a full disk queue, and asking again sooner would only add to it. How often it is asked again is
bounded by the patience of whoever asks (`penstock.connectors.kafka.coordinator`): a minute in all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from penstock.connectors.kafka.connection import TIMEOUT_SECONDS, BrokerConnection
from penstock.connectors.kafka.wire import Writer

_METADATA = 3
_FIRST_SECONDS = 1.0

T = TypeVar("T")
Address = tuple[str, int]


class Brokers:
    """The brokers of one cluster. For one thread at a time."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._connections: dict[Address, BrokerConnection] = {}
        self._named: list[Address] = []
        self._last: Address | None = None
        self._seconds = _FIRST_SECONDS

    def ask(self, address: Address, question: Callable[[BrokerConnection], T]) -> T:
        """Ask this broker; OSError or EOFError when it does not answer."""
        return self._ask(address, question, TIMEOUT_SECONDS)

    def ask_any(self, question: Callable[[BrokerConnection], T]) -> T:
        """Ask the first broker that answers; OSError or EOFError when none does."""
        problem: Exception = OSError("no bootstrap server is named")
        for address in self._candidates():
            try:
                answer = self._ask(address, question, self._seconds)
            except (OSError, EOFError) as error:
                problem = error
                continue
            self._last, self._seconds = address, _FIRST_SECONDS
            return answer
        self._seconds = min(2 * self._seconds, TIMEOUT_SECONDS)
        raise problem

    def all(self) -> list[Address]:
        """The brokers that the cluster has now."""
        return self.ask_any(_brokers)

    def forget(self) -> None:
        """Close all connections, and ask another broker next: this one may not be up to date."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._last = None
        self._named = [*self._named[1:], *self._named[:1]]

    def _candidates(self) -> list[Address]:
        last = [] if self._last is None else [self._last]
        return list(dict.fromkeys([*last, *self._named, *bootstrap(self._properties)]))

    def _ask(
        self, address: Address, question: Callable[[BrokerConnection], T], seconds: float
    ) -> T:
        try:
            connection = self._connections.get(address)
            if connection is None:
                connection = BrokerConnection(*address, self._properties, seconds)
                self._connections[address] = connection
                # Those in bootstrap.servers may be gone by the time that another is needed.
                self._named = _brokers(connection)
            connection.wait(seconds)
            return question(connection)
        except (OSError, EOFError):
            broken = self._connections.pop(address, None)
            if broken is not None:
                broken.close()
            raise


def bootstrap(properties: Mapping[str, str]) -> list[Address]:
    """The addresses in `bootstrap.servers`."""
    return [_address(server.strip()) for server in properties["bootstrap.servers"].split(",")]


def _address(server: str) -> Address:
    """A server as `penstock.connectors.kafka.settings` lets it pass: with a port."""
    host, _, port = server.rpartition("://")[2].rpartition(":")
    return host.strip("[]"), int(port)


def _brokers(connection: BrokerConnection) -> list[Address]:
    # Version 1, an empty array: no topics, brokers only.
    answer = connection.request(_METADATA, 1, Writer().int32(0), flexible=False)
    found = []
    for _ in range(answer.int32()):
        answer.int32()
        found.append((answer.string() or "", answer.int32()))
        answer.string()
    return found
