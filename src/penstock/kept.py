"""Names of their own for the types that are pickled into state.

Pickle writes a class as the module it lives in and its name there. So a savepoint would be lost
when the class moves to another module. The types of Penstock that state may hold are therefore
written as names in this module, which stays where it is:

>>> import pickle
>>> from penstock.common import Instant
>>> pickled = pickle.dumps(Instant(1, 2))
>>> b"penstock.kept" in pickled, b"penstock.common" in pickled
(True, False)

A type is given its name by `named`, which also says what an object is made from:

    @kept.named("Instant", attrgetter("seconds", "nanos"))
    class Instant: ...

Whoever moves a type changes its line in `HOMES`, and nothing else. A name is never taken away and
never used for anything else.
"""

from __future__ import annotations

import copyreg
import functools
import pickle
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])

HOMES = {
    "BadRecord": "penstock.connectors.bad_records",
    "ConsumerRecord": "penstock.connectors.kafka.records",
    "CountWindow": "penstock.runtime.windowing.windows",
    "Duration": "penstock.common.time",
    "GlobalWindow": "penstock.runtime.windowing.windows",
    "Instant": "penstock.common.time",
    "Purged": "penstock.runtime.windowing.operator",
    "Row": "penstock.common.types",
    "RowKind": "penstock.common.types",
    "Time": "penstock.common.time",
    "TimeWindow": "penstock.runtime.windowing.windows",
    "TimestampedValue": "penstock.runtime.windowing.evictors",
}
"""The module in which each name is given; it is imported when the name is come across."""

FORMER = {
    ("penstock.common.time", "Duration"): "Duration",
    ("penstock.common.time", "Instant"): "Instant",
    ("penstock.common.time", "Time"): "Time",
    ("penstock.common.types", "RowKind"): "RowKind",
    ("penstock.common.types", "_row"): "Row",
    ("penstock.connectors.bad_records", "BadRecord"): "BadRecord",
    ("penstock.connectors.kafka.records", "ConsumerRecord"): "ConsumerRecord",
    ("penstock.runtime.windowing.evictors", "TimestampedValue"): "TimestampedValue",
    ("penstock.runtime.windowing.operator", "_Purged"): "Purged",
    ("penstock.runtime.windowing.windows", "CountWindow"): "CountWindow",
    ("penstock.runtime.windowing.windows", "GlobalWindow"): "GlobalWindow",
    ("penstock.runtime.windowing.windows", "TimeWindow"): "TimeWindow",
}
"""What the types were called in files from before they had names of their own."""


class Name(functools.partial[Any]):
    """A name: calling it makes what it stands for."""

    # A partial, not a function: it is called for every object that is read, at the speed of C.

    name: str

    def __reduce__(self) -> str:
        # To pickle it is a global of this module.
        return self.name


def named(name: str, parts: Callable[[Any], tuple[Any, ...]] | None = None) -> Callable[[T], T]:
    """Decorates a class, whose objects are pickled as `name` and the arguments to make them from.

    `parts` gives those of an object. Objects of a subclass are pickled as if there was no name.
    Without `parts` it decorates a function that makes objects, whose class says so itself, in
    `__reduce__`.
    """

    def register(made: T) -> T:
        stands_for = globals()[name] = Name(made)
        stands_for.__module__ = __name__
        stands_for.name = name
        if parts is not None:
            of = parts
            copyreg.pickle(made, lambda each: (stands_for, of(each)))  # type: ignore[arg-type]
        return made

    return register


def __getattr__(name: str) -> Any:
    if name in HOMES:
        import_module(HOMES[name])
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_LARGE = 1 << 20
"""Making the objects of so many bytes takes some milliseconds."""


def loads(data: bytes) -> Any:
    """What was pickled, also by a version in which types had other names or places.

    However much it is, other threads run meanwhile.
    """
    try:
        return pickle.Unpickler(_Sliced(data)).load() if len(data) > _LARGE else pickle.loads(data)
    except (ImportError, AttributeError):
        # Only now: to look at each name costs time, and it is needed only where something moved.
        return _Unpickler(_Sliced(data)).load()


class _Unpickler(pickle.Unpickler):
    """Finds types by their former names."""

    def find_class(self, module: str, name: str) -> Any:
        known = FORMER.get((module, name))
        if known is None:
            return super().find_class(module, name)
        # What a name stands for, not the name: some former pickles need a class.
        return super().find_class(__name__, known).func


class _Sliced:
    """Bytes as a file. An unpickler reads a frame of 64 KiB, or one large object, at a time.

    To read it calls this, which is Python; so the interpreter can let other threads run. From bytes
    as they are all objects would be made in one go, and a heartbeat would wait for the last.
    """

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._position = 0

    def read(self, size: int) -> bytes:
        start, self._position = self._position, self._position + size
        return bytes(self._data[start : self._position])

    def readline(self) -> bytes:
        """Names stand in lines, in pickles before protocol 4."""
        end, size = -1, 128
        while end < 0 and size < 2 * len(self._data):
            size *= 2
            part = bytes(self._data[self._position : self._position + size])
            end = part.find(b"\n")
        return self.read(end + 1 if end >= 0 else len(part))
