"""Files of real servers, S3 and HDFS: the promises of a file system, and a whole job."""

from __future__ import annotations

import threading
import tracemalloc
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, WatermarkStrategy
from penstock.common.filesystem import FileSystem, filesystem_for
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import CorruptCheckpointError, JobFailedError, StorageError
from penstock.testing import local_environment

# One process starts HDFS.
pytestmark = [pytest.mark.full("HDFS and S3"), pytest.mark.xdist_group("HDFS")]

MEGABYTE = 1 << 20


@pytest.fixture(params=["s3", "hdfs"])
def remote(request: pytest.FixtureRequest) -> str:
    """Where there is nothing yet."""
    if request.param == "s3":
        return str(request.getfixturevalue("bucket"))
    return f"{request.getfixturevalue('hdfs')}/{uuid.uuid4().hex}"


@pytest.fixture
def place(remote: str) -> tuple[FileSystem, str]:
    return filesystem_for(f"{remote}/base")


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
        with pytest.raises(StorageError, match=r"://.*/base/x: there is no such file") as gone:
            act()
        assert isinstance(gone.value.__cause__, FileNotFoundError)


def test_a_part_of_a_file(place: tuple[FileSystem, str]) -> None:
    fs, base = place
    data = bytes(range(256)) * 20_000
    assert fs.create(f"{base}/a", data)
    assert fs.read(f"{base}/a") == data
    for start, size in ((0, 10), (1_000_003, 2_000_000), (len(data) - 5, 100)):
        assert fs.read_part(f"{base}/a", start, size) == data[start : start + size]


def parts(count: int) -> Iterator[bytes]:
    """So many megabytes, each made when it is asked for."""
    for number in range(count):
        yield bytes([number % 256]) * MEGABYTE


def test_a_large_file_is_uploaded_while_it_is_made(place: tuple[FileSystem, str]) -> None:
    fs, base = place
    tracemalloc.start()
    try:
        assert fs.create(f"{base}/a", parts(160))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * MEGABYTE, f"{peak >> 20} MB"
    assert fs.sizes(base) == {"a": 160 * MEGABYTE}
    for number, part in enumerate(parts(160)):
        assert fs.read_part(f"{base}/a", number * MEGABYTE, MEGABYTE) == part


def test_of_two_large_files_the_first_wins(place: tuple[FileSystem, str]) -> None:
    fs, base = place
    assert fs.create(f"{base}/a", parts(20))
    assert not fs.create(f"{base}/a", [b"other" * MEGABYTE] * 8)
    assert fs.list(base) == ["a"] and fs.read(f"{base}/a") == b"".join(parts(20))


def test_what_breaks_off_is_no_file(place: tuple[FileSystem, str]) -> None:
    fs, base = place

    def breaks_off() -> Iterator[bytes]:
        yield from parts(20)
        raise CorruptCheckpointError("the rest is damaged")

    with pytest.raises(CorruptCheckpointError, match="the rest is damaged"):
        fs.create(f"{base}/a", breaks_off())
    assert fs.list(base) == []


def test_a_file_of_no_bytes(place: tuple[FileSystem, str]) -> None:
    fs, base = place
    assert fs.create(f"{base}/a", b"") and not fs.create(f"{base}/a", b"1")
    assert fs.exists(f"{base}/a") and fs.read(f"{base}/a") == b""


def test_another_drivers_file_is_seen_at_once(remote: str) -> None:
    """Listings are not remembered."""
    first, second = CheckpointStore(remote, "job"), CheckpointStore(remote, "job")
    assert second.ids() == []
    assert first.abandon(1)
    assert second.ids() == [1]
    assert second.abandon(1), "it is abandoned already"


def test_a_job_keeps_its_checkpoints_there_and_goes_on_from_them(remote: str) -> None:
    """Fails once in the middle; the second start of its id ends it, with exact output."""
    configuration = Configuration.from_dict(
        {
            "execution.checkpointing.interval": "50 ms",
            "execution.checkpointing.dir": f"{remote}/checkpoints",
            "restart-strategy": "none",
            "pipeline.jobid": "remote",
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
            env.execute("remote")

        with pytest.raises(JobFailedError):
            run()
        assert CheckpointStore(f"{remote}/checkpoints", "remote").whole()
        broken[0] = False
        run()
        assert env.simulation.restored
        out = {p: d for p, d in env.filesystem.files.items() if p.startswith("/out/part-")}
        sums = sorted(int(line) for data in out.values() for line in data.decode().split())
    assert sums == [n * (n + 1) // 2 for n in range(2_000)]
    fs, base = filesystem_for(f"{remote}/checkpoints/remote")
    assert fs.list(base) == ["generation-3"], "a finished job leaves the mark of its end"


def test_a_file_sink_writes_to_hdfs(hdfs: str, tmp_path: Path) -> None:
    """With a failure in between: each number once, and no file that is not finished."""
    target = f"{hdfs}/{uuid.uuid4().hex}"
    failed = tmp_path / "failed"

    def pass_on(n: int) -> str:
        if n == 700 and not failed.exists():
            failed.touch()
            raise RuntimeError("out of luck")
        return str(n)

    settings = {"execution.checkpointing.interval": "50 ms"}
    configuration = Configuration.from_dict(settings)
    with local_environment(seed=3, configuration=configuration) as env:
        source = NumberSequenceSource(0, 999)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        stream.map(pass_on).sink_to(FileSink.for_row_format(target).build())
        env.execute("to HDFS")
    assert failed.exists()
    fs, base = filesystem_for(target)
    names = fs.list(base)
    assert names and all(name.startswith("part-") for name in names)
    lines = [line for name in names for line in fs.read(f"{base}/{name}").split()]
    assert sorted(map(int, lines)) == list(range(1_000))


def test_paths_of_hdfs_lead_to_the_same_files(
    hdfs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = urlsplit(hdfs)
    (tmp_path / "hdfs-site.xml").write_text(
        "<configuration><property><name>dfs.namenode.http-address</name>"
        f"<value>{address.hostname}:{address.port}</value></property></configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    user = f"{address.username}@" if address.username else ""
    name = uuid.uuid4().hex
    fs, path = filesystem_for(f"hdfs://{user}{address.hostname}:8020/{name}")
    assert fs.create(path, b"whole") and not fs.create(path, b"other")
    same, place = filesystem_for(f"{hdfs}/{name}")
    assert same.read(place) == b"whole"
