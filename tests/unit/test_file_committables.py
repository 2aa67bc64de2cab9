"""A checkpoint's committables rename and complete what the file sink itself has written, only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.file_compaction import FileCompactor, FileCompactStrategy
from penstock.connectors.file_multipart import MultipartCommitter
from penstock.connectors.file_sink import _owner
from penstock.connectors.jdbc.committer import PostgresCommitter
from penstock.connectors.sink import Committer, CommitterContext
from penstock.datastream.connectors.file_system import Encoder, FileSink
from penstock.errors import SinkError

OWNER = _owner("part", "0123456789", "uid").removeprefix(".")
NAME = f"{OWNER}1-0-0"


def _committer(directory: Path, compacts: bool) -> Committer:
    builder = FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
    if compacts:
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).build()
        builder.enable_compact(strategy, FileCompactor.concat_file_compactor())
    committer = builder.build().create_committer(CommitterContext("0123456789", "uid"))
    assert committer is not None
    return committer


def _part(directory: Path | str, to: str = NAME, **others: Any) -> dict[str, Any]:
    name = to.rpartition("/")[2]
    source = f"{directory}/.{name}.inprogress"
    return {"from": source, "to": f"{directory}/{to}", "size": 1, **others}


@pytest.mark.parametrize("compacts", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda out, other: {"from": f"{other}"},
        lambda out, other: {"from": f"{out}/../{other.name}"},
        lambda out, other: {"to": f"{out}/../{NAME}"},
        lambda out, other: {"to": f"{out}/a/../../{NAME}"},
        lambda out, other: {"to": f"{out}/./{NAME}"},
        lambda out, other: {"to": f"{out}//{NAME}"},
        lambda out, other: {"to": f"{other.parent}/{NAME}"},
        lambda out, other: {"to": f"{out}x/{NAME}"},
        lambda out, other: {"to": f"http://server/{NAME}"},
        lambda out, other: {"to": f"{out}/another"},
        lambda out, other: {"to": str(out)},
        lambda out, other: {"to": 7},
        lambda out, other: {"from": None},
        lambda out, other: {"size": "0/../../../x"},
    ],
)
def test_files_elsewhere_are_left_alone(tmp_path: Path, change: Any, compacts: bool) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    other.write_text("theirs")
    good, bad = _part(out, f"bucket/{NAME}x"), {**_part(out), **change(out, other)}
    for part in (good, _part(out)):
        Path(part["from"]).write_text("ours")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SinkError, match=r"no file of this sink's, which writes to .*/out: .*uid"):
        _committer(out, compacts).commit([good, bad])
    assert sorted(tmp_path.rglob("*")) == before
    _committer(out, compacts).commit([good, _part(out)])
    committer = _committer(out, compacts)
    committer.abort_others([])
    assert {path.read_text() for path in (out / "bucket" / f"{NAME}x", out / NAME)} == {"ours"}


@pytest.mark.parametrize("compacts", [False, True])
def test_what_is_visible_where_the_sink_wrote_before_is_left_there(
    tmp_path: Path, compacts: bool
) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    part = _part(before)
    for folder in (before, now):
        folder.mkdir()
    Path(part["from"]).write_text("ours")
    with pytest.raises(SinkError, match=r"which writes to .*/now: "):
        _committer(now, compacts).commit([part])
    _committer(before, compacts=False).commit([part])
    _committer(now, compacts).commit([part])
    assert [path.name for path in before.iterdir()] == [NAME]
    assert list(now.iterdir()) == []


@pytest.mark.parametrize("part", [None, "x", [], {}, {"from": "x"}])
def test_what_is_no_committable_is_refused(tmp_path: Path, part: Any) -> None:
    with pytest.raises(SinkError, match="no file of this sink's"):
        _committer(tmp_path, compacts=False).commit([part])


@pytest.mark.parametrize("inside", ["to", "inputs"])
def test_a_plan_of_a_merge_speaks_of_the_sink_s_folder(tmp_path: Path, inside: str) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    other.write_text("theirs")
    aside = out / f".{NAME}~~1.pending"
    aside.write_text("ours")
    plan = {"inputs": [str(aside)], "to": f"{out}/merged"}
    plan[inside] = [str(aside), str(other)] if inside == "inputs" else str(other)
    (out / f".{OWNER}~1.compaction").write_text(json.dumps(plan))
    with pytest.raises(SinkError, match=r"says to merge .*other, which is not below"):
        _committer(out, compacts=True).commit([])
    assert other.read_text() == "theirs"


class _Uploads:
    def __init__(self) -> None:
        self.completed: list[str] = []

    def complete(self, path: str, upload: str, tags: list[str]) -> bool:
        self.completed.append(path)
        return True

    def shown(self, path: str) -> str:
        return f"s3://bucket/out/{path}"


@pytest.mark.parametrize(
    "change",
    [{"to": "../x"}, {"to": "/x"}, {"to": ""}, {"to": 7}, {"upload": 7}, {"pieces": [7]}],
    ids=str,
)
def test_uploads_elsewhere_are_not_completed(change: dict[str, Any]) -> None:
    uploads = _Uploads()
    good = {"to": f"bucket/{NAME}", "upload": "u", "pieces": ["t"], "size": 1}
    committer = MultipartCommitter(uploads, "part-", 1)  # type: ignore[arg-type]
    with pytest.raises(SinkError, match=r"which writes to s3://bucket/out/"):
        committer.commit([good, {**good, **change}])
    assert uploads.completed == []
    committer.commit([good])
    assert uploads.completed == [good["to"]]


@pytest.mark.parametrize(
    "name", ["penstock:a:b:1'; DROP TABLE accounts; --", "somebody else's", "theirs", 7, None]
)
def test_the_name_of_a_transaction_is_no_statement(name: Any) -> None:
    class Unused:
        def connect(self, **_: Any) -> Any:
            raise AssertionError("it was asked")

    committer = PostgresCommitter(Unused(), "penstock:a:b:")  # type: ignore[arg-type]
    with pytest.raises(SinkError, match="no name that a sink gives"):
        committer.commit([{"transaction": name, "number": 1}])
