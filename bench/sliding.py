"""What sliding windows cost, in units of tumbling ones on the same data.

A count per merchant over a day of event time: in the last hour, every minute, next to the count of
each minute. A window of sixty minutes is made of sixty slices that it shares with its neighbours,
so that it must not cost sixty times as much.
"""

import argparse
import random
import time
from typing import Any

from bench.common import Run, interleaved, result_row
from penstock.common import Time
from penstock.datastream import AggregateFunction
from penstock.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.testing.window_rig import WindowRig

RECORDS = 1_000_000
MERCHANTS = 1_000
DAY_MS = 86_400_000
DISORDER_MS = 2_000
WATERMARK_EVERY_MS = 1_000


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def payments(count: int) -> list[tuple[str, int]]:
    """Merchants and timestamps, in the order of arrival: up to two seconds late."""
    seeded = random.Random(1)
    merchants = [f"merchant-{number}" for number in range(max(1, count * MERCHANTS // RECORDS))]
    arrivals = [n * DAY_MS // count for n in range(count)]
    return [(seeded.choice(merchants), at - seeded.randrange(DISORDER_MS)) for at in arrivals]


def run(assigner: Any, records: list[tuple[str, int]]) -> Run:
    """Feed the records to a window operator, with a watermark for every second that passes."""
    rig = WindowRig(lambda s: s.key_by(lambda r: r[0]).window(assigner).aggregate(Count()))
    began = time.thread_time()
    watermark = next_watermark = -DISORDER_MS
    process = rig.process
    for record in records:
        process(record, record[1])
        watermark = max(watermark, record[1] - DISORDER_MS)
        if watermark >= next_watermark:
            rig.advance_watermark(watermark)
            next_watermark = watermark + WATERMARK_EVERY_MS
    rig.advance_watermark(1 << 62)
    spent = time.thread_time() - began
    assert not rig.dropped()
    return Run(len(records), spent, spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    records = payments(options.records)
    minute, hour = Time.minutes(1), Time.hours(1)
    rounds = interleaved(
        options.runs,
        tumbling=lambda: run(TumblingEventTimeWindows.of(minute), records),
        sliding=lambda: run(SlidingEventTimeWindows.of(hour, minute), records),
    )
    figure = rounds.ratio("tumbling", "sliding")
    print(rounds.table())
    details = f"1 h by 1 min, {options.records:,} records in a day"
    print(result_row("sliding", f"{figure:.2f} x tumbling windows of a minute", details))


if __name__ == "__main__":
    main()
