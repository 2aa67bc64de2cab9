"""The file sink on a real S3 server: uploads that checkpoints complete, never a half file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cloudpickle
import pytest

from penstock.common.clock import SystemClock
from penstock.connectors import s3_uploads
from penstock.connectors.s3_uploads import S3Uploads
from penstock.connectors.sink import Committer, CommitterContext, SinkWriter, WriterContext
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    JsonLineEncoder,
    ParquetWriterFactory,
)
from penstock.errors import ConfigurationError, SinkError, StorageError
from penstock.testing.local_environment import local_environment

pytestmark = pytest.mark.full("HDFS and S3")


@pytest.fixture(autouse=True)
def fresh_clients() -> Iterator[None]:
    s3_uploads._client.cache_clear()
    yield
    s3_uploads._client.cache_clear()


class Place:
    """A folder of a bucket, and one sink that writes to it."""

    def __init__(self, bucket: str) -> None:
        import s3fs

        self.uri = f"{bucket}/deep/out"
        self.s3 = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)
        self.bucket = bucket.removeprefix("s3://")
        self.builder: Any = FileSink.for_row_format(self.uri, JsonLineEncoder())

    def _sink(self) -> FileSink:
        sink: FileSink = cloudpickle.loads(cloudpickle.dumps(self.builder.build()))
        return sink

    def writer(self, attempt: int = 1, subtask: int = 0, uid: str = "uid") -> SinkWriter:
        context = WriterContext(
            "job", uid, attempt, subtask, 2, SystemClock(), lambda *_: None, lambda: True
        )
        return self._sink().create_writer(context)

    def committer(self, uid: str = "uid", last_attempt: int = 1000) -> Committer:
        committer = self._sink().create_committer(CommitterContext("job", uid, last_attempt))
        assert committer is not None
        return committer

    def write(self, *values: Any, **who: Any) -> list[Any]:
        writer = self.writer(**who)
        for value in values:
            writer.write(value)
        committables = writer.prepare_commit()()
        writer.close()
        # As they come back from a checkpoint.
        committables = json.loads(json.dumps(committables))
        assert isinstance(committables, list)
        return committables

    def objects(self) -> dict[str, bytes]:
        paths = self.s3.find(self.bucket)
        return {path.removeprefix(f"{self.bucket}/"): self.s3.cat_file(path) for path in paths}

    def records(self) -> list[Any]:
        return sorted(json.loads(line) for data in self.objects().values() for line in data.split())

    def uploads(self) -> int:
        listing = self.s3.call_s3("list_multipart_uploads", Bucket=self.bucket)
        return len(listing.get("Uploads", ()))


@pytest.fixture
def place(bucket: str) -> Place:
    return Place(bucket)


def test_nothing_is_there_before_the_commit(place: Place) -> None:
    committables = place.write(1, 2)
    assert place.objects() == {} and place.uploads() == 1
    place.committer().commit(committables)
    assert place.records() == [1, 2] and place.uploads() == 0
    [name] = place.objects()
    assert name.startswith("deep/out/part-job-")


def test_a_large_file_is_uploaded_while_it_is_written(place: Place) -> None:
    writer, text = place.writer(), "x" * 1_000_000
    for n in range(23):
        writer.write(f"{n}{text}")
    [part] = writer.prepare_commit()()
    writer.close()
    assert len(part["pieces"]) == 4
    assert place.objects() == {}
    place.committer().commit([part])
    [data] = place.objects().values()
    assert len(data) == part["size"]
    expected = [f"{n}{text}" for n in range(23)]
    assert [json.loads(line) for line in data.split()] == expected


def test_committing_again_changes_nothing(place: Place) -> None:
    committables = place.write("a") + place.write("b", subtask=1)
    place.committer().commit(committables[:1])
    for _ in range(2):
        place.committer().commit(committables)
    assert place.records() == ["a", "b"]


def test_committing_from_several_processes_at_once(place: Place) -> None:
    committables = [part for n in range(8) for part in place.write(n, subtask=n)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: place.committer().commit(committables), range(4)))
    assert place.records() == list(range(8))


def test_a_prepared_upload_that_is_gone_is_an_error(place: Place) -> None:
    [part] = place.write("a")
    place.s3.call_s3(
        "abort_multipart_upload",
        Bucket=place.bucket,
        Key=f"deep/out/{part['to']}",
        UploadId=part["upload"],
    )
    lost = r"the upload of s3://.*/deep/out/part-.* is gone: its records are lost"
    with pytest.raises(SinkError, match=lost):
        place.committer().commit([part])
    place.s3.pipe_file(f"{place.bucket}/deep/out/{part['to']}", b"somebody else's, and longer")
    with pytest.raises(SinkError, match=lost):
        place.committer().commit([part])


def test_uploads_of_dead_attempts_are_aborted(place: Place) -> None:
    kept, lost = place.write("kept"), place.write("lost", subtask=1)
    dead = place.writer(attempt=2)
    for _ in range(6):
        dead.write("y" * 1_000_000)
    dead.prepare_commit()()
    others = place.write("theirs", uid="other")
    newer = place.write("newer", attempt=8)
    assert place.uploads() == 5
    place.committer(last_attempt=7).abort_others(kept)
    assert place.uploads() == 3
    place.committer().commit(kept + newer)
    place.committer(uid="other").commit(others)
    assert place.records() == ["kept", "newer", "theirs"] and place.uploads() == 0
    with pytest.raises(SinkError):
        place.committer().commit(lost)


def test_a_dead_attempt_that_goes_on_writing_is_stopped(place: Place) -> None:
    zombie = place.writer()
    for _ in range(6):
        zombie.write("y" * 1_000_000)
    prepared = zombie.prepare_commit()()
    zombie.write("more")
    place.committer().abort_others([])
    zombie.prepare_commit()()
    with pytest.raises(SinkError):
        place.committer().commit(prepared)
    place.committer().abort_others([])
    assert place.objects() == {} and place.uploads() == 0


def test_buckets_are_folders_and_their_uploads_are_found(place: Place) -> None:
    class ByParity(BucketAssigner):
        def get_bucket_id(self, element: Any, context: Any) -> str:
            return f"even={element % 2 == 0}/x"

    place.builder = place.builder.with_bucket_assigner(ByParity())
    place.committer().commit(place.write(1, 2, 3))
    place.write(4, 5)
    assert place.uploads() == 2
    place.committer().abort_others([])
    assert place.uploads() == 0
    folders = {name.rsplit("/", 1)[0] for name in place.objects()}
    assert folders == {"deep/out/even=True/x", "deep/out/even=False/x"}
    assert place.records() == [1, 2, 3]


def test_more_buckets_than_uploads_at_a_time(place: Place) -> None:
    class ByValue(BucketAssigner):
        def get_bucket_id(self, element: Any, context: Any) -> str:
            return f"b{element}"

    place.builder = place.builder.with_bucket_assigner(ByValue())
    place.committer().commit(place.write(*range(40)))
    assert place.records() == list(range(40))


def test_records_of_no_bytes_make_an_empty_file(place: Place) -> None:
    place.builder = FileSink.for_row_format(place.uri, lambda value: b"")
    committables = place.write("a")
    for _ in range(2):
        place.committer().commit(committables)
    assert list(place.objects().values()) == [b""]


def test_a_listing_of_many_uploads_is_read_to_its_end(place: Place) -> None:
    pages = [
        {"Uploads": [{"Key": "f/a", "UploadId": "1"}], "IsTruncated": True}
        | {"NextKeyMarker": "f/a", "NextUploadIdMarker": "1"},
        {"Uploads": [{"Key": "f/b", "UploadId": "2"}], "IsTruncated": False},
    ]
    asked = []

    class Pages:
        def call_s3(self, request: str, **arguments: Any) -> Any:
            asked.append(arguments.get("KeyMarker"))
            return pages[len(asked) - 1]

    assert list(S3Uploads(Pages(), "bucket", "/f").unfinished()) == [("a", "1"), ("b", "2")]
    assert asked == [None, "f/a"]


def test_parquet(place: Place) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    place.builder = FileSink.for_bulk_format(place.uri, ParquetWriterFactory({"n": "int64"}))
    place.committer().commit(place.write({"n": 1}, {"n": 2}))
    [data] = place.objects().values()
    table = parquet.read_table(pyarrow.BufferReader(data))
    assert table.to_pydict() == {"n": [1, 2]}


def test_a_bucket_that_does_not_exist_is_named(place: Place) -> None:
    place.builder = FileSink.for_row_format("s3://no-such-bucket-here/out", JsonLineEncoder())
    with pytest.raises(StorageError, match=r"upload s3://no-such-bucket-here/out/part-") as error:
        place.write("a")
    assert "\n" not in str(error.value)


def test_a_directory_without_a_bucket_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="names no bucket"):
        FileSink.for_row_format("s3:///out").build().create_committer(CommitterContext("j", "u"))


@pytest.mark.parametrize("seed", range(6))
def test_a_job_with_faults_writes_every_record_once(place: Place, seed: int) -> None:
    with local_environment(seed, faults=True) as env:
        numbers = env.from_collection(range(60)).rebalance().map(lambda n: n)
        numbers.sink_to(place.builder.build()).set_parallelism(2)
        env.execute()
    assert place.records() == list(range(60))
    assert place.uploads() == 0
