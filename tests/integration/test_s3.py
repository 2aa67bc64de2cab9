"""What is particular to S3, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.checkpoint.store import CheckpointStore
from penstock.common.filesystem import FileSystem, filesystem_for
from penstock.connectors.s3_uploads import uploads_for
from penstock.errors import CheckpointDirectoryError, CorruptCheckpointError

pytestmark = pytest.mark.full("HDFS and S3")


@pytest.fixture
def place(bucket: str) -> tuple[FileSystem, str]:
    return filesystem_for(f"{bucket}/base")


def test_a_file_written_piece_by_piece_is_there_when_it_is_synced(place: Any) -> None:
    fs, base = place
    stream = fs.append(f"{base}/parts")
    for _ in range(3):
        stream.write(b"x" * 3_000_000)
    assert not fs.exists(f"{base}/parts")
    stream.sync()
    assert len(fs.read(f"{base}/parts")) == 9_000_000
    stream.close()


def test_an_upload_that_comes_to_nothing_is_aborted(place: Any, bucket: str) -> None:
    """Else its pieces would be kept, and paid for, and nobody would see them."""
    fs, base = place

    def breaks_off() -> Iterator[bytes]:
        yield b"x" * 20_000_000
        raise CorruptCheckpointError("the rest is damaged")

    with pytest.raises(CorruptCheckpointError):
        fs.create(f"{base}/broken", breaks_off())
    assert fs.create(f"{base}/a", [b"x" * 20_000_000])
    assert not fs.create(f"{base}/a", [b"y" * 20_000_000])
    assert list(uploads_for(bucket).unfinished()) == []


def test_a_bucket_that_does_not_exist_is_refused_in_one_line(bucket: str) -> None:
    with pytest.raises(CheckpointDirectoryError) as refused:
        CheckpointStore(f"{bucket}-missing/checkpoints", "job").prepare()
    assert "\n" not in str(refused.value)
    assert "choose another with execution.checkpointing.dir" in str(refused.value)
