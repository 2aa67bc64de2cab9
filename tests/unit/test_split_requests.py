"""Readers and splits that are found while the job runs: who asks, and when."""

from __future__ import annotations

import pickle
import random

import pytest

from penstock.common import Configuration, JobStatus, WatermarkStrategy
from penstock.connectors.client_sinks import CollectSink
from penstock.connectors.source import Source, SourceReader, SplitEnumerator
from penstock.datastream import StreamExecutionEnvironment
from penstock.network.messages import SplitRequest
from penstock.runtime.split_reading import ASK_AGAIN_MS
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.simulator import Simulation


class Found(Source):
    """Hands out what a test puts into `found`; a split is a list of records."""

    def __init__(self, interval=None, endless=False):
        self.interval = interval
        self.endless = endless
        self.found = []
        self.readers = []

    def create_enumerator(self, context, restored):
        return FoundEnumerator(self)

    def create_reader(self, context):
        self.readers.append(ListReader(self.endless, context.wake))
        return self.readers[-1]


class FoundEnumerator(SplitEnumerator):
    def __init__(self, source):
        self.source = source

    def next_splits(self, subtask):
        found, self.source.found = self.source.found, []
        return None if found == ["end"] else found

    def ask_again_ms(self, subtask):
        return self.source.interval

    def snapshot(self):
        return None


class ListReader(SourceReader):
    def __init__(self, endless, wake):
        self.left, self.endless, self.wake = [], endless, wake
        self.during_poll = None

    def add_splits(self, splits):
        for split in splits:
            self.left += split

    def poll(self, limit):
        values, self.left = self.left[:limit], self.left[limit:]
        if self.during_poll:
            self.during_poll()
        if values or self.endless:
            return values
        return None

    def snapshot(self):
        return [self.left]


@pytest.fixture
def start(cluster):
    def begin(source):
        def build(env):
            stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "found")
            stream.sink_to(CollectSink())

        return cluster(build).run()

    return begin


def asked(running):
    return len(running.of(SplitRequest))


@pytest.mark.parametrize(("interval", "waits"), [(None, ASK_AGAIN_MS), (50, 50)])
def test_a_reader_without_splits_asks_again_when_told(start, interval, waits):
    source = Found(interval)
    running = start(source)
    assert asked(running) == 1 and not running.ended()
    assert running.slots[0].next_wakeup_ms() == running.clock.now + waits
    running.clock.now += waits - 1
    assert asked(running.run()) == 1
    source.found = [[1, 2]]
    running.clock.now += 1
    assert asked(running.run()) >= 2
    assert running.collected() == [1, 2]


def test_the_source_ends_when_there_will_be_no_more(start):
    source = Found(10)
    running = start(source)
    source.found = ["end"]
    running.clock.now += 10
    assert running.run().ended()


def test_a_reader_that_still_reads_asks_at_the_interval(start):
    source = Found(100, endless=True)
    source.found = [[1]]
    running = start(source)
    assert running.collected() == [] and asked(running) == 0, "it has not run out"
    source.readers[0].endless = False
    source.readers[0].wake()
    running.run()
    assert running.collected() == [1]
    source.readers[0].endless = True
    source.found = [[2]]
    running.clock.now += 100
    assert running.run().collected() == [1, 2]
    before = asked(running)
    source.found = [[3]]
    running.clock.now += 100
    running.run()
    assert asked(running) == before + 1, "asked while it still reads"
    assert running.collected() == [1, 2, 3]


def test_a_wake_during_a_poll_is_not_lost(start):
    source = Found(None, endless=True)
    running = start(source)
    reader = source.readers[0]

    def arrives():
        reader.during_poll = None
        reader.left = ["late"]
        reader.wake()

    reader.during_poll = arrives
    reader.wake()
    assert running.run().collected() == ["late"]


def test_a_clock_that_is_set_back_keeps_nobody_from_asking(start):
    source = Found(50)
    running = start(source)
    running.clock.now -= 3_600_000
    source.found = [[1, 2]]
    assert running.run().collected() == [1, 2]


# --- a whole job ------------------------------------------------------------------------------


class Partitions(Source):
    """A topic that gets a partition at every question; partitions have no end."""

    COUNT, RECORDS = 6, 20

    def create_enumerator(self, context, restored):
        return PartitionEnumerator(self, restored or 0)

    def create_reader(self, context):
        return PartitionReader(self.RECORDS)


class PartitionEnumerator(SplitEnumerator):
    closed = 0

    def __init__(self, source, known):
        self.source, self.known = source, known

    def next_splits(self, subtask):
        if self.known == self.source.COUNT:
            return []
        self.known += 1
        return [{"partition": self.known - 1, "offset": 0}]

    def ask_again_ms(self, subtask):
        return 30

    def snapshot(self):
        return self.known

    def close(self):
        PartitionEnumerator.closed += 1


class PartitionReader(SourceReader):
    told: dict[int, int] = {}
    """By partition: up to where a complete checkpoint was said to cover it."""
    read_again: list[int] = []

    def __init__(self, records):
        self.records, self.splits = records, []

    def add_splits(self, splits):
        self.splits += [dict(split) for split in splits]
        for split in splits:
            if split["offset"] < self.told.get(split["partition"], 0):
                self.read_again.append(split["partition"])

    def covered(self, splits):
        for split in splits:
            self.told[split["partition"]] = split["offset"]

    def poll(self, limit):
        for split in self.splits:
            if split["offset"] < self.records:
                split["offset"] += 1
                return [(split["partition"], split["offset"])]
        return [] if self.splits else None

    def snapshot(self):
        return [dict(split) for split in self.splits]


@pytest.mark.parametrize("seed", range(8))
def test_new_partitions_are_found_also_after_a_restore(seed, caplog):
    """A reader that was restored with splits never runs out of them, and yet must ask."""
    caplog.set_level("CRITICAL", logger="penstock")
    rates = FaultRates(crash_soon=0.3, crash=0.001, budget=3)
    filesystem = FaultyFileSystem(random.Random(seed), rates)
    settings = {
        "parallelism.default": 2,
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.dir": f"{filesystem.uri}/checkpoints",
    }
    env = StreamExecutionEnvironment(Configuration.from_dict(settings))
    stream = env.from_source(Partitions(), WatermarkStrategy.no_watermarks(), "topic")
    stream.sink_to(CollectSink()).uid("collect")
    simulation = Simulation(seed, env._assemble("partitions"), rates, filesystem)
    PartitionEnumerator.closed = 0
    PartitionReader.told.clear()
    assert simulation.run(cancel_at=5_000) is JobStatus.CANCELED
    filesystem.forget()
    subtasks = simulation.delivered["collect"].values()
    records = sorted(pickle.loads(value) for values in subtasks for value in values)
    assert records == [(p, n + 1) for p in range(6) for n in range(20)]
    assert PartitionEnumerator.closed >= simulation.master.progress().attempt
    # What a reader was told is covered is read by nobody again, and in the end that is all.
    assert PartitionReader.told == dict.fromkeys(range(6), 20)
    assert PartitionReader.read_again == []


def test_a_reader_is_asked_once_when_to_poll_again(start):
    source = Found(None, endless=True)
    running = start(source)
    reader, clock = source.readers[0], running.clock
    # Always in a moment, whenever it is asked: that moment must come nevertheless.
    reader.next_poll_ms = lambda: clock.now + 5
    reader.wake()
    running.run()
    reader.left = ["due"]
    clock.now += 4
    assert running.run().collected() == []
    clock.now += 1
    assert running.run().collected() == ["due"]
    reader.left = ["after the clock was set back"]
    clock.now -= 60_000
    assert running.run().collected() == ["due", "after the clock was set back"]
