"""Commits: carried until they are confirmed, each once, by whoever's they are."""

from __future__ import annotations

import pytest

from penstock.connectors.sink import Committer, Sink, SinkWriter
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import LostOutputError, ProgramError, SinkError, StorageError
from penstock.graph.job_graph import build_job_graph
from penstock.jobmanager.committing import Commits, merge


class Recorder(Sink, Committer):
    """A sink whose committer is itself, to see what it is told."""

    def __init__(self, error=None):
        self.error = error
        self.calls = []

    def create_writer(self, context):
        return SinkWriter()

    def create_committer(self, context):
        self.context = context
        return self

    def commit(self, committables):
        if self.error is not None:
            raise self.error
        self.calls.append(("commit", committables))

    def abort_others(self, keep):
        self.calls.append(("abort", keep))


class Plain(Sink):
    def create_writer(self, context):
        return SinkWriter()


def commits_of(**sinks):
    env = StreamExecutionEnvironment()
    stream = env.from_collection([1])
    for uid, sink in sinks.items():
        stream.sink_to(sink).uid(uid)
    return Commits(build_job_graph(env._program.stream_graph(), "job"), "job-1")


@pytest.fixture
def sink():
    return Recorder()


def test_every_transactional_sink_has_its_committer(sink):
    commits_of(a=sink, b=Plain())
    assert (sink.context.job_id, sink.context.uid) == ("job-1", "a")


def test_a_committable_is_carried_until_it_is_confirmed(sink):
    commits = commits_of(a=sink)
    commits.add({"a": ("f1", "f2")})
    commits.add({"a": ("f2", "f3")})
    assert commits.unconfirmed() == {"a": ("f1", "f2", "f3")}
    commits.confirm({"a": ("f1", "f3"), "unknown": ("x",)})
    assert commits.unconfirmed() == {"a": ("f2",)}
    commits.confirm({"a": ("f2",)})
    assert not any(commits.unconfirmed().values())


def test_what_is_added_while_a_commit_is_under_way_is_not_lost(sink):
    commits = commits_of(a=sink)
    commits.add({"a": ("f1",)})
    under_way = commits.unconfirmed()
    commits.add({"a": ("f2",)})
    commits.commit(under_way)
    commits.confirm(under_way)
    assert commits.unconfirmed() == {"a": ("f2",)}


def test_committables_are_told_apart_by_their_content(sink):
    commits = commits_of(a=sink)
    commits.add({"a": ({"x": 1, "y": b"z"}, ["p"])})
    commits.add({"a": ({"y": b"z", "x": 1}, ("p",))})
    assert len(commits.unconfirmed()["a"]) == 2


def test_each_sink_commits_its_own():
    left, right = Recorder(), Recorder()
    commits = commits_of(a=left, b=right)
    commits.commit({"a": ("f1", "f2"), "b": ()})
    assert left.calls == [("commit", ["f1", "f2"])]
    assert right.calls == []


def test_aborting_asks_every_committer(sink):
    other = Recorder()
    commits = commits_of(a=sink, b=other, c=Plain())
    commits.abort_others({"a": ("kept",)})
    assert sink.calls == [("abort", ["kept"])]
    assert other.calls == [("abort", [])]


def test_an_error_of_a_committer_names_the_sink():
    with pytest.raises(SinkError, match="the sink with uid a cannot commit: boom") as raised:
        commits_of(a=Recorder(RuntimeError("boom"))).commit({"a": ("f",)})
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_our_own_errors_are_passed_on():
    error = StorageError("no answer")
    with pytest.raises(StorageError) as raised:
        commits_of(a=Recorder(error)).commit({"a": ("f",)})
    assert raised.value is error


def test_output_of_a_sink_that_commits_nothing_is_refused():
    with pytest.raises(ProgramError, match="uid a prepared output but has no committer"):
        commits_of(a=Plain()).commit({"a": ("f",)})


class Forgets(Recorder):
    """A sink that knows what it has made visible, until its server loses everything."""

    def __init__(self):
        super().__init__()
        self.lost = False
        self.out = []

    def check(self, committables):
        if self.lost:
            raise LostOutputError("gone", committables)

    def commit(self, committables):
        self.check(committables)
        self.out += committables

    def visible(self, committables):
        return [value for value in committables if value in self.out]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_loss_tells_what_other_sinks_made_visible_when_it_was_committed_before(order):
    """They did in an earlier try, that broke off: going back would repeat it."""
    sinks = {"a": Forgets(), "b": Forgets()}
    commits = commits_of(**{uid: sinks[uid] for uid in order})
    committables = {uid: (f"of {uid}",) for uid in order}
    sinks["a"].commit(["of a"])
    sinks["b"].lost = True
    with pytest.raises(LostOutputError) as raised:
        commits.commit(committables)
    assert (raised.value.lost, raised.value.visible) == (("of b",), ("of a",))


def test_a_loss_that_comes_up_in_a_commit_tells_what_other_sinks_have_just_made_visible():
    first, second, third = Forgets(), Recorder(LostOutputError("gone", ["f2"], ["g2"])), Forgets()
    second.visible = lambda committables: []
    commits = commits_of(a=first, b=second, c=third)
    with pytest.raises(LostOutputError) as raised:
        commits.commit({"a": ("f1",), "b": ("g2", "f2"), "c": ("f3",)})
    assert set(raised.value.visible) == {"f1", "g2"}


def test_of_a_sink_that_cannot_tell_all_may_be_visible(sink):
    lost = Forgets()
    lost.lost = True
    with pytest.raises(LostOutputError) as raised:
        commits_of(a=sink, b=lost).commit({"a": ("f1",), "b": ("f2",)})
    assert raised.value.visible == ("f1",)


def test_merging_keeps_each_once_and_in_order():
    merged = merge([{"a": ("1", "2")}, {"a": ("2", "3"), "b": ()}, {"c": ({"x": 1},)}])
    assert merged == {"a": ("1", "2", "3"), "c": ({"x": 1},)}
    assert merge([]) == {}
