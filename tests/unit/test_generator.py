"""Sources that make their records: numbers, rates, collections, and where they go on."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import plain
from penstock.connectors.collection import CollectionSource
from penstock.connectors.generator import DataGeneratorSource, NumberSequenceSource
from penstock.connectors.source import EnumeratorContext, QueueEnumerator, ReaderContext
from penstock.errors import ProgramError


class Clock:
    def __init__(self, now=0):
        self.now = now

    def now_ms(self):
        return self.now


def stored(value):
    return plain.decode(json.loads(json.dumps(plain.encode(value, "a split"))))


def readers_of(source, parallelism=1, clock=None, restored=None):
    """Readers with their splits, as a JobMaster hands them out."""
    enumerator = source.create_enumerator(EnumeratorContext(parallelism), None)
    readers = []
    for subtask in range(parallelism):
        clock = clock or Clock()
        reader = source.create_reader(ReaderContext(subtask, parallelism, clock, lambda: None))
        splits = enumerator.next_splits(subtask) if restored is None else restored[subtask]
        reader.add_splits(splits)
        readers.append(reader)
    return readers


def drain(reader, limit=10):
    values = []
    while (batch := reader.poll(limit)) is not None:
        assert len(batch) <= limit
        values += batch
    return values


# --- numbers ----------------------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(1, 7), st.integers(1, 9))
def test_the_subtasks_together_make_every_number_once(count, parallelism, limit):
    readers = readers_of(DataGeneratorSource(lambda n: n, count), parallelism)
    made = [drain(reader, limit) for reader in readers]
    assert sorted(n for part in made for n in part) == list(range(count))
    for subtask, part in enumerate(made):
        assert part == list(range(subtask, count, parallelism))


@given(st.integers(1, 60), st.integers(1, 4), st.lists(st.integers(1, 9), max_size=8))
def test_a_restored_generator_goes_on_where_it_was(count, parallelism, polls):
    source = DataGeneratorSource(lambda n: n * n, count)
    readers, made = readers_of(source, parallelism), []
    for limit in polls:
        for reader in readers:
            made += reader.poll(limit) or []
        readers = readers_of(source, parallelism, restored=[stored(r.snapshot()) for r in readers])
    for reader in readers:
        made += drain(reader)
    assert sorted(made) == [n * n for n in range(count)]


def test_a_generator_without_a_count_has_no_end():
    [reader] = readers_of(DataGeneratorSource(lambda n: n))
    for n in range(100):
        assert reader.poll(3) == [3 * n, 3 * n + 1, 3 * n + 2]


def test_a_number_sequence_has_both_ends():
    [reader] = readers_of(NumberSequenceSource(-3, 3))
    assert drain(reader) == [-3, -2, -1, 0, 1, 2, 3]
    [single] = readers_of(NumberSequenceSource(5, 5))
    assert drain(single) == [5]


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: DataGeneratorSource(len, -1), "cannot make -1 records"),
        (lambda: DataGeneratorSource(len, rate_per_second=0), "a rate of 0 records per second"),
        (lambda: DataGeneratorSource(len, rate_per_second=-2), "a rate of -2 records"),
        (lambda: NumberSequenceSource(2, 1), "cannot go from 2 up to 1"),
    ],
)
def test_what_makes_nothing_is_refused(make, hint):
    with pytest.raises(ProgramError, match=hint):
        make()


# --- rates ------------------------------------------------------------------------------------


def run_for(readers, clock, milliseconds):
    """Poll whenever the readers ask for it."""
    made, end = 0, clock.now + milliseconds
    while True:
        for reader in readers:
            while batch := reader.poll(1000):
                made += len(batch)
        wakeups = [reader.next_poll_ms() for reader in readers]
        assert all(wakeup > clock.now for wakeup in wakeups), "polling now would return nothing"
        if min(wakeups) >= end:
            clock.now = end
            return made
        clock.now = min(wakeups)


@pytest.mark.parametrize("rate", [0.2, 1, 7, 100, 2345])
@pytest.mark.parametrize("parallelism", [1, 4])
def test_the_rate_is_kept_over_all_subtasks(rate, parallelism):
    clock = Clock(5_000)
    source = DataGeneratorSource(lambda n: n, rate_per_second=rate)
    readers = readers_of(source, parallelism, clock)
    made = run_for(readers, clock, 60_000)
    assert made == pytest.approx(60 * rate, rel=0.02, abs=parallelism + 1)


def test_a_clock_that_is_set_back_does_not_stop_it():
    clock = Clock(1_000_000)
    source = DataGeneratorSource(lambda n: n, rate_per_second=100)
    [reader] = readers_of(source, 1, clock)
    assert run_for([reader], clock, 5_000) == pytest.approx(500, abs=2)
    clock.now -= 3_000
    assert run_for([reader], clock, 5_000) == pytest.approx(500, abs=2)


def test_nothing_is_made_before_it_is_due():
    clock = Clock()
    [reader] = readers_of(DataGeneratorSource(lambda n: n, rate_per_second=10), 1, clock)
    assert reader.poll(100) == [0]
    assert reader.poll(100) == []
    assert 100 <= reader.next_poll_ms() <= 101
    clock.now = 99
    assert reader.poll(100) == []
    clock.now = 101
    assert reader.poll(100) == [1]


def test_time_lost_is_not_made_up_for():
    clock = Clock()
    [reader] = readers_of(DataGeneratorSource(lambda n: n, rate_per_second=10), 1, clock)
    reader.poll(100)
    clock.now = 60_000
    assert reader.poll(10_000) == [1], "a burst after a pause"
    clock.now += 1000
    assert len(reader.poll(10_000)) == pytest.approx(10, abs=1)


def test_a_restored_generator_keeps_its_rate():
    clock = Clock()
    source = DataGeneratorSource(lambda n: n, rate_per_second=10)
    [reader] = readers_of(source, 1, clock)
    assert run_for([reader], clock, 5000) == pytest.approx(50, abs=2)
    clock.now += 100_000
    [again] = readers_of(source, 1, clock, restored=[stored(reader.snapshot())])
    assert again.poll(1000) == [reader.snapshot()[0]["next"]]
    assert run_for([again], clock, 5000) == pytest.approx(50, abs=2)


def test_without_a_rate_all_is_due_at_once():
    [reader] = readers_of(DataGeneratorSource(lambda n: n, 5))
    assert reader.next_poll_ms() is None
    assert reader.poll(10) == [0, 1, 2, 3, 4]


# --- collections ------------------------------------------------------------------------------


@given(st.lists(st.integers() | st.text(max_size=3)), st.lists(st.integers(1, 5), max_size=6))
def test_a_collection_is_read_in_order_across_restores(values, polls):
    source = CollectionSource(values)
    [reader] = readers_of(source)
    made = []
    for limit in polls:
        made += reader.poll(limit) or []
        [reader] = readers_of(source, restored=[stored(reader.snapshot())])
    assert made + drain(reader) == values


def test_a_collection_holds_what_it_was_given():
    values = [[1], [2]]
    source = CollectionSource(values)
    values[0].append("changed")
    values.append([3])
    [reader] = readers_of(source)
    first = drain(reader)
    assert first == [[1], [2]]
    first[0].append("changed by a reader")
    [again] = readers_of(source)
    assert drain(again) == [[1], [2]]


def test_a_collection_may_be_any_iterable():
    [reader] = readers_of(CollectionSource(n for n in range(3)))
    assert drain(reader) == [0, 1, 2]


def test_one_reader_reads_all_of_a_collection():
    enumerator = CollectionSource([1, 2]).create_enumerator(EnumeratorContext(3), None)
    assert enumerator.next_splits(2) == [0]
    assert enumerator.next_splits(0) is None


def test_a_reader_without_a_split_asks_for_one():
    source = CollectionSource([1])
    reader = source.create_reader(ReaderContext(0, 1, Clock(), lambda: None))
    assert reader.poll(10) is None
    assert reader.snapshot() == []


def test_a_queue_hands_each_split_out_once():
    enumerator = QueueEnumerator(["a", "b", "c"])
    assert enumerator.next_splits(0) == ["a"]
    assert enumerator.snapshot() == ["b", "c"]
    assert [enumerator.next_splits(n) for n in range(3)] == [["b"], ["c"], None]
    assert enumerator.snapshot() == []
