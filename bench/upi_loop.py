"""What the UPI job costs without any framework: one process, one loop, a dict of windows.

It reads the same files, calls the same functions, keeps one accumulator per merchant and minute,
and gives a window out when the watermark, five seconds behind the newest timestamp, has passed its
end. As a program it is started as `bench.tight_loop` is.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from bench.data import parts
from bench.stamps import notes
from bench.upi_job import DELAY_MS, MINUTE_MS, SumWriter, add, event_time, first, to_pair


def windows_of(lines: Iterable[str], writer: Any) -> None:
    """The tight loop."""
    write = writer.write
    open_windows: dict[int, dict[str, Any]] = {}
    newest, next_end = 0, 0
    for line in lines:
        at = event_time(line, None)
        pair = to_pair(line)
        key = first(pair)
        start = at - at % MINUTE_MS
        window = open_windows.get(start)
        if window is None:
            window = open_windows[start] = {}
            next_end = min(open_windows) + MINUTE_MS
        window[key] = add(window[key], pair) if key in window else pair
        if at > newest:
            newest = at
            if newest - DELAY_MS - 1 >= next_end - 1:
                for ended in sorted(open_windows):
                    if ended + MINUTE_MS <= newest - DELAY_MS:
                        for result in open_windows.pop(ended).values():
                            write(result)
                next_end = min(open_windows) + MINUTE_MS
    for ended in sorted(open_windows):
        for result in open_windows[ended].values():
            write(result)
    writer.close()


def main() -> None:
    files = parts(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        writer = SumWriter(folder)
        print("ready", flush=True)
        sys.stdin.readline()
        started = time.time_ns()
        windows_of(chain.from_iterable(file.open(encoding="utf-8") for file in files), writer)
        [[records, ended]] = notes(folder, "written")
    print(json.dumps({"records": records, "started": started, "ended": ended}))


if __name__ == "__main__":
    main()
