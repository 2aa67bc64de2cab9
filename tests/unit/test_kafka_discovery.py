"""How partitions of Kafka are found and handed out; without a server."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from kafka_mock import PARTITIONS, MockCluster
from kafka_parts import Reading, source, write
from patience import until

from penstock.connectors.kafka import enumerator as enumerators
from penstock.connectors.kafka.enumerator import KafkaEnumerator
from penstock.connectors.kafka.partitions import split_of
from penstock.connectors.kafka.topic_ids import TopicIds
from penstock.connectors.source import EnumeratorContext
from penstock.errors import PenstockError, SourceError, SourceMissingError

Enumerate = Callable[..., KafkaEnumerator]

OFTEN_MS = 1


class Looks:
    """What the cluster shows: each look finds the next of these, then nothing new."""

    def __init__(self, *found: Any) -> None:
        self._found: Iterator[Any] = iter(found)
        self.asked: list[tuple[frozenset[tuple[str, int]], bool]] = []

    def __call__(self, known: frozenset[tuple[str, int]], first: bool) -> list[dict[str, Any]]:
        self.asked.append((known, first))
        found = next(self._found, [])
        if isinstance(found, Exception):
            raise found
        return [split_of(("t", number), 0, None) for number in found]


def no_ids(topics: Iterable[str]) -> dict[str, str]:
    """Of a cluster that does not tell ids."""
    return {}


@pytest.fixture
def enumerator_of() -> Iterator[Enumerate]:
    """Makes enumerators, and closes them."""
    made: list[KafkaEnumerator] = []

    def make(
        looks: Looks, parallelism: int = 1, interval_ms: int | None = None, restored: Any = None
    ) -> KafkaEnumerator:
        made.append(KafkaEnumerator(looks, TopicIds(no_ids), parallelism, interval_ms, restored))
        return made[-1]

    yield make
    for each in made:
        each.close()


def numbers(splits: list[Any] | None) -> list[int] | None:
    return None if splits is None else [split["partition"] for split in splits]


def known_to(enumerator: KafkaEnumerator) -> list[int]:
    return [number for _, number in enumerator.snapshot()["known"]]


def test_every_partition_goes_to_one_reader_once(enumerator_of: Enumerate) -> None:
    looks = Looks(range(7))
    enumerator = enumerator_of(looks, parallelism=3)
    handed = [numbers(enumerator.next_splits(subtask)) or [] for subtask in range(3)]
    assert sorted(itertools.chain(*handed)) == list(range(7))
    assert sorted(map(len, handed)) == [2, 2, 3], "in turns"
    assert [enumerator.next_splits(subtask) for subtask in range(3)] == [None] * 3
    assert looks.asked == [(frozenset(), True)]


def test_with_an_interval_readers_wait_for_more(enumerator_of: Enumerate) -> None:
    enumerator = enumerator_of(Looks([0], [1]), interval_ms=OFTEN_MS)
    assert enumerator.ask_again_ms(0) == OFTEN_MS
    assert 0 in numbers(enumerator.next_splits(0))
    until(lambda: 1 in known_to(enumerator), "the next")
    until(lambda: enumerator.next_splits(0) == [], "none is left")


def test_a_look_is_told_what_is_known(enumerator_of: Enumerate) -> None:
    looks = Looks([0, 1], [2])
    enumerator_of(looks, interval_ms=OFTEN_MS)
    until(lambda: len(looks.asked) > 2, "three looks")
    assert looks.asked[:3] == [
        (frozenset(), True),
        (frozenset({("t", 0), ("t", 1)}), False),
        (frozenset({("t", 0), ("t", 1), ("t", 2)}), False),
    ]


def test_a_restored_one_hands_out_what_was_left_and_looks_for_the_rest(
    enumerator_of: Enumerate,
) -> None:
    before = enumerator_of(Looks(range(4)), parallelism=2)
    handed = numbers(before.next_splits(0))
    looks = Looks([4])
    after = enumerator_of(looks, parallelism=1, interval_ms=OFTEN_MS, restored=before.snapshot())
    until(lambda: 4 in known_to(after), "a look")
    assert sorted(handed + numbers(after.next_splits(0))) == list(range(5))
    assert looks.asked[0] == (frozenset(("t", number) for number in range(4)), False)


def handed_by(enumerator: KafkaEnumerator) -> list[int]:
    """All that a reader is given until there will be no more."""
    handed: list[int] = []

    def all_handed() -> bool:
        splits = numbers(enumerator.next_splits(0))
        assert splits != [] or enumerator.ask_again_ms(0) is not None, "it would never ask again"
        handed.extend(splits or [])
        return splits is None

    until(all_handed, "the end")
    return handed


def test_a_restored_one_that_does_not_look_again_and_again_looks_once(
    enumerator_of: Enumerate,
) -> None:
    before = enumerator_of(Looks([0, 1])).snapshot()
    looks = Looks([2])
    assert handed_by(enumerator_of(looks, restored=before)) == [0, 1, 2]
    assert looks.asked == [(frozenset({("t", 0), ("t", 1)}), False)]


def test_readers_of_a_restored_one_wait_for_a_cluster_that_is_away(
    enumerator_of: Enumerate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enumerators, "_SOON_MS", 5)
    before = enumerator_of(Looks([0])).snapshot()
    away, gone = PenstockError("away"), SourceMissingError("gone")
    looks = Looks(away, gone, away, [1])
    assert handed_by(enumerator_of(looks, restored=before)) == [0, 1]
    assert len(looks.asked) == 4


def test_a_restored_one_looks_at_once_however_long_its_interval(enumerator_of: Enumerate) -> None:
    before = enumerator_of(Looks([0])).snapshot()
    after = enumerator_of(Looks([1]), interval_ms=3_600_000, restored=before)
    until(lambda: 1 in known_to(after), "a look")
    assert numbers(after.next_splits(0)) == [0, 1]
    assert after.ask_again_ms(0) == 3_600_000


def test_a_partition_that_is_missing_once_may_come_back(enumerator_of: Enumerate) -> None:
    gone = SourceMissingError("gone")
    looks = Looks([0], gone, [], gone, [1])
    enumerator = enumerator_of(looks, interval_ms=OFTEN_MS)
    until(lambda: 1 in known_to(enumerator), "the next")
    assert numbers(enumerator.next_splits(0)) == [0, 1]


def test_a_partition_that_is_missing_twice_in_a_row_is_an_error(enumerator_of: Enumerate) -> None:
    gone = SourceMissingError("gone")
    enumerator = enumerator_of(Looks([0], gone, gone), interval_ms=OFTEN_MS)

    with pytest.raises(SourceMissingError, match="gone"):
        until(enumerator.check, "the error")


def test_a_cluster_that_is_away_is_asked_again(enumerator_of: Enumerate) -> None:
    away = PenstockError("away")
    enumerator = enumerator_of(Looks([0], away, away, away, [1]), interval_ms=OFTEN_MS)
    until(lambda: 1 in known_to(enumerator), "the next")


def test_that_the_cluster_is_away_is_said_once_a_minute(
    enumerator_of: Enumerate, caplog: pytest.LogCaptureFixture
) -> None:
    looks = Looks([0], *[PenstockError("on its holidays")] * 5, [1])
    enumerator = enumerator_of(looks, interval_ms=OFTEN_MS)
    until(lambda: 1 in known_to(enumerator), "the next")
    assert sum("on its holidays" in message for message in caplog.messages) == 1


def test_a_closed_one_looks_no_more(enumerator_of: Enumerate) -> None:
    looks = Looks([0])
    enumerator = enumerator_of(looks, interval_ms=OFTEN_MS)
    until(lambda: len(looks.asked) > 1, "a look")
    enumerator.close()
    count = len(looks.asked) + 1
    time.sleep(0.05)
    assert len(looks.asked) <= count, "at most the one that was under way"


# --- what the cluster is asked ----------------------------------------------------------------


def test_a_topic_that_appears_is_read_from_its_beginning(kafka: MockCluster) -> None:
    name = kafka.topic("a")
    builder = source(kafka).set_topic_pattern(f"{name}(-more)?").set_starting_offsets("latest")
    builder.set_property("partition.discovery.interval.ms", "20")
    with Reading(builder.build()) as reading:
        reading.ask()
        assert len(reading.reader.active_splits()) == PARTITIONS
        write(kafka, f"{name}-more", "bc", partition=0)
        write(kafka, f"{name}-other", "d", partition=0)
        found = 2 * PARTITIONS
        until(lambda: reading.ask() and len(reading.reader.active_splits()) == found, "it")
        assert reading.take(2) == ["b", "c"]


def test_a_topic_that_disappears_is_an_error_that_names_it(kafka: MockCluster) -> None:
    name = kafka.topic("a")
    builder = source(kafka, name, "gone")
    builder.set_property("partition.discovery.interval.ms", "20")
    known = [[name, 0], ["gone", 0]]
    enumerator = builder.build().create_enumerator(
        EnumeratorContext(1), {"known": known, "waiting": []}
    )
    try:
        with pytest.raises(SourceError, match="gone"):
            until(enumerator.check, "the error")
    finally:
        enumerator.close()


def test_a_partition_that_disappears_is_an_error_that_names_it(kafka: MockCluster) -> None:
    name = kafka.topic("a")
    builder = source(kafka, name).set_property("partition.discovery.interval.ms", "20")
    known = [[name, number] for number in range(PARTITIONS + 1)]
    enumerator = builder.build().create_enumerator(
        EnumeratorContext(1), {"known": known, "waiting": []}
    )
    try:
        with pytest.raises(SourceError, match=f"topic {name}, partition {PARTITIONS}: it is gone"):
            until(enumerator.check, "the error")
    finally:
        enumerator.close()
