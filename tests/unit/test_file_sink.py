"""The file sink: visible once, whole, and only when a checkpoint says so."""

from __future__ import annotations

import pytest

from penstock.connectors.file_sink import FileSink
from penstock.connectors.sink import CommitterContext, WriterContext
from penstock.errors import SinkError, StorageError

JOB, UID = "0123456789abcdef", "fedcba9876543210"


class Place:
    """A directory, and sinks that write to it."""

    def __init__(self, path, clock):
        self.path = path
        self.clock = clock
        self.sink = FileSink(str(path))

    def writer(self, job=JOB, uid=UID, attempt=1, subtask=0):
        context = WriterContext(job, uid, attempt, subtask, 2, self.clock, None, None)
        return self.sink.create_writer(context)

    def committer(self, job=JOB, uid=UID):
        return self.sink.create_committer(CommitterContext(job, uid))

    def write(self, *values, **kwargs):
        """Write and prepare; the committables."""
        writer = self.writer(**kwargs)
        for value in values:
            writer.write(value)
        return writer.prepare_commit()()

    def names(self):
        return sorted(path.name for path in self.path.iterdir())

    def visible(self):
        return [name for name in self.names() if not name.startswith(".")]

    def lines(self):
        return sorted(
            line for name in self.visible() for line in (self.path / name).read_text().splitlines()
        )


@pytest.fixture
def place(tmp_path, clock):
    return Place(tmp_path, clock)


# --- writing ----------------------------------------------------------------------------------


def test_nothing_is_visible_before_the_commit(place):
    committables = place.write("a", "b")
    assert len(committables) == 1 and place.visible() == []
    place.committer().commit(committables)
    assert place.lines() == ["a", "b"]
    assert place.names() == place.visible()


def test_every_checkpoint_has_files_of_its_own(place):
    writer, prepared = place.writer(), []
    for value in ("a", "b"):
        writer.write(value)
        prepared.append(writer.prepare_commit())
    writer.write("c")
    first, second = (finish() for finish in prepared)
    place.committer().commit(first)
    assert place.lines() == ["a"]
    place.committer().commit(second)
    assert place.lines() == ["a", "b"]
    writer.close()


def test_nothing_written_means_no_file(place):
    writer = place.writer()
    assert writer.prepare_commit()() == []
    assert place.names() == []
    writer.close()


def test_many_records_are_written_before_the_checkpoint(place):
    committables = place.write(*range(2500))
    place.committer().commit(committables)
    assert len(place.lines()) == 2500


def test_closing_makes_nothing_visible(place):
    writer = place.writer()
    for n in range(1500):
        writer.write(n)
    writer.close()
    assert place.visible() == []


def test_an_encoder_says_how_a_record_is_written(place):
    place.sink = FileSink(str(place.path), lambda value: f"<{value}>\n".encode(), "out")
    place.committer().commit(place.write(1))
    [name] = place.visible()
    assert name.startswith("out-") and place.lines() == ["<1>"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"subtask": 0}, {"subtask": 1}),
        ({"attempt": 1}, {"attempt": 2}),
        ({"job": "a" * 32}, {"job": "b" * 32}),
        ({"uid": "a" * 32}, {"uid": "b" * 32}),
        ({"uid": "my-sink-1"}, {"uid": "my-sink-2"}),
        ({"job": "my-job-for-orders"}, {"job": "my-job-for-refunds"}),
        ({"uid": "a", "attempt": 11}, {"uid": "a-1", "attempt": 1}),
    ],
    ids=["subtask", "attempt", "job", "uid", "alike uids", "alike jobs", "dashes"],
)
def test_writers_never_share_a_file(place, one, other):
    committables = place.write("one", **one) + place.write("other", **other)
    assert len(set(committables)) == 2
    place.committer().commit(committables)
    assert place.lines() == ["one", "other"]


def test_a_uid_may_hold_any_character(place):
    committables = place.write("x", uid="a/b ../ü*")
    place.committer(uid="a/b ../ü*").commit(committables)
    assert place.lines() == ["x"]


def test_a_directory_that_cannot_be_written_to_is_an_error(tmp_path, clock):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError):
        Place(tmp_path / "file" / "below", clock).write("a")


# --- committing -------------------------------------------------------------------------------


def test_committing_again_changes_nothing(place):
    committables = place.write("a")
    for _ in range(3):
        place.committer().commit(committables)
    assert place.lines() == ["a"]


def test_committing_goes_on_after_a_part_was_committed(place):
    first, second = place.write("a", subtask=0), place.write("b", subtask=1)
    place.committer().commit(first)
    place.committer().commit(first + second)
    assert place.lines() == ["a", "b"]


def test_a_prepared_file_that_is_gone_is_an_error(place):
    [path] = place.write("a")
    (place.path / path.rsplit("/", 1)[1]).unlink()
    with pytest.raises(SinkError, match=f"{path} was prepared .* is gone: its records are lost"):
        place.committer().commit([path])


# --- aborting ---------------------------------------------------------------------------------


def test_abort_leaves_what_is_kept_and_removes_the_rest(place):
    kept, lost = place.write("kept", subtask=0), place.write("lost", subtask=1)
    unfinished = place.writer(attempt=2)
    for n in range(1500):
        unfinished.write(n)
    unfinished.close()
    committer = place.committer()
    committer.abort_others(kept)
    assert len(place.names()) == 1
    committer.commit(kept)
    assert place.lines() == ["kept"]
    with pytest.raises(SinkError):
        committer.commit(lost)


@pytest.mark.parametrize(
    "other",
    [
        {"job": "b" * 32},
        {"uid": "b" * 32},
        {"uid": UID[:8] + "-other"},
        {"job": JOB[:8] + "-other"},
    ],
    ids=["job", "sink", "sink with a similar uid", "job with a similar id"],
)
def test_abort_touches_only_its_own(place, other):
    others = place.write("theirs", **other)
    place.write("mine")
    place.committer().abort_others([])
    place.committer(**other).commit(others)
    assert place.lines() == ["theirs"]


def test_abort_leaves_finished_and_foreign_files_alone(place):
    place.committer().commit(place.write("done"))
    (place.path / "readme.txt").write_text("hello")
    (place.path / ".hidden.inprogress").write_text("hello")
    before = place.names()
    place.committer().abort_others([])
    assert place.names() == before


def test_abort_in_a_directory_that_is_not_there_yet(tmp_path, clock):
    Place(tmp_path / "new", clock).committer().abort_others([])
