"""Partitions that alignment pauses: by hand, and in a job whose partitions are hours apart."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from kafka_parts import Reading, source, write
from patience import PATIENCE, until

from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import OutputTag, ProcessFunction
from penstock.testing import local_environment
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

Topic = Callable[..., str]
HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000
"""When a local environment begins."""


def test_a_paused_partition_gives_nothing_and_then_goes_on_where_it_was(
    broker: KafkaBroker, topic: Topic
) -> None:
    name = topic(2)
    for number in range(2):
        write(broker, name, [f"{number}:{n}" for n in range(500)], partition=number)
    with Reading(source(broker, name).set_bounded("latest").build()) as reading:
        reading.ask()
        first = until(lambda: reading.poll(10), "records")
        paused = reading.reader.split_of_last_poll()
        reading.reader.pause_or_resume_splits([paused], [])
        seen: list[str] = []
        while len(seen) < 500:
            seen += reading.poll(40) or []
        assert {record[0] for record in seen} == {str(1 - paused[1])}
        assert reading.poll(40) == [], "the other one has ended, this one waits"
        position = next(s for s in reading.reader.snapshot() if s["partition"] == paused[1])
        assert position["offset"] == len(first), "it keeps its place in a checkpoint"
        reading.reader.pause_or_resume_splits([], [paused])
        assert first + reading.to_end(40) == [f"{paused[1]}:{n}" for n in range(500)]


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_paused_when_every_record_comes_once_and_in_order(
    broker: KafkaBroker, topic: Topic, seed: int
) -> None:
    chance, name = random.Random(seed), topic(3)
    for number in range(3):
        write(broker, name, [f"{number}:{n}" for n in range(3_000)], partition=number)
    builder = source(broker, name).set_bounded("latest")
    builder.set_property("queued.min.messages", "100")
    paused: set[tuple[str, int]] = set()
    seen: list[str] = []
    with Reading(builder.build()) as reading:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if chance.random() < 0.2:
                active = set(reading.reader.active_splits() or ())
                wanted = {split for split in active if chance.random() < 0.5}
                reading.reader.pause_or_resume_splits(
                    sorted(wanted - paused), sorted(paused - wanted)
                )
                paused = wanted
            records = reading.poll(chance.choice([1, 30, 400]))
            if records is None and not reading.ask():
                break
            if records == []:
                time.sleep(0.005)
            elif records:
                assert reading.reader.split_of_last_poll() not in paused
                seen += records
    for number in range(3):
        own = [record for record in seen if record[0] == str(number)]
        assert own == [f"{number}:{n}" for n in range(3_000)]


# --- in a job ---------------------------------------------------------------------------------


class Times(ProcessFunction):
    def process_element(self, value: str, ctx: ProcessFunction.Context) -> object:
        yield value, ctx.timestamp()


def test_a_partition_that_is_ahead_waits_for_the_other(broker: KafkaBroker, topic: Topic) -> None:
    """Two producers, one of them a day behind: the state between them stays small."""
    name = topic(2)
    for number, step in ((0, 60_000), (1, 1_000)):
        records = [{"value": str(number), "timestamp": 1 + n * step} for n in range(2_000)]
        write(broker, name, records, partition=number)

    def lead(strategy: WatermarkStrategy) -> int:
        with local_environment(seed=1) as env:
            built = source(broker, name).set_bounded("latest").build()
            stream = env.from_source(built, strategy, "payments").set_parallelism(1)
            furthest, slow, count = 0, 0, 0
            for value, at in stream.process(Times()).execute_and_collect():
                count += 1
                if value == "1":
                    slow = at
                elif slow < 1 + 1_999 * 1_000:
                    furthest = max(furthest, at - slow)
        assert count == 4_000
        return furthest

    strategy = WatermarkStrategy.for_monotonous_timestamps()
    hour = Duration.of_millis(HOUR_MS)
    # A batch is read before anybody knows what is in it.
    assert lead(strategy.with_watermark_alignment("one", hour)) < 12 * HOUR_MS
    assert lead(strategy) > 24 * HOUR_MS


# --- clocks that differ -----------------------------------------------------------------------


def test_a_producer_whose_clock_is_ahead_closes_no_window(
    broker: KafkaBroker, topic: Topic
) -> None:
    """Three producers: one right, one an hour behind, and one that is a year ahead for a while."""
    name, now = topic(3), NOW_MS
    year = 365 * 24 * HOUR_MS
    for number, skews in enumerate(([0] * 5, [-HOUR_MS] * 5, [0, 0, year, 0, 0])):
        records = [
            {"value": str(number), "timestamp": now + n * 1_000 + skew}
            for n, skew in enumerate(skews)
        ]
        write(broker, name, records, partition=number)
    ahead = OutputTag("ahead")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    strategy = strategy.with_max_jump(Duration.of_days(1), ahead)
    with local_environment(seed=1) as env:
        built = source(broker, name).set_bounded("latest").build()
        stream = env.from_source(built, strategy, "payments").set_parallelism(1)
        diverted = stream.get_side_output(ahead).process(Times())
        good = stream.process(Times())
        found = list(
            good.map(lambda one: (*one, "in time"))
            .union(diverted.map(lambda one: (*one, "ahead")))
            .execute_and_collect()
        )
    assert [at - now for _, at, kind in found if kind == "ahead"] == [2_000 + year]
    assert sorted(value for value, _, kind in found if kind == "in time") == [
        *"0" * 5,
        *"1" * 5,
        *"2" * 4,
    ]
