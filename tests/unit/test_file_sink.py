"""The file sink: visible once, whole, and only when a checkpoint says so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patience import PATIENCE

from penstock.connectors.sink import CommitterContext, WriterContext
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    Encoder,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
)
from penstock.errors import (
    ConfigurationError,
    ProgramError,
    RecordError,
    ResultShapeError,
    SinkError,
    StorageError,
)

JOB, UID = "0123456789abcdef", "fedcba9876543210"


class Place:
    """A directory, and sinks that write to it."""

    def __init__(self, path, clock):
        self.path = path
        self.clock = clock
        self.sink = self.builder().build()

    def builder(self, encoder=None):
        encoder = encoder or Encoder.simple_string_encoder()
        return FileSink.for_row_format(str(self.path), encoder)

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
        return sorted(path.name for path in self.path.rglob("*") if path.is_file())

    def visible(self):
        return [name for name in self.names() if not name.startswith(".")]

    def lines(self):
        return sorted(
            line
            for path in self.path.rglob("*")
            if path.is_file() and not path.name.startswith(".")
            for line in path.read_text().splitlines()
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
    names = OutputFileConfig.builder().with_part_prefix("out").with_part_suffix(".txt").build()
    builder = place.builder(lambda value: f"<{value}>\n".encode())
    place.sink = builder.with_output_file_config(names).build()
    place.committer().commit(place.write(1))
    [name] = place.visible()
    assert name.startswith("out-") and name.endswith(".txt") and place.lines() == ["<1>"]


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
    assert len({part["from"] for part in committables}) == 2
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


FULL_DISK = """
import resource, sys
from penstock.common.clock import SystemClock
from penstock.connectors.sink import CommitterContext, WriterContext
from penstock.datastream.connectors.file_system import FileSink
from penstock.errors import StorageError

# No file may grow beyond this: the next write fails half-way, as on a disk that is full.
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
sink = FileSink.for_row_format(sys.argv[1]).build()
writer = sink.create_writer(WriterContext("job", "uid", 1, 0, 1, SystemClock(), None, None))
try:
    for n in range(100_000):
        writer.write(f"{n:06}")
    writer.prepare_commit()()
except StorageError as error:
    print(error)
else:
    raise SystemExit("the disk was not full")
writer.close()
sink.create_committer(CommitterContext("job", "uid")).abort_others([])
"""


def test_a_disk_that_is_full_in_the_middle(tmp_path):
    out = tmp_path / "out"
    source = str(Path(__file__).parents[2] / "src")
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(out)],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(f"cannot write {out}/.part-job-")
    assert "File too large" in run.stdout and run.stdout.count("\n") == 1
    assert list(out.iterdir()) == [], "nothing half is left, and nothing was visible"


class FullAfter:
    """A disk that takes so many bytes."""

    def __init__(self, path, room):
        self.path, self.room = path, room

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise StorageError(f"cannot write {self.path}: No space left on device")

    def sync(self):
        pass

    def close(self):
        self.closed = True
        self.write(b"x")


def test_all_files_are_closed_when_the_disk_is_full(place, monkeypatch):
    streams = []

    def append(path):
        streams.append(FullAfter(path, 0))
        return streams[-1]

    place.sink = place.builder().with_bucket_assigner(ByFirstLetter()).build()
    writer = place.writer()
    monkeypatch.setattr(writer._storage._fs.__class__, "append", lambda self, path: append(path))
    writer.write("a")
    writer.write("b")
    with pytest.raises(StorageError, match=r"\.part-.*No space left on device"):
        writer.prepare_commit()()
    writer.close()
    assert [stream.closed for stream in streams] == [True, True]


def test_where_a_file_could_be_seen_half_is_no_place_for_a_sink(clock, tmp_path):
    pytest.importorskip("fsspec")
    # fsspec's own view of local files stands for all that it has and we know nothing of.
    sink = FileSink.for_row_format(f"local://{tmp_path}").build()
    context = WriterContext(JOB, UID, 1, 0, 1, clock, None, None)
    for act in (
        lambda: sink.create_writer(context),
        lambda: sink.create_committer(CommitterContext(JOB, UID)),
    ):
        with pytest.raises(ConfigurationError, match=r"local:// .*seen half; use a local or"):
            act()


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
    [part] = place.write("a")
    (place.path / part["from"].rsplit("/", 1)[1]).unlink()
    gone = f"{part['from']} was prepared .* is gone: its records are lost"
    with pytest.raises(SinkError, match=gone):
        place.committer().commit([part])


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


# --- buckets ----------------------------------------------------------------------------------


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"letter={element[0]}/x"


def test_records_go_to_the_folders_of_their_buckets(place):
    place.sink = place.builder().with_bucket_assigner(ByFirstLetter()).build()
    committables = place.write("a1", "b1", "a2")
    assert place.visible() == [] and len(committables) == 2
    assert not any(path.is_dir() for path in place.path.iterdir()), "no folder before the commit"
    for _ in range(2):
        place.committer().commit(committables)
    [a] = (place.path / "letter=a" / "x").iterdir()
    [b] = (place.path / "letter=b" / "x").iterdir()
    assert (a.read_text(), b.read_text()) == ("a1\na2\n", "b1\n")


def test_unfinished_files_of_buckets_are_aborted(place):
    place.sink = place.builder().with_bucket_assigner(ByFirstLetter()).build()
    place.write("a1", "b1")
    place.committer().abort_others([])
    assert place.names() == []


def test_more_buckets_than_files_can_be_open(place):
    class ByValue(BucketAssigner):
        def get_bucket_id(self, element, context):
            return f"b{element}"

    place.sink = place.builder().with_bucket_assigner(ByValue()).build()
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    writer = place.writer()
    for _ in range(2):
        for n in range(300):
            writer.write(n)
    if before:
        assert len(os.listdir("/proc/self/fd")) - before <= 2 * 64
    place.committer().commit(writer.prepare_commit()())
    assert place.lines() == sorted(str(n) for n in range(300) for _ in range(2))


@pytest.mark.parametrize(
    "bucket",
    [
        *("../up", "/root", "a//b", ".", "a/..", "a/", 7, None, b"a"),
        *("a\0b", "a\nb", "half \ud800", ".hidden/x", "a/_temporary"),
        *("x" * 256, "ü" * 128, "/".join(["abc"] * 200)),
    ],
)
def test_a_bucket_is_a_folder_below_the_directory_that_is_read(place, bucket):
    class Elsewhere(BucketAssigner):
        def get_bucket_id(self, element, context):
            return bucket

    place.sink = place.builder().with_bucket_assigner(Elsewhere()).build()
    with pytest.raises(RecordError):
        place.write("a")
    assert place.names() == []


@pytest.mark.parametrize("bucket", ["a", "a/b/c", "day=1", "_day=1", "ünï ©/x", "x" * 255, "a..b"])
def test_a_bucket_that_is_unusual_and_good(place, bucket):
    class There(BucketAssigner):
        def get_bucket_id(self, element, context):
            return bucket

    place.sink = place.builder().with_bucket_assigner(There()).build()
    place.committer().commit(place.write("a"))
    assert len(list((place.path / bucket).iterdir())) == 1


@pytest.mark.parametrize(
    ("pattern", "zone", "folder"),
    [
        ("yyyy-MM-dd--HH", "UTC", "2023-11-14--22"),
        ("yyyy/MM/dd", "UTC", "2023/11/14"),
        ("'day='yyyyMMdd'%'", "Asia/Kolkata", "day=20231115%"),
        ("HHmmss", "UTC", "221320"),
    ],
)
def test_buckets_by_time(place, pattern, zone, folder):
    place.clock.now = 1_700_000_000_000
    assigner = BucketAssigner.date_time_bucket_assigner(pattern, zone)
    place.sink = place.builder().with_bucket_assigner(assigner).build()
    place.committer().commit(place.write("a"))
    assert [path.is_file() for path in (place.path / folder).iterdir()] == [True]


def test_buckets_without_a_zone_are_by_local_time(place, monkeypatch):
    monkeypatch.setenv("TZ", "XYZ+5")  # POSIX: five hours behind UTC
    time.tzset()
    try:
        place.clock.now = 1_700_000_000_000
        assigner = BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd--HH")
        place.sink = place.builder().with_bucket_assigner(assigner).build()
        place.committer().commit(place.write("a"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (place.path / "2023-11-14--17").is_dir()


@pytest.mark.parametrize(("pattern", "zone"), [("yyyy-QQ", None), ("", None), ("yyyy", "Mars/X")])
def test_a_pattern_or_zone_that_is_none_is_refused(pattern, zone):
    with pytest.raises(ProgramError):
        BucketAssigner.date_time_bucket_assigner(pattern, zone)


def test_the_base_path_is_the_bucket_of_all(place):
    assigner = BucketAssigner.base_path_bucket_assigner()
    place.sink = place.builder().with_bucket_assigner(assigner).build()
    place.committer().commit(place.write("a"))
    assert [path.is_file() for path in place.path.iterdir()] == [True]


# --- rolling ----------------------------------------------------------------------------------


def rolling(place, **limits):
    builder = place.builder().with_bucket_check_interval(10)
    place.sink = builder.with_rolling_policy(RollingPolicy(**limits)).build()
    return place.writer()


def test_a_file_ends_at_its_size(place):
    writer = rolling(place, part_size=6)
    for n in range(100, 300):
        writer.write(n)
    committables = writer.prepare_commit()()
    assert len(committables) == 100
    place.committer().commit(committables)
    assert place.lines() == [str(n) for n in range(100, 300)]


@pytest.mark.parametrize("limits", [{"rollover_interval": 1000}, {"inactivity_interval": 1000}])
def test_a_file_ends_by_the_clock(place, limits):
    writer = rolling(place, **limits)
    for step in (999, 1001):
        writer.write(step)
        writer.flush()
        place.clock.now += step
        writer.flush()
        writer.write(step)
        writer.flush()
    assert len(place.names()) == 2
    committables = writer.prepare_commit()()
    place.committer().commit(committables)
    assert place.lines() == ["1001", "1001", "999", "999"]


def test_a_busy_file_is_not_inactive(place):
    writer = rolling(place, inactivity_interval=1000)
    for n in range(10):
        writer.write(n)
        place.clock.now += 500
        writer.flush()
    assert len(writer.prepare_commit()()) == 1


def test_limits_that_mean_nothing_are_refused():
    with pytest.raises(ProgramError, match="part_size must be more than 0"):
        RollingPolicy.default_rolling_policy(part_size=0)


# --- refusals ---------------------------------------------------------------------------------


def test_an_encoder_that_returns_no_bytes_is_an_error(place):
    place.sink = place.builder(lambda value: f"{value}").build()
    with pytest.raises(ResultShapeError, match="must return bytes, not str"):
        place.write("a")


def test_a_text_that_the_character_set_has_not_is_named(place):
    place.sink = place.builder(Encoder.simple_string_encoder("ascii")).build()
    with pytest.raises(RecordError, match=r"cannot be written: 'ascii' .* 'Zoë'"):
        place.write("Zoë")


@pytest.mark.parametrize("name", ["a/b", ".hidden", "_hidden", ""])
def test_a_prefix_that_is_no_name_is_refused(name):
    with pytest.raises(ProgramError):
        OutputFileConfig.builder().with_part_prefix(name).build()


def test_a_suffix_that_readers_pass_over_is_refused():
    with pytest.raises(ProgramError):
        OutputFileConfig.builder().with_part_suffix(".x._COPYING_").build()
