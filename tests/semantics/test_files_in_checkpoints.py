"""Checkpoints with RocksDB's files, through the engine: what is stored once is not stored again."""

from __future__ import annotations

import pytest

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.store import SegmentStore
from penstock.runtime.operator_cut import OperatorCut
from penstock.state.database_files import LASTING, LinkedFiles
from penstock.state.rocksdb import RocksDBBackend
from penstock.testing.scenarios import Scenario

SEEDS = 120


def test_some_seeds_build_on_files_and_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    store_files, restore = OperatorCut._with_files, RocksDBBackend.restore_database
    shared: list[str] = []
    adopted: list[bool] = []

    def stored(
        cut: OperatorCut,
        store: SegmentStore,
        described: SegmentHandle,
        name: str,
        files: LinkedFiles,
    ) -> tuple[SegmentHandle, ...]:
        handles = store_files(cut, store, described, name, files)
        lasting = [handle for handle in handles if handle.file.endswith(LASTING)]
        shared.extend(h.path for h in lasting if h.path != f"shared/{name}-{h.file}")
        return handles

    def restored(backend: RocksDBBackend, *saved: object) -> bool:
        adopted.append(restore(backend, *saved))  # type: ignore[arg-type]
        return adopted[-1]

    monkeypatch.setattr(OperatorCut, "_with_files", stored)
    monkeypatch.setattr(RocksDBBackend, "restore_database", restored)
    for seed in range(SEEDS):
        Scenario(seed).run().verify()
        if shared and True in adopted:
            return
    pytest.fail(f"{SEEDS} seeds shared {len(shared)} files and adopted {sum(adopted)} databases")
