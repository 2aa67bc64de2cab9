"""Throughput: a keyed count over a million records, against the tight loop.

The rate of the Penstock job is that of its processing: from the first `open` of the keyed
operator, which is just before the first record is read, to the last record in the sink. The wall
time is that of a whole `execute()` in a session that has run the job once before.

    python -m bench.keyed_count --backend rocksdb [--memory SIZE]

measures that state backend against `hashmap` instead; `--memory` is what it may take in a slot.
"""

import argparse
import tempfile
import time
from pathlib import Path

from bench.common import Run, interleaved, result_row, share_with_workers
from bench.data import RECORDS, payments
from bench.jobs import Count, CountingSink, environment, keyed_count
from bench.throughput import check, compare, measured
from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.file_system import FileSource, StreamFormat


def penstock(data: Path, **settings: str) -> Run:
    """Run the job once over the files in `data`."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, **settings)
        lines = StreamFormat.text_line_format()
        source = FileSource.for_record_stream_format(lines, str(data)).build()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "payments")
        keyed_count(stream, Count(folder), CountingSink(folder))
        called = time.time_ns()
        env.execute("keyed count")
        wall = (time.time_ns() - called) / 1e9
        return measured(folder, wall)


def compare_backends(backend: str, memory: str) -> None:
    """The rate on `backend` against that on hashmap."""
    settings = {"state_backend_type": backend, "taskmanager_memory_managed_size": memory}
    data = payments(RECORDS)
    penstock(data)
    rounds = interleaved(
        hashmap=lambda: penstock(data),
        other=lambda: penstock(data, **settings),
    )
    check(rounds.runs["hashmap"] + rounds.runs["other"])
    low, high = rounds.spread("other", "hashmap")
    details = (
        f"{rounds.rate('other'):,.0f}/s of {rounds.rate('hashmap'):,.0f}/s, "
        f"rounds {low:.2f}-{high:.2f}; {memory} of memory"
    )
    ratio = f"{rounds.ratio('other', 'hashmap'):.2f} x hashmap"
    print(rounds.table())
    print(result_row(f"keyed_count on {backend}", ratio, details))


def main() -> None:
    parser = argparse.ArgumentParser(description="Throughput of a keyed count.")
    parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap")
    parser.add_argument("--memory", default="256 mb")
    given = parser.parse_args()
    share_with_workers()
    if given.backend == "hashmap":
        compare("keyed_count", penstock, payments(RECORDS), "bench.tight_loop")
    else:
        compare_backends(given.backend, given.memory)


if __name__ == "__main__":
    main()
