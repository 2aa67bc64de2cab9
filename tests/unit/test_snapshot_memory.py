"""What a snapshot has in memory beside the state: a constant, however large the state is."""

from __future__ import annotations

import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.imports import import_checkpoint
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.checkpoint.parts import keyed_files
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.checkpoint.segment_names import SegmentName
from penstock.checkpoint.store import CheckpointStore
from penstock.common.settings import StateSettings
from penstock.common.typeinfo import Types
from penstock.runtime.operator_cut import OperatorCut, StoredCut
from penstock.state import gathering
from penstock.state.descriptors import ValueStateDescriptor
from penstock.state.hashmap import HashMapBackend
from penstock.state.keyed_parts import keyed_parts
from penstock.state.kinds import KeyContext
from penstock.state.rocksdb import RocksDBBackend
from penstock.state.segments import Origin

MEGABYTE = 1 << 20
GROUPS = range(128)
NAME = SegmentName.of(1, 1, 0, "counted")
KEYS = range(16_000)
LITTLE = 40 * MEGABYTE
"""What a snapshot may hold of them at a time, with room to spare: 16 MB that wait, a block of a
key group or a few, and references to what is written."""

TEXT = (Types.STRING(), lambda number: f"{number:09}" * 444)
CHANGING = (Types.LIST(Types.STRING()), lambda number: [f"{number:09}" * 444])
"""Values that are written while the loop stands still."""


def fill(context: KeyContext, backend: Any, kind: Any, value: Callable[[int], Any]) -> None:
    state = backend.get_state(ValueStateDescriptor("of", kind))
    for number in KEYS:
        context.key = f"key-{number}"
        state.update(value(number))


def peak_of(work: Callable[[], Any]) -> tuple[Any, int]:
    """What it gives, and the most bytes that it had at a time."""
    tracemalloc.start()
    try:
        result = work()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def stored(backend: Any, checkpoints: CheckpointStore, copies: CheckpointStore | None) -> StoredCut:
    """A full snapshot, stored as checkpoints and savepoints are."""
    blocks = backend.cut(1, full=True)
    cut = OperatorCut("counted", 1, blocks=blocks, groups=GROUPS, origin=Origin())
    return cut.store(checkpoints, NAME, copies)


def entries(handles: tuple[SegmentHandle, ...], store: CheckpointStore) -> dict[Any, Any]:
    backend = HashMapBackend(KeyContext(), 128)
    for part in keyed_parts(keyed_files(handles, store, GROUPS)):
        backend.restore(part.blocks(GROUPS))
    return backend.table("of", "value").entries


@pytest.fixture
def context() -> KeyContext:
    return KeyContext()


@pytest.fixture(params=["hashmap", "hashmap, by pyarrow", "rocksdb"])
def backend(
    request: pytest.FixtureRequest,
    context: KeyContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Any]:
    monkeypatch.setattr(gathering, "_MANY", 0 if "pyarrow" in request.param else sys.maxsize)
    if "hashmap" in request.param:
        yield HashMapBackend(context, 128)
        return
    settings = StateSettings(local_dir=str(tmp_path / "rocks"))
    made = RocksDBBackend(context, 128, settings=settings)
    yield made
    made.close()


@pytest.mark.parametrize("copied", [False, True], ids=["checkpoint", "savepoint"])
@pytest.mark.parametrize("values", [TEXT, CHANGING], ids=["text", "changing"])
def test_a_full_snapshot_is_written_as_it_is_made(
    backend: Any, context: KeyContext, values: Any, copied: bool, tmp_path: Path
) -> None:
    checkpoints = CheckpointStore(str(tmp_path), "job")
    copies = CheckpointStore(str(tmp_path), "savepoint") if copied else None
    fill(context, backend, *values)
    cut, peak = peak_of(lambda: stored(backend, checkpoints, copies))
    for snapshot, store in ((cut.snapshot, checkpoints), (cut.copy, copies)):
        if store is not None:
            [handle] = snapshot.segments
            assert handle.size > 1.4 * LITTLE
            found = entries(snapshot.segments, store)
            assert found == {f"key-{number}": values[1](number) for number in KEYS}
    assert peak < LITTLE, f"{peak >> 20} MB"


def test_files_of_a_database_are_written_part_after_part(
    context: KeyContext, tmp_path: Path
) -> None:
    settings = StateSettings(local_dir=str(tmp_path / "rocks"), write_buffer_size=256 * MEGABYTE)
    backend = RocksDBBackend(context, 128, settings=settings)
    rng = random.Random(1)
    kind = Types.PRIMITIVE_ARRAY(Types.BYTE())
    fill(context, backend, kind, lambda number: rng.randbytes(4_000))
    captured = backend.cut(1, full=True, files=True)
    assert captured.files is not None
    cut = OperatorCut(
        "counted", 1, blocks=captured, groups=GROUPS, origin=Origin(), files=captured.files
    )
    store = CheckpointStore(str(tmp_path), "job")
    done, peak = peak_of(lambda: cut.store(store, NAME))
    assert max(handle.size for handle in done.snapshot.segments) > LITTLE
    backend.close()
    assert len(entries(done.snapshot.segments, store)) == len(KEYS)
    assert peak < LITTLE, f"{peak >> 20} MB"


def test_a_savepoint_is_copied_part_after_part(tmp_path: Path) -> None:
    """By the driver that begins with it, and some segments beside each other."""
    place = SavepointLocation(str(tmp_path), "savepoint-1")
    data = random.Random(1).randbytes(80 * MEGABYTE)
    handle = SegmentHandle.of(place.store().write_segment("1-1-0-a", data), data, GROUPS)
    operators = {"counted": OperatorSnapshot((handle,))}
    vertex = VertexSnapshot("Counted", 1, 128, (SubtaskSnapshot(False, 0, operators),))
    assert place.complete(CheckpointMetadata("other", 1, 1, 0, {"counted": vertex}, {}, {}))
    store = CheckpointStore(str(tmp_path), "job").claim()
    _, peak = peak_of(lambda: import_checkpoint(store, place.path))
    metadata, _ = store.newest()
    assert metadata is not None
    [copied] = metadata.segments()
    assert store.read_whole(copied) == data
    assert peak < 1.3 * LITTLE, f"{peak >> 20} MB"
