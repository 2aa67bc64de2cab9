"""Unaligned checkpoints under load: how long they take as a share of aligned ones.

One subtask of a map is a hundred times slower than its sibling, and the queues before it are full.
The same job runs with aligned and with unaligned checkpoints in turn; what counts is the time of
checkpoints that were triggered when the queues had filled.
"""

import argparse
import statistics
import tempfile
import time
from typing import Any

from bench.common import result_row, share_with_workers
from bench.jobs import CountingSink, environment
from penstock.checkpoint.history import CheckpointRecord, CheckpointStatus
from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream import MapFunction, RuntimeContext
from penstock.datastream.connectors.data_generator import DataGeneratorSource

FAST, SLOW = 0.0001, 0.01
WARMUP = 5.0


class OneIsSlow(MapFunction):
    """Passes records on; the last subtask takes a hundred times as long as the others."""

    def open(self, runtime_context: RuntimeContext) -> None:
        last = runtime_context.get_number_of_parallel_subtasks() - 1
        is_last = runtime_context.get_index_of_this_subtask() == last
        self._seconds = SLOW if is_last else FAST

    def map(self, value: Any) -> Any:
        time.sleep(self._seconds)
        return value


def identity(value: Any) -> Any:
    return value


def checkpoints(unaligned: bool, count: int) -> list[CheckpointRecord[Any]]:
    """The first checkpoints that complete under load."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env = environment(folder)
        key = "execution.checkpointing.unaligned.enabled"
        env.configure(Configuration.from_dict({key: str(unaligned).lower()}))
        source = DataGeneratorSource(identity, None, None)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "endless")
        stream.rebalance().map(OneIsSlow()).sink_to(CountingSink(folder))
        client = env.execute_async("one is slow")
        try:
            while not any(m.records_in for m in client.progress().metrics.values()):
                time.sleep(0.05)
            time.sleep(WARMUP)
            loaded = time.time() * 1000
            while True:
                under_load = [
                    record
                    for record in client.get_checkpoint_history()
                    if record.status is CheckpointStatus.COMPLETED and record.triggered_ms > loaded
                ]
                if len(under_load) >= count:
                    return under_load[:count]
                time.sleep(0.1)
        finally:
            client.cancel().result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of either kind")
    parser.add_argument("--checkpoints", type=int, default=2, help="that each run waits for")
    asked = parser.parse_args()
    share_with_workers()
    took: dict[bool, list[float]] = {False: [], True: []}
    under_way: list[int] = []
    for number in range(asked.rounds):
        for unaligned in (False, True) if number % 2 == 0 else (True, False):
            records = checkpoints(unaligned, asked.checkpoints)
            took[unaligned] += [float(record.duration_ms or 0) for record in records]
            under_way += [record.in_flight_size for record in records if unaligned]
    aligned, overtaking = statistics.median(took[False]), statistics.median(took[True])
    ratio = overtaking / aligned
    details = (
        f"unaligned {overtaking:,.0f} ms, aligned {aligned:,.0f} ms, "
        f"{statistics.median(under_way) / 1024:,.0f} KB under way"
    )
    print(f"unaligned/aligned: {ratio:.3f} ({details})")
    print(result_row("unaligned", f"{ratio:.3f} x of an aligned checkpoint's time", details))


if __name__ == "__main__":
    main()
