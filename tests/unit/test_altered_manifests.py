"""Manifests that somebody has altered, checksums and all: data, whatever they say.

Whatever is done with such a manifest, nothing is touched outside of the folders that were named
to do it, nothing is unpickled for whoever only looks, and what is wrong is an error of ours.
"""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.imports import import_checkpoint
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot, encode_metadata
from penstock.checkpoint.parts import keyed_files
from penstock.checkpoint.savepoints import dispose, open_snapshot
from penstock.checkpoint.sealed import seal, unseal
from penstock.checkpoint.segment_names import path_of
from penstock.checkpoint.store import CheckpointStore
from penstock.cli.main import penstock
from penstock.common.typeinfo import TypeInformation, Types
from penstock.connectors.sink import CommitterContext
from penstock.datastream.connectors.file_system import Encoder, FileSink
from penstock.errors import PenstockError
from penstock.inspection.catalog import Catalog
from penstock.inspection.lookup import Lookup
from penstock.state.entries import encode_entries
from penstock.state.keyed_parts import keyed_parts
from penstock.state.schema import PICKLED, schema_of
from penstock.state.segments import GroupBlock, encode_segment

NUMBER = "chk-4"
JOB = "job-1"
PART = "part-job-1-95f99b4b-1-0-0"


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("false",)


# --- what there is before ---------------------------------------------------------------------


def _block(name: str, kind: TypeInformation, values: list[Any], group: int = 0) -> GroupBlock:
    payload = encode_entries(kind, [f"k{n}" for n in range(len(values))], values)
    return GroupBlock(name, "value", group, [payload], schema_of(kind))


class Sandbox:
    """A folder with a job's checkpoint, the folder of its sink, and files that are not its own."""

    def __init__(self, folder: str) -> None:
        self.root = Path(folder)
        self.storage, self.others = self.root / "storage", self.root / "others"
        self.sink, self.copies = self.root / "sink", self.root / "copies"
        for place in (self.storage, self.others, self.sink, self.copies):
            place.mkdir()
        for name in ("x", "_metadata", "1-4-0-a", ".x.inprogress"):
            (self.others / name).write_bytes(b"theirs")
        (self.sink / f".{PART}.inprogress").write_bytes(b"ours")
        (self.storage / JOB / "shared").mkdir(parents=True)
        self.store = CheckpointStore(str(self.storage), JOB)
        self.path = str(self.storage / JOB / NUMBER)

    def contents(self) -> dict[str, Any]:
        """The manifest of the checkpoint, as plain data."""
        keyed = [_block("n", Types.LONG(), [1, 2]), _block("any", PICKLED, [Bomb()])]
        own = encode_segment([_block("o", PICKLED, [1], -1)])
        handles = [
            self._handle("1-4-0-a", encode_segment(keyed), range(128)),
            self._handle("1-4-0-a-own", own, range(-1, 0)),
        ]
        described = encode_segment([_block("t", Types.LONG(), [])])
        database = [self._handle("1-4-0-b", described, range(128), database="1-4-0-b")]
        for file in ("CURRENT", "MANIFEST-000005", "000008.sst"):
            data = file.encode()
            database.append(
                self._handle(f"1-4-0-b-{file}", data, range(128), database="1-4-0-b", file=file)
            )
        channels = self._handle("1-4-0-channels-of-2", b"waiting", range(-1, 0))
        operators = {
            "u": OperatorSnapshot(tuple(handles), ({"file": "a", "at": 3},)),
            "d": OperatorSnapshot(tuple(database)),
        }
        subtask = SubtaskSnapshot(False, 0, operators, in_flight=(channels,))
        vertex = VertexSnapshot("V", 1, 128, (subtask,), {"u": "Counts", "d": "Database"})
        part = {
            "from": f"{self.sink}/.{PART}.inprogress",
            "to": f"{self.sink}/bucket/{PART}",
            "size": 4,
        }
        metadata = CheckpointMetadata(JOB, 4, 1, 7, {"u": vertex}, {"u": [1]}, {"u": (part,)})
        return unseal(encode_metadata(metadata), "p")

    def _handle(self, name: str, data: bytes, groups: range, **others: Any) -> SegmentHandle:
        path = path_of(name)
        # Not by the store, which takes its time to make a file durable.
        (self.storage / JOB / path).write_bytes(data)
        names = {"1-4-0-a": ["n", "any"], "1-4-0-a-own": ["o"]}.get(name, ["t"])
        handle = SegmentHandle.of(path, data, groups, [(state, "value") for state in names])
        return SegmentHandle(**{**vars(handle), **others})

    def write(self, content: Any) -> None:
        folder = Path(self.path)
        folder.mkdir(parents=True)
        (folder / "_metadata").write_bytes(seal(content))

    def files(self, *places: Path) -> dict[str, bytes]:
        found = (path for place in places for path in place.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}


@contextlib.contextmanager
def sandbox() -> Iterator[Sandbox]:
    folder = tempfile.mkdtemp(prefix="penstock-altered-")
    try:
        yield Sandbox(folder)
    finally:
        shutil.rmtree(folder)


# --- what is done with it ---------------------------------------------------------------------


def look(box: Sandbox) -> None:
    penstock.main(["state", "ls", box.path], standalone_mode=False)
    catalog = Catalog.open(box.path)
    for uid, operator in catalog.operators.items():
        for state in operator.states:
            with contextlib.suppress(PenstockError):
                list(Lookup(catalog, uid, state).entries())


def copy_it(box: Sandbox) -> None:
    import_checkpoint(CheckpointStore(str(box.copies), "another").claim(), box.path)


def go_on(box: Sandbox) -> None:
    """What a job does that is started again, before its slots have anything."""
    metadata, _ = box.store.newest()
    if metadata is None:
        return
    box.store.note_start(metadata.checkpoint)
    sink = FileSink.for_row_format(str(box.sink), Encoder.simple_string_encoder()).build()
    committer = sink.create_committer(CommitterContext(JOB, "u"))
    assert committer is not None
    for values in metadata.committables.values():
        committer.commit(list(values))


def unpack(box: Sandbox) -> None:
    """What a slot does with the files of databases."""
    snapshot = open_snapshot(box.path)
    for vertex in snapshot.metadata.vertices.values():
        for subtask in vertex.subtasks:
            for operator in subtask.operators.values():
                files = keyed_files(operator.segments, snapshot.store, range(128))
                for part in keyed_parts(files):
                    if part.database is not None:
                        part.database.unpack(tempfile.mkdtemp(dir=box.copies))


def sweep(box: Sandbox) -> None:
    """What the driver of a job does when a newer checkpoint is complete."""
    for metadata in box.store.manifests():
        box.store.discard(metadata.checkpoint, metadata.segment_paths())


def throw_away(box: Sandbox) -> None:
    dispose(box.path)


Act = Callable[[Sandbox], None]
LIVES: list[tuple[Act, ...]] = [(look, unpack, copy_it, go_on, throw_away), (sweep,)]


# --- who watches ------------------------------------------------------------------------------

_FILES = ("open", "os.remove", "os.rename", "os.link", "os.rmdir", "os.mkdir", "os.listdir")
_CODE = ("pickle.find_class", "os.system", "subprocess.Popen", "socket.connect", "os.exec")


class Watch:
    """Notes what this process asks of the system, while it is switched on."""

    def __init__(self) -> None:
        self.on = False
        self.touched: set[str] = set()
        self.ran: list[str] = []
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in _CODE:
            self.ran.append(f"{event} {arguments}")
        elif event in _FILES:
            self.touched |= {str(a) for a in arguments if isinstance(a, (str, os.PathLike))}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        self.touched, self.ran, self.on = set(), [], True
        try:
            yield
        finally:
            self.on = False

    def outside(self, box: Sandbox) -> list[str]:
        """Files that were touched and are neither in the sandbox nor part of the program."""
        own = [box.storage, box.sink, box.copies, sys.prefix, sys.base_prefix, _SOURCE]
        known = tuple(f"{os.path.realpath(place)}/" for place in own)
        paths = (os.path.realpath(path) for path in self.touched if path.startswith("/"))
        return [path for path in paths if not f"{path}/".startswith(known)]


_SOURCE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def watch() -> Iterator[Watch]:
    watch = Watch()
    # What is imported on the way is imported now.
    for life in LIVES:
        with sandbox() as box:
            box.write(box.contents())
            for act in life:
                act(box)
    yield watch
    watch.on = False


# --- how it is altered ------------------------------------------------------------------------

HOSTILE = [
    "../../../others/x",
    "shared/../../../others/x",
    "shared/../../../others",
    "shared/../chk-4/_metadata",
    "OTHERS/x",
    "OTHERS/shared/1-4-0-a",
    "OTHERS/.x.inprogress",
    "file://OTHERS/x",
    "file://OTHERS/../others/x",
    "http://127.0.0.1:9/savepoint-job-1-0123456789ab/shared/1-4-0-a",
    "shared/1-4-0-%2e%2e",
    "SINK/../others/x",
    "..",
    ".",
    "/",
    "",
    "\0",
    "~",
]
LEAVES = (
    st.sampled_from(HOSTILE)
    | st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([1 << 62, 1 << 70, -1, 0])
    | st.floats()
    | st.text(max_size=5)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(HOSTILE) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)
CHANGES = st.lists(st.tuples(st.integers(0, 10_000), VALUES), min_size=1, max_size=3)
"""Which place of all there are is altered, and what stands there then."""

Place = tuple[str | int, ...]


def places(content: Any, above: Place = ()) -> list[Place]:
    """All places of a manifest: those of values and those of what holds values."""
    if isinstance(content, dict):
        below = [place for key in content for place in places(content[key], (*above, key))]
    elif isinstance(content, list):
        below = [p for at, item in enumerate(content) for p in places(item, (*above, at))]
    else:
        below = []
    return [above, *below]


def altered(content: Any, place: Place, value: Any) -> Any:
    """The same with `value` in one place."""
    if not place:
        return value
    made = copy.copy(content)
    made[place[0]] = altered(content[place[0]], place[1:], value)
    return made


def placed(box: Sandbox, value: Any) -> Any:
    """What is altered to, with the paths of this sandbox."""
    if isinstance(value, str):
        return value.replace("OTHERS", str(box.others)).replace("SINK", str(box.sink))
    if isinstance(value, list):
        return [placed(box, item) for item in value]
    if isinstance(value, dict):
        return {placed(box, key): placed(box, item) for key, item in value.items()}
    return value


# --- and what comes of it ---------------------------------------------------------------------


def tried(life: tuple[Act, ...], changes: list[tuple[int, Any]], watch: Watch) -> None:
    with sandbox() as box:
        content: Any = box.contents()
        for number, value in changes:
            there = places(content)
            content = altered(content, there[number % len(there)], placed(box, value))
        box.write(content)
        before = box.files(box.others)
        for act in life:
            with watch.watching(), contextlib.suppress(PenstockError):
                act(box)
            assert watch.outside(box) == []
            assert watch.ran == []
            assert box.files(box.others) == before


@pytest.mark.parametrize("life", LIVES)
@given(changes=CHANGES)
def test_an_altered_manifest_is_no_order(
    life: tuple[Act, ...], changes: list[tuple[int, Any]], watch: Watch
) -> None:
    tried(life, changes, watch)


@pytest.mark.parametrize("life", LIVES)
def test_every_place_can_be_hostile(life: tuple[Act, ...], watch: Watch) -> None:
    with sandbox() as box:
        count = len(places(box.contents()))
    for number in range(count):
        tried(life, [(number, HOSTILE[number % len(HOSTILE)])], watch)


def test_whoever_watches_would_notice(watch: Watch) -> None:
    with sandbox() as box:
        with watch.watching():
            (box.others / "x").read_bytes()
            pickle.loads(pickle.dumps(Bomb()))
        assert watch.outside(box) == [os.path.realpath(box.others / "x")]
        assert [what.split(" ")[0] for what in watch.ran] == ["pickle.find_class", "os.system"]
