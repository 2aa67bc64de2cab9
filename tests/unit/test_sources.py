"""The JobMaster's side of sources: looking for splits holds nobody up, and answers keep order."""

from __future__ import annotations

import pytest

from penstock.common import WatermarkStrategy
from penstock.connectors.hybrid import SourcesInTurn
from penstock.connectors.source import (
    EnumeratorContext,
    QueueEnumerator,
    Source,
    SourceReader,
    SplitEnumerator,
    splits_for,
)
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import JobFailedError, StorageError
from penstock.graph.execution_graph import SubtaskId, build_execution_graph
from penstock.graph.job_graph import build_job_graph
from penstock.jobmanager.sources import Sources
from penstock.testing import local_environment

ATTEMPT = 3


class Shelf(SplitEnumerator):
    """Finds what is on the shelf when it looks; it must look when it has nothing left."""

    def __init__(self, shelf):
        self.shelf, self.left = shelf, []

    def must_look(self, subtask):
        return not self.left

    def look(self):
        taken, self.shelf[:] = list(self.shelf), []
        return taken

    def found(self, result):
        self.left += result

    def next_splits(self, subtask):
        return [self.left.pop(0)] if self.left else []

    def ask_again_ms(self, subtask):
        return 70

    def snapshot(self):
        return list(self.left)


class Nothing(Source):
    def create_enumerator(self, context, restored):
        raise AssertionError

    def create_reader(self, context):
        raise AssertionError


class Rig:
    """Sources of one vertex, with slow work that is done when the test says so."""

    def __init__(self, enumerator):
        env = StreamExecutionEnvironment().set_parallelism(3)
        env.from_source(Nothing(), WatermarkStrategy.no_watermarks(), "nothing").print()
        graph = build_execution_graph(build_job_graph(env._program.stream_graph(), "job"))
        self.slow, self.assigned, self.failures = [], [], []
        self.sources = Sources(graph, ATTEMPT, {0: enumerator}, self, self)

    def aside(self, work, done):
        self.slow.append((work, done))

    def assign(self, answer):
        assert answer.attempt == ATTEMPT and answer.ask_again_ms == 70
        self.assigned.append((answer.subtask[1], answer.splits))

    def fail(self, error):
        self.failures.append(error)
        self.sources.close()

    def ask(self, *readers):
        for reader in readers:
            self.sources.asked(SubtaskId(0, reader))

    def finish(self):
        for work, done in self.slow:
            try:
                result = work()
            except Exception as error:
                done(None, error)
            else:
                done(result, None)
        self.slow.clear()


def test_a_reader_is_answered_after_the_look():
    rig = Rig(Shelf(["a", "b"]))
    rig.ask(1)
    assert rig.assigned == [], "the look is not done in this thread"
    rig.finish()
    assert rig.assigned == [(1, ["a"])]
    rig.ask(2)
    assert rig.assigned == [(1, ["a"]), (2, ["b"])] and not rig.slow


def test_one_look_serves_all_that_ask_meanwhile():
    rig = Rig(Shelf(["a", "b"]))
    rig.ask(0, 1, 2)
    assert len(rig.slow) == 1
    rig.finish()
    assert rig.assigned == [(0, ["a"]), (1, ["b"]), (2, [])]
    rig.ask(0)
    assert len(rig.slow) == 1, "the next question is a new look"


def test_what_is_found_belongs_to_the_enumerator_when_it_is_taken_in():
    """A trigger before that has none of it in its part, and it is assigned after the trigger."""
    shelf = ["a", "b"]
    rig = Rig(Shelf(shelf))
    rig.ask(0)
    work, done = rig.slow.pop()
    found = work()
    assert list(rig.sources.states().values()) == [[]]
    done(found, None)
    assert list(rig.sources.states().values()) == [["b"]]
    assert rig.assigned == [(0, ["a"])]


def test_a_look_that_fails_fails_the_attempt():
    class Broken(Shelf):
        def look(self):
            raise StorageError("the folder is away")

    rig = Rig(Broken([]))
    rig.ask(0, 1)
    rig.finish()
    assert [str(error) for error in rig.failures] == ["the folder is away"]
    assert rig.assigned == []


@pytest.mark.parametrize("method", ["must_look", "found", "next_splits", "ask_again_ms"])
def test_an_enumerator_that_raises_fails_the_attempt_once(method):
    enumerator = Shelf(["a", "b"])

    def explode(*args):
        raise StorageError("no")

    setattr(enumerator, method, explode)
    rig = Rig(enumerator)
    rig.ask(0)
    if method != "must_look":
        rig.ask(1)
    rig.finish()
    assert [str(error) for error in rig.failures] == ["no"]
    assert rig.assigned == []


def test_a_look_that_ends_after_the_attempt_is_forgotten():
    rig = Rig(Shelf(["a"]))
    rig.ask(0)
    rig.sources.close()
    rig.finish()
    assert rig.assigned == [] and rig.failures == []


# --- in jobs ----------------------------------------------------------------------------------


class Doomed(QueueEnumerator):
    """Hands out one split, and finds out later that it is gone."""

    def check(self):
        if not self._left:
            raise StorageError("the shelf is gone")


class DoomedShelf(Source):
    def create_enumerator(self, context, restored):
        return Doomed(["a"])

    def create_reader(self, context):
        return Silent()


class Silent(SourceReader):
    """Waits for records of its splits for ever."""

    def __init__(self):
        self.splits = []

    def add_splits(self, splits):
        self.splits += splits

    def poll(self, limit):
        return [] if self.splits else None

    def snapshot(self):
        return self.splits


@pytest.mark.parametrize("hybrid", [False, True])
def test_what_an_enumerator_finds_when_nobody_asks_ends_the_attempt(hybrid):
    source = SourcesInTurn([DoomedShelf(), Shelves("b")]) if hybrid else DoomedShelf()
    with local_environment(seed=1) as env:
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "shelf")
        with pytest.raises(JobFailedError, match="the shelf is gone"):
            list(stream.set_parallelism(1).execute_and_collect())


class Shelves(Source):
    def __init__(self, *values):
        self.values = values

    def create_enumerator(self, context, restored):
        enumerator = Ends(list(self.values))
        enumerator.left = list(restored or [])
        return enumerator

    def create_reader(self, context):
        return OneByOne()


class Ends(Shelf):
    """A shelf that nothing is put on any more."""

    def next_splits(self, subtask):
        return super().next_splits(subtask) or None

    def ask_again_ms(self, subtask):
        return None


class OneByOne(SourceReader):
    def __init__(self):
        self.left = []

    def add_splits(self, splits):
        self.left += splits

    def poll(self, limit):
        return [self.left.pop(0)] if self.left else None

    def snapshot(self):
        return self.left


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_job_reads_what_is_found(parallelism):
    with local_environment(seed=parallelism) as env:
        env.set_parallelism(parallelism)
        source = Shelves(*"abcde")
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "shelf")
        with stream.execute_and_collect() as results:
            assert sorted(results) == list("abcde")


def test_a_hybrid_source_looks_where_its_current_source_does():
    class Fixed(Shelves):
        def create_enumerator(self, context, restored):
            return QueueEnumerator(self.values)

    hybrid = SourcesInTurn([Fixed("a"), Shelves("b", "c")])
    enumerator = hybrid.create_enumerator(EnumeratorContext(1), None)
    found = []
    while (splits := splits_for(enumerator, 0)) is not None:
        found += [split["split"] for split in splits]
    assert found == ["a", "b", "c"]
    enumerator.close()
