"""What timers cost, in units of a heap of plain tuples.

A million timers are registered on a hundred thousand keys and fired in order; next to it as many
`heapq` pushes and pops of tuples of timestamp and key, which is the least that an order can cost.
"""

import argparse
import heapq
import random
import time

from bench.common import Run, interleaved, result_row
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.timers import TimerQueue

TIMERS = 1_000_000
KEYS = 100_000


def timers_of(count: int) -> list[tuple[str, int]]:
    """Keys and timestamps, in no order; some twice."""
    seeded = random.Random(1)
    keys = [f"key-{number}" for number in range(max(1, count * KEYS // TIMERS))]
    return [(seeded.choice(keys), seeded.randrange(86_400_000)) for _ in range(count)]


def plain(timers: list[tuple[str, int]]) -> Run:
    """Pushes and pops of a heap."""
    began = time.thread_time()
    heap: list[tuple[int, str]] = []
    for key, timestamp in timers:
        heapq.heappush(heap, (timestamp, key))
    while heap:
        heapq.heappop(heap)
    spent = time.thread_time() - began
    return Run(len(timers), spent, spent)


def queue(timers: list[tuple[str, int]]) -> Run:
    """The timers of an operator, which are also its state."""
    table = HashMapBackend(KeyContext(), 128).table("timers", "timers")
    began = time.thread_time()
    pending = TimerQueue(table)
    for key, timestamp in timers:
        pending.register(key, timestamp)
    while pending.pop_due(1 << 62) is not None:
        pass
    spent = time.thread_time() - began
    return Run(len(timers), spent, spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timers", type=int, default=TIMERS)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    timers = timers_of(options.timers)
    rounds = interleaved(options.runs, heap=lambda: plain(timers), timers=lambda: queue(timers))
    figure = rounds.ratio("heap", "timers")
    details = f"{options.timers:,} timers, {rounds.rate('timers'):,.0f} per second"
    print(rounds.table())
    print(result_row("timers", f"{figure:.2f} x a heap of tuples", details))


if __name__ == "__main__":
    main()
