"""How long a savepoint takes, against writing the same bytes as Parquet with pyarrow.

One subtask's keyed state, a count and a name for each of many keys, is written as a savepoint: cut,
encoded by key group, and created as a file, as a slot does it. The same keys and values, as plain
dicts, become a table of pyarrow's and a Parquet file, without compression, because a savepoint has
none, and synchronised, because a savepoint is. Both run in turn, five times.

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
from penstock.runtime.operators import OperatorCut
from penstock.state.descriptors import ValueStateDescriptor
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.segments import Origin

GROUPS = range(128)
NAME = "name of a merchant, or what else a job may keep for every key: {:031d}"


def filled(keys: int) -> HashMapBackend:
    """A backend with two states for each key."""
    context = KeyContext()
    backend = HashMapBackend(context, len(GROUPS))
    count = backend.get_state(ValueStateDescriptor("count", Types.LONG()))
    name = backend.get_state(ValueStateDescriptor("name", Types.STRING()))
    for number in range(keys):
        context.key = f"merchant-{number:09d}"
        count.update(number)
        name.update(NAME.format(number))
    return backend


def rows(keys: int) -> list[dict[str, Any]]:
    return [
        {"key": f"merchant-{number:09d}", "count": number, "name": NAME.format(number)}
        for number in range(keys)
    ]


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


def timed(work: Callable[[], int]) -> tuple[float, int]:
    began = time.monotonic()
    size = work()
    return time.monotonic() - began, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    backend, plain = filled(options.keys), rows(options.keys)
    ratios, sizes = [], (0, 0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, options.rounds + 1):
            ours, size = timed(lambda number=number: savepoint(backend, folder, number))
            theirs, other = timed(lambda number=number: parquet(plain, folder, number))
            backend.confirm(number)
            ratios.append(ours / theirs)
            sizes = (size, other)
            print(f"round {number}: savepoint {ours:.2f} s, Parquet {theirs:.2f} s")
    ratio = statistics.median(ratios)
    print(f"savepoint {ratio:.2f} x Parquet (at most 2 x), {sizes[0]:,} and {sizes[1]:,} bytes")
    details = (
        f"{options.keys:,} keys; {sizes[0]:,} bytes against {sizes[1]:,}; "
        f"rounds {', '.join(f'{r:.2f}' for r in ratios)}"
    )
    print(result_row("savepoint", f"{ratio:.2f} x writing Parquet with pyarrow", details))


if __name__ == "__main__":
    main()
