"""What user functions leave behind for the benchmark: times and counts, in files.

A slot is a process of its own, so measurements leave it through a folder. Nothing here reads a
clock or touches a file per record unless that is what is being measured.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     note(folder, "written", [1, 2, 3])
...     notes(folder, "written")
[[1, 2, 3]]
"""

import mmap
import os
import time
import uuid
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench.common import percentile

_COUNT_BYTES = 8


def mark(folder: str, name: str) -> None:
    """Note that `name` happened now, in a new file."""
    note(folder, name, [time.time_ns()])


def note(folder: str, name: str, numbers: Iterable[int]) -> None:
    """Write numbers into a new file `name.*`."""
    path = Path(folder) / f"{name}.{os.getpid()}.{uuid.uuid4().hex}"
    path.write_bytes(array("q", numbers).tobytes())


def notes(folder: str, name: str) -> list[list[int]]:
    """The numbers of every file that was noted under `name`."""
    return [array("q", path.read_bytes()).tolist() for path in Path(folder).glob(f"{name}.*")]


class Latencies:
    """Pairs of birth and arrival, kept in memory and written by `save`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._pairs = array("q")

    def add(self, birth: int) -> None:
        append = self._pairs.append
        append(birth)
        append(time.time_ns())

    def save(self) -> None:
        note(self._folder, "latency", self._pairs)
        self._pairs = array("q")


@dataclass(frozen=True)
class LatencyFigures:
    """Milliseconds from birth to sink, and whether the source kept its pace.

    A source that stalls makes its records later, and their latency looks good. So look at the
    rate that was reached and at the longest pause between two births as well.
    """

    records: int
    p50: float
    p99: float
    worst: float
    rate: float
    longest_pause: float

    def __str__(self) -> str:
        return (
            f"p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms, max {self.worst:.1f} ms "
            f"({self.records:,} records, {self.rate:,.0f}/s, "
            f"longest pause between births {self.longest_pause:.1f} ms)"
        )


def latency_figures(folder: str, warmup: float, seconds: float) -> LatencyFigures:
    """Figures of the records born in the `seconds` after the first `warmup` seconds."""
    flat = notes(folder, "latency")
    pairs = sorted(
        pair for numbers in flat for pair in zip(numbers[::2], numbers[1::2], strict=True)
    )
    start = pairs[0][0] + int(warmup * 1e9)
    end = start + int(seconds * 1e9)
    chosen = [pair for pair in pairs if start <= pair[0] < end]
    births = [birth for birth, _ in chosen]
    delays = sorted((arrival - birth) / 1e6 for birth, arrival in chosen)
    return LatencyFigures(
        records=len(chosen),
        p50=percentile(delays, 50),
        p99=percentile(delays, 99),
        worst=delays[-1],
        rate=(len(births) - 1) / ((births[-1] - births[0]) / 1e9),
        longest_pause=max(b - a for a, b in pairwise(births)) / 1e6,
    )


class Tally:
    """A count that another process can read while it grows; one file per process."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder, self._name = folder, name
        self._count = 0
        self._page: mmap.mmap | None = None

    def add(self) -> None:
        if self._page is None:
            self._page = self._open()
        self._count += 1
        self._page[:_COUNT_BYTES] = self._count.to_bytes(_COUNT_BYTES, "little")

    def __reduce__(self) -> tuple[type["Tally"], tuple[str, str]]:
        return Tally, (self._folder, self._name)

    def _open(self) -> mmap.mmap:
        path = Path(self._folder) / f"{self._name}.{os.getpid()}.{uuid.uuid4().hex}"
        path.write_bytes(bytes(_COUNT_BYTES))
        with path.open("r+b") as file:
            return mmap.mmap(file.fileno(), _COUNT_BYTES)


def tallied(folder: str, name: str) -> int:
    """The sum of all tallies of that name."""
    files = Path(folder).glob(f"{name}.*")
    return sum(int.from_bytes(path.read_bytes(), "little") for path in files)
