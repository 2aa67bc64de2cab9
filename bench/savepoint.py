"""How long a savepoint takes, against writing the same bytes as Parquet with pyarrow.

One subtask's keyed state, a text of 100 characters for each of many keys, is written as a
savepoint: cut, encoded by key group, and created as a file, as a slot does it. The same keys and
values, as plain dicts, become a table of pyarrow's and a Parquet file, without compression, because
a savepoint has none, and synchronised, because a savepoint is. Both run in turn, five times; beside
the time that passes, processor time is told, which a busy machine disturbs less.

    python -m bench.savepoint --keys 2000000
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.common import result_row
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.common.typeinfo import Types
from penstock.runtime.operator_cut import OperatorCut
from penstock.state.descriptors import ValueStateDescriptor
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.segments import Origin

GROUPS = range(128)


def filled(keys: int) -> HashMapBackend:
    """A backend with a value for each key."""
    context = KeyContext()
    backend = HashMapBackend(context, len(GROUPS))
    state = backend.get_state(ValueStateDescriptor("value", Types.STRING()))
    for number in range(keys):
        context.key = f"key-{number:09d}"
        state.update(f"{number:0100d}")
    return backend


def rows(keys: int) -> list[dict[str, Any]]:
    return [{"key": f"key-{n:09d}", "value": f"{n:0100d}"} for n in range(keys)]


def savepoint(backend: HashMapBackend, folder: str, number: int) -> int:
    """Write all of the state; its size."""
    location = SavepointLocation(folder, f"savepoint-{number}")
    blocks = backend.cut(number, full=True)
    cut = OperatorCut("uid", number, blocks=blocks, groups=GROUPS, origin=Origin())
    return cut.store(location.store(), "segment")[1]


def parquet(plain: list[dict[str, Any]], folder: str, number: int) -> int:
    path = Path(folder, f"{number}.parquet")
    pq.write_table(pa.Table.from_pylist(plain), path, compression="none")
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    return path.stat().st_size


def timed(work: Callable[[], int]) -> tuple[float, float, int]:
    """The time that passed, the processor time, and what the work gave."""
    began, busy = time.monotonic(), time.process_time()
    size = work()
    return time.monotonic() - began, time.process_time() - busy, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    backend, plain = filled(options.keys), rows(options.keys)
    ratios, busy_ratios, sizes = [], [], (0, 0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, options.rounds + 1):
            ours, busy, size = timed(lambda number=number: savepoint(backend, folder, number))
            theirs, other_busy, other = timed(lambda number=number: parquet(plain, folder, number))
            backend.confirm(number)
            ratios.append(ours / theirs)
            busy_ratios.append(busy / other_busy)
            sizes = (size, other)
            print(f"round {number}: savepoint {ours:.2f} s, Parquet {theirs:.2f} s")
    ratio, busy_ratio = statistics.median(ratios), statistics.median(busy_ratios)
    print(
        f"savepoint {ratio:.2f} x Parquet (at most 2 x), {busy_ratio:.2f} x its processor time, "
        f"{sizes[0]:,} and {sizes[1]:,} bytes"
    )
    details = (
        f"{options.keys:,} keys; {sizes[0]:,} bytes against {sizes[1]:,}; rounds "
        f"{', '.join(f'{r:.2f}' for r in ratios)}; processor time {busy_ratio:.2f} x"
    )
    print(result_row("savepoint", f"{ratio:.2f} x writing Parquet with pyarrow", details))


if __name__ == "__main__":
    main()
