"""A manifest is data: what it refers to lies beside it, or in the savepoint of a stop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.imports import import_checkpoint
from penstock.checkpoint.metadata import (
    CheckpointMetadata,
    VertexSnapshot,
    decode_metadata,
    encode_metadata,
)
from penstock.checkpoint.savepoints import SavepointLocation, dispose
from penstock.checkpoint.store import CheckpointStore
from penstock.errors import CorruptCheckpointError

OWN = "shared/1-4-0-6c35493a2b937829"
SAVEPOINT = "/data/savepoint-job-1-0c52d7e1b6aa"


def _manifest(*handles: SegmentHandle, job_id: str = "job-1", **others: Any) -> bytes:
    operators = {"u": OperatorSnapshot(handles)}
    vertex = VertexSnapshot("V", 1, 128, (SubtaskSnapshot(False, 0, operators),))
    metadata = CheckpointMetadata(job_id, 4, 1, 0, {"u": vertex}, {}, {})
    return encode_metadata(replace(metadata, **others))


def _handle(path: str = OWN, **others: Any) -> SegmentHandle:
    return replace(SegmentHandle.of(path, b"state", range(128)), **others)


OUTSIDE = [
    "shared/../../x",
    "shared/..",
    "shared/",
    "shared/./1-4-0-a",
    "shared//1-4-0-a",
    "shared/1-4-0-a/../../../x",
    "shared/1-4-0-..%2f..%2fx",
    "shared/1-4-0-a\\..\\x",
    "shared/1-4-0-a\0",
    "shared/1-4-0-a\n",
    "shared/.hidden",
    "",
    "x",
    "../shared/1-4-0-a",
    "/etc/passwd",
    "/etc/shared/1-4-0-a",
    "~/savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    "savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    f"{SAVEPOINT}/_metadata",
    f"{SAVEPOINT}/shared/../1-4-0-a",
    f"{SAVEPOINT}/../shared/1-4-0-a",
    "/data/../savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    "/data/./savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    "s3://bucket/%2e%2e/savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    "http://server/savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    "https://server/savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    "ftp://server/savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    "github://org:repo@main/savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    "simplecache::http://server/savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    "://savepoint-job-1-0c52d7e1b6aa/shared/1-4-0-a",
    7,
    None,
    ["shared/1-4-0-a"],
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_what_lies_elsewhere_is_refused(path: Any) -> None:
    with pytest.raises(CorruptCheckpointError, match="chk-4/_metadata was altered"):
        decode_metadata(_manifest(_handle(path)), "chk-4/_metadata")


@pytest.mark.parametrize("path", OUTSIDE)
def test_so_is_what_was_in_the_channels(path: Any) -> None:
    subtask = SubtaskSnapshot(False, 0, in_flight=(_handle(path),))
    vertices = {"u": VertexSnapshot("V", 1, 128, (subtask,))}
    with pytest.raises(CorruptCheckpointError, match="was altered"):
        decode_metadata(_manifest(vertices=vertices), "p")


@pytest.mark.parametrize(
    "path",
    [
        OWN,
        f"{OWN}-own",
        f"{OWN}-000012.sst",
        "shared/1-4-0-channels-of-2",
        "shared/1-1-from-1-4-0-6c35493a2b937829-MANIFEST-000005",
        "shared/0-6c35493a2b937829-0c52d7e1b6aa",
        f"{SAVEPOINT}/{OWN}",
        f"/savepoint-job-1-0c52d7e1b6aa/{OWN}",
        f"/data/with blanks, 100%/savepoint-job-1-0c52d7e1b6aa/{OWN}",
        f"s3://bucket/folder/savepoint-job-1-0c52d7e1b6aa/{OWN}",
        f"webhdfs://host:9870/folder/savepoint-job-1-0c52d7e1b6aa/{OWN}",
        f"file:///data/savepoint-job-1-0c52d7e1b6aa/{OWN}",
    ],
)
def test_what_a_job_writes_is_read(path: str) -> None:
    metadata = decode_metadata(_manifest(_handle(path)), "p")
    assert metadata is not None
    assert [handle.path for handle in metadata.segments()] == [path]


def test_the_savepoint_of_a_stop_is_one_and_the_job_s_own() -> None:
    location = SavepointLocation("/data", "savepoint-job-1-0c52d7e1b6aa")
    other = f"/data/savepoint-job-1-0c52d7e1b6ab/{OWN}"
    data = _manifest(_handle(f"{location.path}/{OWN}"), _handle(other))
    with pytest.raises(CorruptCheckpointError, match=r"several savepoints: .*6aa, .*6ab"):
        decode_metadata(data, "p")
    with pytest.raises(CorruptCheckpointError, match="a savepoint of another job"):
        decode_metadata(_manifest(_handle(other), job_id="job-2"), "p")


@pytest.mark.parametrize(
    "file",
    ["/x", "../x", "..", ".", "a/b", "OPTIONS-000007", "owner", "x.sst", "000012.sst/..", 7, None],
)
def test_what_is_no_file_of_a_database_is_refused(file: Any) -> None:
    handle = _handle(database="1-4-0-a", file=file)
    with pytest.raises(CorruptCheckpointError, match="was altered"):
        decode_metadata(_manifest(handle), "p")
    for good in ("000012.sst", "CURRENT", "MANIFEST-000005"):
        assert decode_metadata(_manifest(replace(handle, file=good)), "p")


@pytest.mark.parametrize("database", ["../x", "/x", "a/b", "..", 7, None])
def test_what_is_no_database_is_refused(database: Any) -> None:
    with pytest.raises(CorruptCheckpointError, match="was altered"):
        decode_metadata(_manifest(_handle(database=database)), "p")


@pytest.mark.parametrize(
    "wrong",
    [
        {"job_id": "../x"},
        {"job_id": ".."},
        {"job_id": ""},
        {"job_id": 7},
        {"checkpoint": "../../x"},
        {"checkpoint": -1},
        {"checkpoint": True},
        {"attempt": "1"},
        {"generation": "../1"},
        {"timestamp": None},
        {"restored_from": 7},
        {"committables": {"u": "part"}},
        {"vertices": {"u": VertexSnapshot("V", 1 << 60, 128, ())}},
        {"vertices": {"u": VertexSnapshot("V", 1, 0, ())}},
    ],
    ids=str,
)
def test_numbers_are_numbers_and_names_are_names(wrong: dict[str, Any]) -> None:
    """They become parts of paths, which are read and deleted."""
    data = _manifest(**wrong)
    with pytest.raises(CorruptCheckpointError, match="was altered"):
        decode_metadata(data, "p")


def test_disposing_of_a_checkpoint_deletes_nothing_of_others(tmp_path: Path) -> None:
    foreign = tmp_path / "x"
    foreign.write_bytes(b"state")
    manifest = tmp_path / "job-1" / "chk-4" / "_metadata"
    manifest.parent.mkdir(parents=True)
    (tmp_path / "job-1" / "shared").mkdir()
    manifest.write_bytes(_manifest(_handle("shared/../../x")))
    with pytest.raises(CorruptCheckpointError, match="which is no segment"):
        dispose(str(manifest.parent))
    assert foreign.read_bytes() == b"state"


def test_a_restore_fetches_nothing_from_elsewhere(tmp_path: Path) -> None:
    foreign = tmp_path / "secret"
    foreign.write_bytes(b"state")
    savepoint = tmp_path / "savepoint-job-1-0c52d7e1b6aa"
    savepoint.mkdir()
    (savepoint / "_metadata").write_bytes(_manifest(_handle(str(foreign))))
    store = CheckpointStore(str(tmp_path / "checkpoints"), "another").claim()
    with pytest.raises(CorruptCheckpointError, match="lies in no savepoint"):
        import_checkpoint(store, str(savepoint))
    assert store.ids() == []
