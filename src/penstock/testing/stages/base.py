"""What a stage is, and what stages compute with: numbers, labels and keys."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from penstock.common.typeinfo import Types
from penstock.datastream import DataStream

Records = list[Any]
Place = Callable[[DataStream], DataStream]
ANY = Types.PICKLED_BYTE_ARRAY()


def number(value: Any) -> int:
    """A number that depends on the value alone."""
    return value if type(value) is int else zlib.crc32(repr(value).encode())


def label(key: Any) -> str:
    """The same text for equal keys, also for 1, 1.0 and True."""
    if isinstance(key, tuple):
        return "(" + ",".join(label(part) for part in key) + ")"
    return repr(float(key)) if isinstance(key, (bool, int, float)) else repr(key)


class Key:
    """A key selector: `count` keys of one kind."""

    KINDS = ("int", "str", "float", "equal", "none", "tuple", "bytes")

    def __init__(self, kind: str, count: int) -> None:
        self.kind = kind
        self.count = count

    def __call__(self, value: Any) -> Any:
        n = number(value)
        place = n % self.count
        if self.kind == "equal":
            # Equal keys of three types share their state.
            return (place, float(place), place == 1 if place < 2 else place)[n // self.count % 3]
        return {
            "int": place - 2,
            "str": f"key-{place}",
            "float": place / 4,
            "none": place or None,
            "tuple": (place % 2 == 0, None if place % 3 else place, (place / 2,)),
            "bytes": bytes([place]),
        }[self.kind]

    def __repr__(self) -> str:
        return f"{self.count} {self.kind} keys"


class Stage(ABC):
    """One step of a program."""

    @abstractmethod
    def attach(self, stream: DataStream, place: Place) -> DataStream:
        """The step as the engine runs it; `place` lays out each operator."""

    @abstractmethod
    def model(self, records: Records) -> Records:
        """What comes out when `records` go in, in an order that the engine may give as well."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({settings})"


def add(left: int, right: int) -> int:
    """The sum."""
    return left + right


def first(value: Any) -> Any:
    """The first part."""
    return value[0]
