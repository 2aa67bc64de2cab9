"""Stages without state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from penstock.common.typeinfo import Types
from penstock.datastream import DataStream
from penstock.testing.stages.base import Place, Records, Stage, number


class MapStage(Stage):
    """A stage that is a function from one record to one record, which it may change."""

    @abstractmethod
    def __call__(self, value: Any) -> Any:
        """One record for one record."""

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.map(self))

    def model(self, records: Records) -> Records:
        return [self(_copy(value)) for value in records]


class Scramble(MapStage):
    """One record for one record."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, value: Any) -> int:
        return (number(value) * self.factor + 1) % 100_003

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.map(self, output_type=Types.LONG()))


class Sieve(Stage):
    """Only some of the records."""

    def __init__(self, divisor: int) -> None:
        self.divisor = divisor

    def __call__(self, value: Any) -> bool:
        return number(value) % self.divisor != 0

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.filter(self))

    def model(self, records: Records) -> Records:
        return [value for value in records if self(value)]


class Burst(Stage):
    """None to three records for one record, and hundreds for a few."""

    def __init__(self, rare: int, size: int) -> None:
        self.rare = rare
        self.size = size

    def __call__(self, value: Any) -> Iterator[int]:
        n = number(value)
        count = self.size if n % 97 == self.rare else n % 4
        for i in range(count):
            yield (n + i * 13) % 100_003

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.flat_map(self))

    def model(self, records: Records) -> Records:
        return [result for value in records for result in self(value)]


class Box(MapStage):
    """Makes records that can be changed."""

    def __init__(self, nested: bool) -> None:
        self.nested = nested

    def __call__(self, value: Any) -> list[Any]:
        return [number(value), [0]] if self.nested else [number(value), 0]


class Scribble(MapStage):
    """Changes the record that it was given, and passes it on."""

    def __init__(self, mark: int) -> None:
        self.mark = mark

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):
            if isinstance(value[-1], list):
                value[-1].append(self.mark)
            value.append(self.mark)
        return value


class Recycle(Stage):
    """Emits one object again and again, changed in between."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, value: Any) -> Iterator[list[int]]:
        record = [number(value)]
        for i in range(self.times):
            record.append(i)
            yield record
        record.clear()

    def attach(self, stream: DataStream, place: Place) -> DataStream:
        return place(stream.flat_map(self))

    def model(self, records: Records) -> Records:
        return [[number(value), *range(i + 1)] for value in records for i in range(self.times)]


class UserError(Exception):
    """What a user's function raises."""


class FailOnce(MapStage):
    """Fails at one record, the first time it comes by in a run."""

    def __init__(self, run: object, at: int) -> None:
        self.run = run
        self.at = at

    def __call__(self, value: Any) -> Any:
        if number(value) == self.at and (self.run, self.at) not in _failed:
            _failed.add((self.run, self.at))
            raise UserError(f"record {value!r}")
        return value

    def model(self, records: Records) -> Records:
        return list(records)


_failed: set[tuple[object, int]] = set()


def begin_run(run: object) -> None:
    """Every function of `run` that fails once may fail again."""
    _failed.difference_update([entry for entry in _failed if entry[0] == run])


def _copy(value: Any) -> Any:
    return [_copy(part) for part in value] if isinstance(value, list) else value
