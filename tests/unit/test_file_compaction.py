"""Compaction of files: fewer of them, every record once, whenever the committer dies."""

from __future__ import annotations

import itertools

import pytest

from penstock.common.filesystem import MemoryFileSystem, register_scheme
from penstock.connectors.sink import CommitterContext, WriterContext
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    CsvWriterFactory,
    Encoder,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
)
from penstock.errors import ProgramError, SinkError, StorageError
from penstock.testing import local_environment

JOB, UID = "0123456789abcdef", "fedcba9876543210"
CONCAT = FileCompactor.concat_file_compactor()


class Breaking(MemoryFileSystem):
    """Fails at one operation that changes something, and from then on at all of them."""

    def __init__(self):
        super().__init__()
        self.left = None

    def _step(self):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise StorageError("the power is off")

    def create(self, path, content):
        self._step()
        return super().create(path, content)

    def append(self, path):
        self._step()
        return super().append(path)

    def rename(self, source, target):
        self._step()
        super().rename(source, target)

    def delete(self, path):
        self._step()
        super().delete(path)


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"letter={element[0]}/all"


class Place:
    def __init__(self, clock, strategy, compactor=CONCAT, buckets=None):
        self.fs = Breaking()
        register_scheme("tested", lambda authority: self.fs)
        builder = FileSink.for_row_format("tested://x/out", Encoder.simple_string_encoder())
        if buckets is not None:
            builder.with_bucket_assigner(buckets)
        self.sink = builder.enable_compact(strategy, compactor).build()
        self.clock = clock
        self.committer = self.new_committer()
        self._attempts = itertools.count(1)

    def new_committer(self):
        return self.sink.create_committer(CommitterContext(JOB, UID))

    def write(self, *values):
        attempt = next(self._attempts)
        context = WriterContext(JOB, UID, attempt, 0, 1, self.clock, None, None)
        writer = self.sink.create_writer(context)
        for value in values:
            writer.write(value)
        return writer.prepare_commit()()

    def visible(self):
        paths = sorted(self.fs.files)
        return {p: self.fs.read(p) for p in paths if "/." not in p}

    def lines(self):
        return sorted(b"".join(self.visible().values()).decode().split())

    def hidden(self):
        return [path for path in self.fs.files if "/." in path]


def strategy(size=None, checkpoints=None, threads=1):
    builder = FileCompactStrategy.builder().set_num_compact_threads(threads)
    if size is not None:
        builder.set_size_threshold(size)
    if checkpoints is not None:
        builder.enable_compaction_on_checkpoint(checkpoints)
    return builder.build()


def test_files_are_merged_after_so_many_checkpoints(clock):
    place = Place(clock, strategy(checkpoints=3))
    for word in ("a", "b"):
        place.committer.commit(place.write(word))
        assert place.visible() == {}
    place.committer.commit(place.write("c"))
    [(path, content)] = place.visible().items()
    assert content == b"a\nb\nc\n" and path.startswith("/out/compacted-part-")


def test_files_of_a_bucket_are_merged_when_they_are_large(clock):
    place = Place(clock, strategy(size=6, threads=3), buckets=ByFirstLetter())
    place.committer.commit(place.write("aa", "bb"))
    place.committer.commit(place.write("ab"))
    [(path, content)] = place.visible().items()
    assert content == b"aa\nab\n" and path.startswith("/out/letter=a/all/compacted-")
    place.committer.abort_others([])
    assert place.lines() == ["aa", "ab", "bb"]
    place.new_committer().abort_others([])
    assert place.hidden() == []


def test_many_buckets_are_merged_side_by_side(clock):
    place = Place(clock, strategy(checkpoints=2, threads=4), buckets=ByFirstLetter())
    letters = "abcdefghij"
    place.committer.commit(place.write(*letters))
    place.committer.commit(place.write(*(letter * 2 for letter in letters)))
    assert place.lines() == sorted([*letters, *(letter * 2 for letter in letters)])
    assert len(place.visible()) == len(letters)


def test_a_driver_that_was_taken_over_merges_nothing_twice(clock):
    place = Place(clock, strategy(checkpoints=1))
    parts = place.write("a") + place.write("b")
    old, new = place.committer._compacting, place.new_committer()
    old._set_aside(parts[0], set())
    old._set_aside(parts[1], set())
    seen_by_the_old_one = old._asides()
    new.commit(parts)
    assert place.lines() == ["a", "b"]
    old._merge(seen_by_the_old_one)
    assert place.lines() == ["a", "b"]


def test_a_single_file_keeps_its_name(clock):
    place = Place(clock, strategy(checkpoints=1))
    [part] = place.write("a")
    place.committer.commit([part])
    assert list(place.visible()) == [part["to"]]


def test_identical_files_appear_together_as_they_are(clock):
    identical = FileCompactor.identical_file_compactor()
    place = Place(clock, strategy(checkpoints=2), identical)
    place.committer.commit(place.write("a"))
    assert place.visible() == {}
    place.committer.commit(place.write("b"))
    assert list(place.visible().values()) == [b"a\n", b"b\n"]


def test_a_delimiter_stands_between_files(clock):
    place = Place(clock, strategy(checkpoints=2), FileCompactor.concat_file_compactor(b"--\n"))
    place.committer.commit(place.write("a") + place.write("b"))
    place.committer.commit(place.write("c"))
    assert list(place.visible().values()) == [b"a\n--\nb\n--\nc\n"]


def test_committing_again_changes_nothing(clock):
    place = Place(clock, strategy(checkpoints=1))
    parts = place.write("a") + place.write("b")
    for _ in range(3):
        place.new_committer().commit(parts)
    assert place.lines() == ["a", "b"]


def test_a_prepared_file_that_is_gone_is_an_error(clock):
    place = Place(clock, strategy(checkpoints=1))
    parts = place.write("a") + place.write("b")
    place.fs.delete(parts[0]["from"])
    with pytest.raises(SinkError, match="is gone: its records are lost"):
        place.committer.commit(parts)


def test_wherever_the_committer_dies_every_record_is_there_once(clock):
    """All commits of a job, with the power gone before each operation in turn."""
    for operations in itertools.count():
        place = Place(clock, strategy(checkpoints=2))
        committed = []
        place.fs.left = operations
        try:
            for words in (("a",), ("b", "c"), ("d",), ("e",)):
                place.fs.left, left = None, place.fs.left
                committed.append(place.write(*words) + place.write(words[0] + "x"))
                place.fs.left = left
                place.committer.commit(committed[-1])
            place.committer.abort_others([])
            died = False
        except StorageError:
            died = True
        place.fs.left = None
        # The next driver commits what the last checkpoint covers, perhaps again.
        place.committer = place.new_committer()
        place.committer.commit(committed[-1])
        place.committer.abort_others(committed[-1])
        place.committer.abort_others([])
        expected = [w for n in range(len(committed)) for w in EXPECTED[n]]
        assert place.lines() == sorted(expected), f"died before operation {operations}"
        assert all(path.endswith(".compaction") for path in place.hidden())
        if not died:
            break
    assert operations > 20


EXPECTED = [("a", "ax"), ("b", "bx", "c"), ("d", "dx"), ("e", "ex")]


@pytest.mark.parametrize("seed", range(5))
def test_a_job_with_faults_and_compaction(seed):
    with local_environment(seed=seed, faults=True) as env:
        builder = FileSink.for_row_format(f"{env.storage}/out", Encoder.simple_string_encoder())
        sink = builder.enable_compact(strategy(checkpoints=3), CONCAT).build()
        env.set_parallelism(2)
        env.from_collection(range(300)).rebalance().map(str).sink_to(sink)
        env.execute()
        files = env.filesystem.files
        contents = [data for path, data in files.items() if "/out/" in path and "/." not in path]
        assert sorted(int(line) for data in contents for line in data.split()) == list(range(300))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FileCompactStrategy.builder().build(), "never be compacted"),
        (lambda: strategy(size=0), "by 0 bytes"),
        (lambda: strategy(checkpoints=0), "by 0 checkpoints"),
        (lambda: FileSink.for_row_format("x").enable_compact(None, CONCAT), "FileCompactStrategy"),
        (
            lambda: FileSink.for_row_format("x").enable_compact(strategy(size=1), None),
            "needs a FileCompactor",
        ),
        (
            lambda: FileSink.for_bulk_format("x", CsvWriterFactory(["a"])).enable_compact(
                strategy(size=1), CONCAT
            ),
            "cannot be concatenated",
        ),
    ],
)
def test_what_cannot_be_is_refused(build, message):
    with pytest.raises(ProgramError, match=message):
        build()
