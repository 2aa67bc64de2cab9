"""A million sessions open at once: what each takes of memory, and what firing them costs.

Each of a million keys has one session that counts its records. The memory is what the process has
grown by while they were added, without the keys and records, which are made before. The time of
firing them all, at one watermark, is given as a multiple of the time of adding them.
"""

import argparse
import gc
import random
import time

import psutil

from bench.common import result_row
from penstock.common import Time
from penstock.datastream.window import EventTimeSessionWindows
from penstock.testing.window_rig import WindowRig

SESSIONS = 1_000_000
HOUR_MS = 3_600_000


def count(one: tuple[str, int], other: tuple[str, int]) -> tuple[str, int]:
    return (one[0], one[1] + other[1])


def rig() -> WindowRig:
    gap = EventTimeSessionWindows.with_gap(Time.hours(1))
    return WindowRig(lambda stream: stream.key_by(lambda r: r[0]).window(gap).reduce(count))


def measure(sessions: int) -> tuple[float, float, float]:
    """Bytes per session, seconds of adding, seconds of firing."""
    seeded = random.Random(1)
    records = [(f"key-{number}", 1) for number in range(sessions)]
    timestamps = [seeded.randrange(HOUR_MS) for _ in range(sessions)]
    windows = rig()
    gc.collect()
    process = psutil.Process()
    before = process.memory_info().rss
    began = time.thread_time()
    for record, timestamp in zip(records, timestamps, strict=True):
        windows.process(record, timestamp)
    added = time.thread_time() - began
    grown = process.memory_info().rss - before
    began = time.thread_time()
    windows.advance_watermark(3 * HOUR_MS)
    fired = time.thread_time() - began
    assert len(windows.output) == sessions
    return grown / sessions, added, fired


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    options = parser.parse_args()
    size, added, fired = measure(options.sessions)
    figure = f"{size:.0f} bytes each; firing {fired / added:.2f} x adding"
    details = f"{options.sessions:,} sessions, adding {added / options.sessions * 1e6:.2f} us each"
    print(result_row("sessions", figure, details))


if __name__ == "__main__":
    main()
