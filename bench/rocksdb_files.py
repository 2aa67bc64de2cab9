"""What the files of RocksDB in checkpoints are good for: writing a base, and beginning with it.

One subtask's keyed state in RocksDB, a text of 100 characters for each of many keys, is stored as a
checkpoint that deltas can build upon, with its files and with its entries; and another subtask
begins with each. Both in turn, a few times.

    python -m bench.rocksdb_files --keys 2000000
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.common import result_row
from penstock.checkpoint.parts import keyed_files
from penstock.checkpoint.store import CheckpointStore
from penstock.common.clock import SystemClock
from penstock.common.settings import StateSettings
from penstock.common.typeinfo import Types
from penstock.runtime.operator_cut import OperatorCut
from penstock.state.descriptors import ValueStateDescriptor
from penstock.state.keyed_parts import keyed_parts
from penstock.state.kinds import KeyContext
from penstock.state.rocksdb import RocksDBBackend
from penstock.state.segments import Origin

GROUPS = range(128)
VALUE = ValueStateDescriptor("value", Types.STRING())


def empty(folder: str) -> tuple[KeyContext, RocksDBBackend]:
    context = KeyContext()
    settings = StateSettings("rocksdb", folder)
    return context, RocksDBBackend(context, len(GROUPS), SystemClock(), settings)


def stored(backend: RocksDBBackend, store: CheckpointStore, number: int, files: bool) -> Any:
    """A full checkpoint; its handles, its size, the time at the cut, and all of the time."""
    began = time.monotonic()
    captured = backend.cut(number, full=True, files=files)
    cut_at = time.monotonic()
    cut = OperatorCut(
        "uid", number, blocks=captured, groups=GROUPS, files=captured.files, origin=Origin()
    )
    snapshot, size = cut.store(store, f"1-{number}-0-op")
    backend.confirm(number)
    return snapshot.segments, size, cut_at - began, time.monotonic() - began


def restored(handles: Any, store: CheckpointStore, folder: str) -> float:
    """How long it takes until a subtask has its state."""
    context, backend = empty(folder)
    began = time.monotonic()
    for part in keyed_parts(keyed_files(handles, store, GROUPS)):
        backend.restore(part.own_blocks(GROUPS))
        if part.database is not None:
            backend.restore_database(part.database, GROUPS)
    context.key = "key-000000007"
    assert backend.get_state(VALUE).value() == f"{7:0100d}"
    took = time.monotonic() - began
    backend.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        local = str(Path(folder, "local"))
        store = CheckpointStore(str(Path(folder, "checkpoints")), "job")
        context, backend = empty(local)
        state = backend.get_state(VALUE)
        for number in range(options.keys):
            context.key = f"key-{number:09d}"
            state.update(f"{number:0100d}")
        writing, beginning, sizes, pauses = [], [], (0, 0), []
        for number in range(1, options.rounds + 1):
            by_files = stored(backend, store, 2 * number, files=True)
            by_entries = stored(backend, store, 2 * number + 1, files=False)
            begun = [restored(handles, store, local) for handles, *_ in (by_files, by_entries)]
            sizes = (by_files[1], by_entries[1])
            pauses.append(by_files[2])
            writing.append(by_files[3] / by_entries[3])
            beginning.append(begun[0] / begun[1])
            print(
                f"round {number}: files {by_files[3]:.2f} s ({by_files[2]:.2f} s at the cut) and "
                f"{begun[0]:.2f} s, entries {by_entries[3]:.2f} s and {begun[1]:.2f} s"
            )
        backend.close()
    figure = (
        f"stored in {statistics.median(writing):.3f} x and begun with in "
        f"{statistics.median(beginning):.3f} x the time of entries"
    )
    details = (
        f"{options.keys:,} keys; {sizes[0]:,} bytes against {sizes[1]:,}; "
        f"{statistics.median(pauses) * 1e3:.0f} ms at the cut"
    )
    print(result_row("rocksdb_files", figure, details))


if __name__ == "__main__":
    main()
