"""What one more map in a chain costs, in units of a plain Python call per record.

The same job with 1, 5 and 20 maps that do nothing, at parallelism 1, next to a plain loop that
calls the same function 1 and 20 times per record. The sink's writer notes the time that its own
thread has spent, so that other processes of the machine count as little as possible.
"""

import tempfile
import time
from typing import Any

from bench.common import Run, interleaved, result_row, share_with_workers
from bench.stamps import note, notes
from penstock.common import WatermarkStrategy
from penstock.connectors import Sink, SinkWriter
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.number_seq import NumberSequenceSource

RECORDS = 500_000
LENGTHS = (1, 5, 20)


def nothing(value: Any) -> Any:
    return value


class TimingWriter(SinkWriter):
    """Throws records away; notes how long its thread has worked since it was opened."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self) -> None:
        self._began = time.thread_time_ns()

    def write(self, value: Any) -> None:
        pass

    def close(self) -> None:
        note(self._folder, "spent", [time.thread_time_ns() - self._began])


class TimingSink(Sink):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def create_writer(self, context: Any) -> SinkWriter:
        return TimingWriter(self._folder)


def chain(maps: int) -> Run:
    """Run the job with that many maps."""
    with tempfile.TemporaryDirectory() as folder:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        source = NumberSequenceSource(1, RECORDS)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        for _ in range(maps):
            stream = stream.map(nothing)
        stream.sink_to(TimingSink(folder))
        called = time.monotonic()
        env.execute("chain")
        wall = time.monotonic() - called
        [[spent]] = notes(folder, "spent")
    return Run(RECORDS, spent / 1e9, wall)


def plain(calls: int) -> Run:
    """The same calls in a plain loop."""
    source = "\n".join(
        ["def loop(f, values):", "    for v in values:", *["        v = f(v)"] * calls]
    )
    scope: dict[str, Any] = {}
    exec(source, scope)
    began = time.thread_time_ns()
    scope["loop"](nothing, range(RECORDS))
    spent = (time.thread_time_ns() - began) / 1e9
    return Run(RECORDS, spent, spent)


def main() -> None:
    share_with_workers()
    chain(1)  # makes the session
    contenders = {f"maps_{length}": lambda length=length: chain(length) for length in LENGTHS}
    contenders |= {f"calls_{calls}": lambda calls=calls: plain(calls) for calls in (1, 20)}
    rounds = interleaved(**contenders)

    def each(name: str, first: int, last: int) -> float:
        """Seconds per further call, for all records."""
        more = RECORDS / rounds.rate(f"{name}_{last}") - RECORDS / rounds.rate(f"{name}_{first}")
        return more / (last - first)

    call = each("calls", 1, 20)
    figures = [each("maps", first, last) / call for first, last in ((1, 5), (5, 20), (1, 20))]
    details = (
        f"from 1 to 5 maps {figures[0]:.2f}, from 5 to 20 {figures[1]:.2f}; "
        f"a plain call {call / RECORDS * 1e9:.0f} ns"
    )
    print(rounds.table())
    print(result_row("chain", f"{figures[2]:.2f} x a plain call per further map", details))


if __name__ == "__main__":
    main()
