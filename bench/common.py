"""Running contenders in turn, and reporting what came out.

A contender is a function that runs once and returns a `Run`. `interleaved` runs all contenders
round by round, so that a noisy minute of the machine hits all of them alike.

>>> slow, fast = Run(records=100, seconds=2.0, wall=3.0), Run(records=100, seconds=1.0, wall=1.0)
>>> rounds = interleaved(runs=3, slow=lambda: slow, fast=lambda: fast)
>>> rounds.ratio("slow", "fast")
0.5
"""

import contextlib
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Run:
    """One run of one contender.

    `seconds` is the time from the first record read to the last record in the sink, `wall` the
    time of the whole call, with everything before and after.
    """

    records: int
    seconds: float
    wall: float

    @property
    def rate(self) -> float:
        return self.records / self.seconds


@dataclass(frozen=True)
class Rounds:
    """All runs of all contenders; the n-th runs of all of them belong to one round."""

    runs: dict[str, list[Run]]

    def rate(self, name: str) -> float:
        """The median rate of a contender, in records per second."""
        return statistics.median(run.rate for run in self.runs[name])

    def wall(self, name: str) -> float:
        return statistics.median(run.wall for run in self.runs[name])

    def ratio(self, name: str, baseline: str) -> float:
        return self.rate(name) / self.rate(baseline)

    def spread(self, name: str, baseline: str) -> tuple[float, float]:
        """The smallest and the largest ratio within one round."""
        pairs = zip(self.runs[name], self.runs[baseline], strict=True)
        ratios = [run.rate / base.rate for run, base in pairs]
        return min(ratios), max(ratios)

    def table(self) -> str:
        """One line per contender."""
        width = max(map(len, self.runs))
        return "\n".join(
            f"{name:{width}}  {self.rate(name):>12,.0f} records/s   wall {self.wall(name):6.2f} s"
            for name in self.runs
        )


def interleaved(runs: int = 5, **contenders: Callable[[], Run]) -> Rounds:
    """Run every contender `runs` times in turn; every other round goes in reverse order."""
    results: dict[str, list[Run]] = {name: [] for name in contenders}
    for number in range(runs):
        order = list(contenders) if number % 2 == 0 else list(reversed(contenders))
        for name in order:
            run = contenders[name]()
            results[name].append(run)
            print(f"round {number + 1}: {name} {run.rate:,.0f} records/s", file=sys.stderr)
    return Rounds(results)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile of values that are sorted already."""
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank) - 1, 0)]


def result_row(name: str, figure: str, details: str, options: str = "") -> str:
    """A line for the table in RESULTS.md; `options` of the command that repeats it."""
    python = ".".join(map(str, sys.version_info[:2]))
    machine = f"{os.cpu_count()} cores, Python {python}"
    today = datetime.date.today().isoformat()
    command = f"python -m bench.{name.partition(' ')[0]} {options}".rstrip()
    return f"| {today} | {commit()} | {name} | {figure} | {details} | {machine} | `{command}` |"


def commit() -> str:
    """The commit that was measured; a plus sign says that the working tree had changes."""
    head = _git("rev-parse", "--short", "HEAD")
    return (head or "none") + ("+" if _git("status", "--porcelain") else "")


def start_module(module: str, *args: str, **options: Any) -> subprocess.Popen[str]:
    """Start `python -m module` from the root of the repository."""
    command = [sys.executable, "-m", module, *args]
    return subprocess.Popen(command, cwd=ROOT, text=True, **options)


def last_json(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for a process and read the last line that it printed."""
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{process.args!r} ended with code {process.returncode}")
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


def share_with_workers() -> None:
    """Let Spark's Python workers import `bench` too; call it before a session is made."""
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    os.environ["PYSPARK_PYTHON"] = sys.executable


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Keep what this process and its children say on stderr, and show it only after an error."""
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        terminal = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(terminal, 2)
            log.seek(0)
            sys.stderr.write(log.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def _git(*args: str) -> str:
    command = ["git", "-C", str(ROOT), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
