"""What a compaction has in memory: little of what it reads, and little of what it writes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from penstock.checkpoint.store import CheckpointStore
from penstock.common.spool import Spool
from penstock.runtime import compaction
from penstock.runtime.compaction import Compaction
from penstock.runtime.segment_chain import ChainSettings, SegmentChain
from penstock.runtime.segment_writing import write_segment
from penstock.state import compaction as merging
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.segments import Origin, decode_segment

GROUPS = range(128)
TABLE = {f"key-{number}": f"{number:09}" * 100 for number in range(24_000)}


class Pieces:
    """Work off the loop, done when it is asked for."""

    def __init__(self) -> None:
        self.queue: list[Any] = []

    def submit(self, work: Any, done: Any) -> None:
        self.queue.append((work, done))

    def run(self) -> None:
        while self.queue:
            work, done = self.queue.pop(0)
            done(work(), None)


def test_it_is_read_and_merged_by_key_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compaction, "LOT", 1 << 20)
    monkeypatch.setattr(merging, "Spool", lambda: Spool(1 << 20))
    store = CheckpointStore(str(tmp_path), "job").claim()
    chain = SegmentChain(ChainSettings())
    deltas = [dict(list(TABLE.items())[number::7]) for number in range(7)]
    handles = []
    for number, part in enumerate([TABLE, *deltas]):
        backend = HashMapBackend(KeyContext(), 128)
        backend.table("texts", "value").entries.update(part)
        blocks = list(backend.cut(1, full=True))
        handles.append(write_segment(store, f"1-{number}-0-x", blocks, GROUPS, Origin()))
    del backend, blocks
    chain.restored(tuple(handles))
    io = Pieces()
    tracemalloc.start()
    try:
        Compaction(chain, store, io, GROUPS, Origin()).start("1-9-0-merged")
        io.run()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    [merged] = chain.base()
    read = sum(handle.size for handle in handles)
    assert read > 1.9 * merged.size
    # Of each segment a few pieces of a megabyte are kept, the smaller ones nearly whole.
    assert peak < 1.2 * merged.size, "not what was read, and not what is written"
    restored = HashMapBackend(KeyContext(), 128)
    restored.restore(decode_segment(store.read_segment(merged.path), GROUPS))
    assert restored.table("texts", "value").entries == TABLE
