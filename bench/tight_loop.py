"""What the keyed count costs without any framework: one process, one loop, a dict.

It reads the same files, calls the same functions, keeps its state in a dict and counts in the
same sink writer. Run as a program it says "ready", waits for a line on its input, so that several
can start together, and prints its measurements as JSON.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

from bench.common import Run, last_json, start_module
from bench.data import parts
from bench.jobs import Count, CountingWriter, merchant_of, parse
from bench.stamps import notes


class DictState:
    """A ValueState for the key at hand."""

    __slots__ = ("key", "values")

    def __init__(self) -> None:
        self.key: Any = None
        self.values: dict[Any, Any] = {}

    def value(self) -> Any:
        return self.values.get(self.key)

    def update(self, value: Any) -> None:
        self.values[self.key] = value


class Context:
    """Stands in for the runtime context at open, and for the context of every element."""

    def __init__(self, state: DictState) -> None:
        self._state = state

    def get_state(self, descriptor: Any) -> DictState:
        return self._state

    def get_current_key(self) -> Any:
        return self._state.key


def count_all(files: list[Path], function: Any, writer: Any) -> None:
    """The tight loop."""
    state = DictState()
    context = Context(state)
    function.open(context)
    process, write = function.process_element, writer.write
    for file in files:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                record = parse(line)
                state.key = merchant_of(record)
                for result in process(record, context):
                    write(result)
    writer.close()


def side_by_side(loops: int, data: Path, module: str = "bench.tight_loop") -> Run:
    """Start that many loops at the same moment, each over all of the data."""
    called = time.time_ns()
    processes = [start_module(module, str(data), stdin=PIPE, stdout=PIPE) for _ in range(loops)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [last_json(process) for process in processes]
    wall = (time.time_ns() - called) / 1e9
    started = min(result["started"] for result in results)
    ended = max(result["ended"] for result in results)
    records = sum(result["records"] for result in results)
    return Run(records=records, seconds=(ended - started) / 1e9, wall=wall)


def main() -> None:
    files = parts(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        function, writer = Count(folder), CountingWriter(folder)
        print("ready", flush=True)
        sys.stdin.readline()
        started = time.time_ns()
        count_all(files, function, writer)
        [[records, ended]] = notes(folder, "written")
    print(json.dumps({"records": records, "started": started, "ended": ended}))


if __name__ == "__main__":
    main()
