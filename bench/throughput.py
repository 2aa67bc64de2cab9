"""A job against the tight loop that calls the same functions, and against two such loops."""

from collections.abc import Callable
from pathlib import Path

from bench.common import Run, interleaved, result_row
from bench.data import RECORDS
from bench.stamps import notes
from bench.tight_loop import side_by_side


def measured(folder: str, wall: float) -> Run:
    """What a job noted in `folder`: from its first `open` to its last record in the sink."""
    opened = min(time for [time] in notes(folder, "opened"))
    written = notes(folder, "written")
    ended = max(last for _, last in written)
    records = sum(count for count, _ in written)
    return Run(records=records, seconds=(ended - opened) / 1e9, wall=wall)


def check(runs: list[Run]) -> None:
    """SystemExit if records were lost or counted twice."""
    wrong = [run.records for run in runs if run.records != RECORDS]
    if wrong:
        raise SystemExit(f"the sink should account for {RECORDS} records, not for {wrong}")


def compare(name: str, penstock: Callable[[Path], Run], data: Path, loop: str) -> None:
    """Run the job and the loop of the module `loop` in turn, and print a line of results."""
    penstock(data)  # makes the session; its JVM compiles what it runs for some seconds
    rounds = interleaved(
        penstock=lambda: penstock(data),
        tight_loop=lambda: side_by_side(1, data, loop),
        two_tight_loops=lambda: side_by_side(2, data, loop),
    )
    check(rounds.runs["penstock"])
    ratio = rounds.ratio("penstock", "tight_loop")
    limit = rounds.ratio("two_tight_loops", "tight_loop")
    low, high = rounds.spread("penstock", "tight_loop")
    details = (
        f"{rounds.rate('penstock'):,.0f}/s of {rounds.rate('tight_loop'):,.0f}/s, "
        f"rounds {low:.2f}-{high:.2f}; two loops side by side {limit:.2f}; "
        f"wall of execute() {rounds.wall('penstock'):.1f} s"
    )
    print(rounds.table())
    print(result_row(name, f"{ratio:.2f} x the tight loop", details))
