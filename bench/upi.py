"""Throughput of the UPI job: a million payments per merchant and minute, against the tight loop.

What is measured is as in `bench.keyed_count`: from the first `open`, which is just before the first
record is read, to the last result in the sink.
"""

import tempfile
import time
from pathlib import Path

from bench.common import Run, interleaved, result_row, share_with_workers
from bench.data import RECORDS, upi_payments
from bench.jobs import environment
from bench.stamps import notes
from bench.tight_loop import side_by_side
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
        opened = min(time for [time] in notes(folder, "opened"))
        written = notes(folder, "written")
    ended = max(last for _, last in written)
    records = sum(count for count, _ in written)
    return Run(records=records, seconds=(ended - opened) / 1e9, wall=wall)


def main() -> None:
    share_with_workers()
    data = upi_payments(RECORDS)
    penstock(data)  # makes the session; its JVM compiles what it runs for some seconds
    rounds = interleaved(
        penstock=lambda: penstock(data),
        tight_loop=lambda: side_by_side(1, data, "bench.upi_loop"),
        two_tight_loops=lambda: side_by_side(2, data, "bench.upi_loop"),
    )
    wrong = [run.records for run in rounds.runs["penstock"] if run.records != RECORDS]
    if wrong:
        raise SystemExit(f"the windows should hold {RECORDS} records, but hold {wrong}")
    ratio = rounds.ratio("penstock", "tight_loop")
    limit = rounds.ratio("two_tight_loops", "tight_loop")
    low, high = rounds.spread("penstock", "tight_loop")
    details = (
        f"{rounds.rate('penstock'):,.0f}/s of {rounds.rate('tight_loop'):,.0f}/s, "
        f"rounds {low:.2f}-{high:.2f}; two loops side by side {limit:.2f}; "
        f"wall of execute() {rounds.wall('penstock'):.1f} s"
    )
    print(rounds.table())
    print(result_row("upi", f"{ratio:.2f} x the tight loop", details))


if __name__ == "__main__":
    main()
