"""Sources one after another: the order of them, restarts within and between, what goes wrong."""

from __future__ import annotations

from collections import Counter

import pytest
from patience import until

from penstock.common import WatermarkStrategy
from penstock.common.clock import SystemClock
from penstock.connectors.bad_records import BadRecord
from penstock.connectors.hybrid import SourcesInTurn
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    ReaderContext,
    Source,
    SourceReader,
)
from penstock.datastream import OutputTag
from penstock.datastream.connectors.base import DivertBadRecords
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import JobFailedError, ProgramError, SourceError
from penstock.testing import local_environment
from penstock.testing.conformance import check_bounded_source

NONE = WatermarkStrategy.no_watermarks()


class Away(Source):
    """A server that cannot be reached when its turn has come."""

    def create_enumerator(self, context, restored):
        raise SourceError("the server does not answer")

    def create_reader(self, context):
        raise AssertionError("nobody got a split")


def three():
    builder = HybridSource.builder(NumberSequenceSource(0, 99))
    return builder.add_source(NumberSequenceSource(100, 149)).add_source(
        NumberSequenceSource(150, 249)
    )


def test_it_conforms():
    assert check_bounded_source(three().build()) == list(range(250))


@pytest.mark.parametrize("parallelism", [1, 3])
def test_no_record_of_a_source_comes_before_one_of_the_source_before_it(parallelism):
    with local_environment(seed=parallelism) as env:
        stream = env.from_source(three().build(), NONE, "numbers").set_parallelism(parallelism)
        found = list(stream.execute_and_collect())
    assert sorted(found) == list(range(250))
    if parallelism == 1:
        assert found == sorted(found)


@pytest.mark.parametrize("seed", range(30))
def test_faults_change_nothing(seed):
    with local_environment(seed, faults=True) as env:
        stream = env.from_source(three().build(), NONE, "numbers").set_parallelism(1 + seed % 3)
        assert Counter(stream.execute_and_collect()) == Counter(range(250))


def test_the_next_source_waits_for_all_readers():
    source = SourcesInTurn([NumberSequenceSource(0, 1), NumberSequenceSource(2, 3)])
    enumerator = source.create_enumerator(EnumeratorContext(2), None)
    while splits := enumerator.next_splits(0):
        assert {split["source"] for split in splits} == {0}
    # The other reader may still read: nothing of the second source for the first.
    assert enumerator.next_splits(0) == [] and enumerator.snapshot()["source"] == 0
    assert enumerator.ask_again_ms(0) is not None and enumerator.ask_again_ms(1) is None
    assert enumerator.next_splits(1) == [] and enumerator.snapshot()["source"] == 1
    restored = source.create_enumerator(EnumeratorContext(1), enumerator.snapshot())
    while not (splits := restored.next_splits(0)):
        pass
    assert {split["source"] for split in splits} == {1}


def test_a_source_that_cannot_begin_fails_the_job():
    with local_environment(seed=1) as env:
        source = HybridSource.builder(NumberSequenceSource(0, 9)).add_source(Away()).build()
        stream = env.from_source(source, NONE, "numbers").set_parallelism(1)
        with pytest.raises(JobFailedError, match="the server does not answer"):
            list(stream.execute_and_collect())


def test_only_sources_can_be_added():
    with pytest.raises(ProgramError, match="needs a Source, not a list"):
        HybridSource.builder([1, 2])


# --- what is passed on ------------------------------------------------------------------------


class Told(Source):
    """Notes what its enumerator and its reader are told."""

    def __init__(self):
        self.log = []

    def create_enumerator(self, context, restored):
        return ToldEnumerator(self.log)

    def create_reader(self, context):
        return ToldReader(self.log)


class ToldEnumerator(QueueEnumerator):
    def __init__(self, log):
        super().__init__(["a"])
        self.log = log

    def close(self):
        self.log.append("closed")


class ToldReader(SourceReader):
    pauses_splits = True

    def __init__(self, log):
        self.log = log

    def add_splits(self, splits):
        pass

    def poll(self, limit):
        return None

    def snapshot(self):
        return []

    def pause_or_resume_splits(self, to_pause, to_resume):
        self.log.append((to_pause, to_resume))


def test_the_enumerator_whose_turn_it_is_is_closed():
    told = Told()
    enumerator = SourcesInTurn([told, Told()]).create_enumerator(EnumeratorContext(1), None)
    enumerator.close()
    enumerator.close()
    assert told.log == ["closed"]


def test_the_enumerator_that_comes_next_is_closed_however_far_it_is():
    first, second = Told(), Told()
    enumerator = SourcesInTurn([first, second]).create_enumerator(EnumeratorContext(1), None)
    while enumerator.snapshot()["source"] == 0:
        enumerator.next_splits(0)
    assert first.log == ["closed"]
    enumerator.close()
    until(lambda: second.log, "the next one is closed, by whoever made it if it was not there yet")
    assert (first.log, second.log) == (["closed"], ["closed"])


def test_a_reader_pauses_only_splits_of_its_source():
    first, second = Told(), Told()
    context = ReaderContext(0, 1, SystemClock(), lambda: None)
    reader = SourcesInTurn([first, second]).create_reader(context)
    reader.add_splits([{"source": 1, "split": "x"}])
    # Splits as they were told before the second source began; None is what could not be told.
    reader.pause_or_resume_splits([(0, "a"), (1, "b"), None], [None, (1, "c"), (0, "d")])
    assert (first.log, second.log) == ([], [(["b"], ["c"])])


# --- bad records ------------------------------------------------------------------------------


class Partly(Source):
    """Numbers, every third of which cannot be decoded."""

    timed = True
    keeps_bad_records = True

    def create_enumerator(self, context, restored):
        return QueueEnumerator(restored if restored is not None else [0])

    def create_reader(self, context):
        return PartlyReader(context.timed)


class PartlyReader(SourceReader):
    def __init__(self, timed):
        self.timed, self.splits = timed, []

    def add_splits(self, splits):
        self.splits += splits

    def poll(self, limit):
        if not self.splits:
            return None
        number = self.splits.pop()
        if number < 9:
            self.splits.append(number + 1)
        value = BadRecord("ValueError: no", number) if number % 3 == 0 else {"at": number * 10}
        return [(value, 7)] if self.timed else [value]

    def snapshot(self):
        return list(self.splits)


@pytest.mark.parametrize(
    "strategy",
    [
        NONE,
        WatermarkStrategy.for_monotonous_timestamps(),
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda value, _: value["at"]
        ),
    ],
)
def test_bad_records_go_to_a_side_output_and_past_the_timestamp_assigner(strategy):
    bad = OutputTag("bad")
    with local_environment(seed=1) as env:
        stream = env.from_source(Partly(), strategy, "partly").set_parallelism(1)
        good = stream.process(DivertBadRecords(bad))
        refused = good.get_side_output(bad).map(lambda one: ("bad", one.record))
        found = list(good.map(lambda one: ("good", one["at"])).union(refused).execute_and_collect())
    assert sorted(found) == sorted(
        ("bad", n) if n % 3 == 0 else ("good", n * 10) for n in range(10)
    )
