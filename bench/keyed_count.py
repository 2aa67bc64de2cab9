"""Throughput: a keyed count over a million records, against the tight loop.

The rate of the Penstock job is that of its processing: from the first `open` of the keyed
operator, which is just before the first record is read, to the last record in the sink. The wall
time is that of a whole `execute()` in a session that has run the job once before.

    python -m bench.keyed_count --backend rocksdb [--keys N --memory SIZE]

measures that state backend against `hashmap` instead; `--memory` is what it may take in a slot.

    python -m bench.keyed_count --without-checkpoints

measures the job with a checkpoint every second against the same job without any.
"""

import argparse
import tempfile
import time
from pathlib import Path

from bench.common import Run, interleaved, result_row, share_with_workers
from bench.data import KEYS, RECORDS, payments
from bench.jobs import Count, CountingSink, environment, keyed_count
from bench.throughput import check, compare, measured
from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.file_system import FileSource, StreamFormat

NO_CHECKPOINTS = {"execution_checkpointing_interval": ""}


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


def compare_settings(
    name: str, data: Path, settings: dict[str, str], other: tuple[str, dict[str, str]], options: str
) -> None:
    """The rate of the job with `settings` against its rate with those of `other`."""
    other_name, others = other
    penstock(data)
    rounds = interleaved(
        this=lambda: penstock(data, **settings), other=lambda: penstock(data, **others)
    )
    check(rounds.runs["this"] + rounds.runs["other"])
    low, high = rounds.spread("this", "other")
    rates = f"{rounds.rate('this'):,.0f}/s of {rounds.rate('other'):,.0f}/s"
    print(rounds.table())
    ratio = f"{rounds.ratio('this', 'other'):.2f} x {other_name}"
    print(result_row(name, ratio, f"{rates}, rounds {low:.2f}-{high:.2f}", options))


def main() -> None:
    parser = argparse.ArgumentParser(description="Throughput of a keyed count.")
    parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap")
    parser.add_argument("--memory", default="256 mb")
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--without-checkpoints", action="store_true")
    given = parser.parse_args()
    share_with_workers()
    data = payments(RECORDS, given.keys)
    if given.without_checkpoints:
        other = ("the rate without checkpoints", NO_CHECKPOINTS)
        name = "keyed_count with a checkpoint every second"
        compare_settings(name, data, {}, other, "--without-checkpoints")
    elif given.backend == "rocksdb":
        settings = {
            "state_backend_type": given.backend,
            "taskmanager_memory_managed_size": given.memory,
        }
        name = f"keyed_count on rocksdb with {given.memory}, {given.keys:,} keys"
        options = f"--backend rocksdb --keys {given.keys} --memory '{given.memory}'"
        compare_settings(name, data, settings, ("hashmap", {}), options)
    else:
        compare("keyed_count", penstock, data, "bench.tight_loop")


if __name__ == "__main__":
    main()
