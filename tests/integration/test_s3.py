"""Checkpoints on a real S3 server: the promises of a file system, and a whole job."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, WatermarkStrategy
from penstock.common.filesystem import FileSystem, filesystem_for
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import CheckpointDirectoryError, JobFailedError, StorageError
from penstock.testing import local_environment


@pytest.fixture
def place(bucket: str) -> tuple[FileSystem, str]:
    return filesystem_for(f"{bucket}/base")


def test_of_two_writers_the_first_wins(place: tuple[FileSystem, str]) -> None:
    fs, base = place
    assert fs.create(f"{base}/deep/a", b"first")
    assert not fs.create(f"{base}/deep/a", b"second")
    assert fs.read(f"{base}/deep/a") == b"first"


def test_of_racing_writers_exactly_one_wins(place: tuple[FileSystem, str]) -> None:
    fs, base = place
    for turn in range(5):
        path, won = f"{base}/race-{turn}", []
        start = threading.Barrier(8)

        def write(n: int, path: str = path, start: Any = start, won: Any = won) -> None:
            start.wait()
            if fs.create(path, b"%d" % n * 1000):
                won.append(n)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert fs.read(path) == b"%d" % won[0] * 1000


def test_files_are_listed_renamed_and_deleted(place: tuple[FileSystem, str]) -> None:
    fs, base = place
    assert fs.list(base) == [] and not fs.exists(f"{base}/a")
    fs.create(f"{base}/a", b"1")
    fs.create(f"{base}/below/b", b"2")
    assert fs.list(base) == ["a", "below"]
    fs.rename(f"{base}/a", f"{base}/new/c")
    assert fs.list(base) == ["below", "new"] and fs.read(f"{base}/new/c") == b"1"
    fs.delete(f"{base}/below/b")
    fs.delete(f"{base}/below")
    fs.delete(f"{base}/nothing")
    assert fs.list(base) == ["new"]


def test_what_is_not_there_is_told_from_what_does_not_answer(place: Any) -> None:
    fs, base = place
    for act in (lambda: fs.read(f"{base}/x"), lambda: fs.rename(f"{base}/x", f"{base}/y")):
        with pytest.raises(StorageError, match=r"s3://.*/base/x: there is no such file") as gone:
            act()
        assert isinstance(gone.value.__cause__, FileNotFoundError)


def test_a_file_written_piece_by_piece_is_there_when_it_is_synced(place: Any) -> None:
    fs, base = place
    stream = fs.append(f"{base}/parts")
    for _ in range(3):
        stream.write(b"x" * 3_000_000)
    assert not fs.exists(f"{base}/parts")
    stream.sync()
    assert len(fs.read(f"{base}/parts")) == 9_000_000
    stream.close()


def test_another_drivers_file_is_seen_at_once(bucket: str) -> None:
    """Listings are not remembered."""
    first, second = CheckpointStore(bucket, "job"), CheckpointStore(bucket, "job")
    assert second.ids() == []
    assert first.abandon(1)
    assert second.ids() == [1]
    assert second.abandon(1), "it is abandoned already"


def test_a_bucket_that_does_not_exist_is_refused_in_one_line(bucket: str) -> None:
    with pytest.raises(CheckpointDirectoryError) as refused:
        CheckpointStore(f"{bucket}-missing/checkpoints", "job").prepare()
    assert "\n" not in str(refused.value)
    assert "choose another with execution.checkpointing.dir" in str(refused.value)


def test_a_job_keeps_its_checkpoints_there_and_goes_on_from_them(bucket: str) -> None:
    """Fails once in the middle; the second start of its id ends it, with exact output."""
    configuration = Configuration.from_dict(
        {
            "execution.checkpointing.interval": "50 ms",
            "execution.checkpointing.dir": f"{bucket}/checkpoints",
            "restart-strategy": "none",
            "pipeline.jobid": "on-s3",
        }
    )
    broken = [True]

    def pass_on(n: int) -> int:
        if n == 1_500 and broken[0]:
            raise RuntimeError("out of luck")
        return n

    with local_environment(seed=5, configuration=configuration) as env:

        def run() -> None:
            source = NumberSequenceSource(0, 1_999)
            stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
            stream = stream.map(pass_on).key_by(lambda _: 0).reduce(lambda a, b: a + b).map(str)
            stream.sink_to(FileSink.for_row_format(f"{env.storage}/out").build())
            env.execute("on S3")

        with pytest.raises(JobFailedError):
            run()
        assert CheckpointStore(f"{bucket}/checkpoints", "on-s3").whole()
        broken[0] = False
        run()
        assert env.simulation.restored
        out = {p: d for p, d in env.filesystem.files.items() if p.startswith("/out/part-")}
        sums = sorted(int(line) for data in out.values() for line in data.decode().split())
    assert sums == [n * (n + 1) // 2 for n in range(2_000)]
    fs, base = filesystem_for(f"{bucket}/checkpoints/on-s3")
    assert fs.list(base) == ["generation-3"], "a finished job leaves the mark of its end"
