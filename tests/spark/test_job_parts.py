"""The checks that other tests rely on: whatever is wrong with the counts of a job, they say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from job_parts import Ticker, check_counts, key_of, ticked

from penstock.connectors import EnumeratorContext, ReaderContext

Counted = list[tuple[int, int, int]]


class Hands:
    """A clock that is set by hand."""

    now = 0

    def now_ms(self) -> int:
        return self.now


def right(numbers: range) -> Counted:
    """What `Count` makes of numbers."""
    counts: dict[int, int] = {}
    counted = []
    for number in numbers:
        counts[key_of(number)] = counts.get(key_of(number), 0) + 1
        counted.append((key_of(number), counts[key_of(number)], number))
    return counted


MADE = range(100)
WRONG: dict[str, Callable[[Counted], Counted]] = {
    "left out": lambda counted: counted[:-1],
    "counted twice": lambda counted: [*counted, counted[3]],
    "never made": lambda counted: right(range(101)),
    "the counts of key 14": lambda counted: [*counted[:-1], (14, 7, 99)],
}


def test_right_counts_pass() -> None:
    check_counts(right(MADE), MADE)


@pytest.mark.parametrize("says", WRONG)
def test_wrong_counts_do_not(says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_counts(WRONG[says](right(MADE)), MADE)


def test_a_ticker_notes_what_it_made(tmp_path: Path) -> None:
    stop, clock = tmp_path / "stop", Hands()
    source = Ticker(stop, rate_per_second=2_000)
    enumerator = source.create_enumerator(EnumeratorContext(2), None)
    context = ReaderContext(0, 2, clock, lambda: None)  # type: ignore[arg-type]
    readers = [source.create_reader(context) for _ in range(2)]
    for subtask, reader in enumerate(readers):
        reader.add_splits(enumerator.next_splits(subtask) or [])
    clock.now = 10
    read = [number for reader in readers for number in reader.poll(100) or []]
    stop.touch()
    assert readers[0].poll(100) is None
    with pytest.raises(AssertionError, match="all have ended"):
        ticked(stop)
    assert readers[1].poll(100) is None
    assert sorted(ticked(stop)) == sorted(read) == list(range(20))
