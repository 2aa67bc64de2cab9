"""Throughput of the UPI job: a million payments per merchant and minute, against the tight loop.

What is measured is as in `bench.keyed_count`: from the first `open`, which is just before the first
record is read, to the last result in the sink.
"""

import tempfile
import time
from pathlib import Path

from bench.common import Run, share_with_workers
from bench.data import RECORDS, upi_payments
from bench.jobs import environment
from bench.throughput import compare, measured
from bench.upi_job import STRATEGY, SumSink, per_minute
from penstock.datastream.connectors.file_system import FileSource, StreamFormat


def penstock(data: Path) -> Run:
    """Run the job once over the files in `data`."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        lines = StreamFormat.text_line_format()
        source = FileSource.for_record_stream_format(lines, str(data)).build()
        per_minute(env.from_source(source, STRATEGY, "payments"), SumSink(folder))
        called = time.time_ns()
        env.execute("UPI per minute")
        wall = (time.time_ns() - called) / 1e9
        return measured(folder, wall)


def main() -> None:
    share_with_workers()
    compare("upi", penstock, upi_payments(RECORDS), "bench.upi_loop")


if __name__ == "__main__":
    main()
