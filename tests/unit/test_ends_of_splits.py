"""Readers that tell somebody how far they came: nobody is left out, whatever dies in between."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from penstock.common import Configuration, WatermarkStrategy
from penstock.connectors.hybrid import SourcesInTurn
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.testing import local_environment

SPLITS = {"long": 200, **{f"split {number}": 10 * number for number in range(5)}}
TOLD: set[str] = set()
"""Whose end somebody has heard of. The program is pickled and finds it here."""


class Telling(Source):
    def create_enumerator(self, context: EnumeratorContext, restored: Any) -> SplitEnumerator:
        fresh = [[name, 0] for name in SPLITS]
        return QueueEnumerator(fresh if restored is None else restored)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return TellingReader()


class TellingReader(SourceReader):
    """It tells only when it is covered the next time, or closed: a slot may die before."""

    def __init__(self) -> None:
        self.reads: dict[str, int] = {}
        self.ended: set[str] = set()
        self.to_tell: set[str] = set()

    def add_splits(self, splits: list[Any]) -> None:
        self.reads.update((name, position) for name, position in splits)

    def poll(self, limit: int) -> list[Any] | None:
        while self.reads:
            name, position = self.reads.popitem()
            if position < SPLITS[name]:
                self.reads[name] = position + 1
                return [f"{name}: {position}"]
            self.ended.add(name)
        return None

    def snapshot(self) -> list[Any]:
        self.ended -= TOLD
        return [*([name, SPLITS[name]] for name in self.ended), *map(list, self.reads.items())]

    def covered(self, splits: list[Any]) -> None:
        self.close()
        self.to_tell = {name for name, position in splits if position == SPLITS[name]}

    def close(self) -> None:
        TOLD.update(self.to_tell)


@pytest.mark.parametrize("behind", [False, True], ids=["alone", "before another source"])
@pytest.mark.parametrize("seed", range(20))
def test_every_end_is_told(seed: int, behind: bool) -> None:
    TOLD.clear()
    source = SourcesInTurn([Telling(), NumberSequenceSource(0, 99)]) if behind else Telling()
    settings = Configuration.from_dict({"execution.checkpointing.interval": "10 ms"})
    with local_environment(seed, faults=True, configuration=settings) as env:
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "splits")
        found = Counter(stream.set_parallelism(1 + seed % 3).map(str).execute_and_collect())
    expected = Counter(f"{name}: {n}" for name, end in SPLITS.items() for n in range(end))
    assert found == expected + Counter(map(str, range(100 if behind else 0)))
    assert TOLD.issuperset(SPLITS)
