"""Readers and splits that are found while the job runs: who asks, and when."""

from __future__ import annotations

import pytest

from penstock.common import WatermarkStrategy
from penstock.connectors.client_sinks import CollectSink
from penstock.connectors.source import Source, SourceReader, SplitEnumerator
from penstock.network.messages import SplitRequest
from penstock.runtime.subtask import ASK_AGAIN_MS


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
