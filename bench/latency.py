"""Latency: from the birth of a record to the sink, next to Structured Streaming.

The same keyed count at 200 records/s on both, and at 20,000 records/s on Penstock. Checkpoints
every second; the first five seconds are left out (sixty for Structured Streaming, which needs
longer to settle).
"""

import tempfile
from subprocess import PIPE

from bench.common import last_json, result_row, share_with_workers, start_module
from bench.data import birth_line
from bench.jobs import CountWithBirth, LatencySink, environment, keyed_count
from bench.stamps import LatencyFigures, latency_figures
from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.data_generator import DataGeneratorSource

WARMUP, SECONDS = 5.0, 30.0


def penstock(rate: int) -> LatencyFigures:
    """Run the job at `rate` records/s in all and give the latencies after the warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        count = int(rate * (WARMUP + SECONDS + 1))
        source = DataGeneratorSource(birth_line, count, rate)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "payments")
        keyed_count(stream, CountWithBirth(folder), LatencySink(folder))
        env.execute(f"latency at {rate} records/s")
        return latency_figures(folder, WARMUP, SECONDS)


def structured_streaming(rate: int) -> LatencyFigures:
    """The same on Structured Streaming, in a process and a session of its own."""
    args = ("--json", "--rate", str(rate))
    return LatencyFigures(
        **last_json(start_module("bench.structured_streaming", *args, stdout=PIPE))
    )


def main() -> None:
    share_with_workers()
    slow = penstock(200)
    print(f"penstock, 200/s: {slow}")
    spark = structured_streaming(200)
    print(f"transformWithState, 200/s: {spark}")
    fast = penstock(20_000)
    print(f"penstock, 20,000/s: {fast}")
    for figures, rate in ((slow, 200), (spark, 200), (fast, 20_000)):
        if abs(figures.rate / rate - 1) > 0.02:
            raise SystemExit(
                f"no result: a source made {figures.rate:,.0f} records/s, not {rate:,}"
            )
    details = (
        f"p50 {slow.p50:.1f} ms against {spark.p50:.0f} ms, "
        f"p99 {slow.p99:.1f} ms against {spark.p99:.0f} ms; "
        f"p99 at 20,000/s {fast.p99:.1f} ms, {fast.p99 / slow.p99:.1f} x that at 200/s"
    )
    figure = f"p50 {spark.p50 / slow.p50:.0f} x, p99 {spark.p99 / slow.p99:.0f} x lower"
    print(result_row("latency", figure, details))


if __name__ == "__main__":
    main()
