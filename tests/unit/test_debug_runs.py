"""`penstock run --debug`: a program in one process, where a breakpoint stops in a function."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.cli.main import run

PROGRAM = """
from penstock.common import Types
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        {inserted}
        self.count.update(count)
        yield ctx.get_current_key(), count


env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(10)
env.from_collection(range(6)).key_by(lambda n: n % 2).process(Count()).print()
env.execute("counts")
"""


def debug(
    folder: Path, inserted: str, typed: str = "", *options: str
) -> subprocess.CompletedProcess[str]:
    (folder / "job.py").write_text(PROGRAM.format(inserted=inserted))
    package = str(Path(penstock.__file__).absolute().parents[1])
    code = (
        f"import sys; sys.path.insert(0, {package!r}); from penstock.cli.main import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, "run", "--debug", *options, "job.py"],
        cwd=folder,
        input=typed,
        capture_output=True,
        text=True,
    )


COUNTS = ["(0, 1)", "(0, 2)", "(0, 3)", "(1, 1)", "(1, 2)", "(1, 3)"]


def test_a_program_runs_in_the_same_order_every_time(tmp_path: Path) -> None:
    first, second = (debug(tmp_path, "pass", "", "-p", "1") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert sorted(first.stdout.splitlines()) == COUNTS


def test_a_breakpoint_stops_in_a_function(tmp_path: Path) -> None:
    where = "if count == 3 and value == 5: breakpoint()"
    done = debug(tmp_path, where, "p ('seen', value, count)\nc\n", "-p", "1")
    assert done.returncode == 0, done.stderr
    assert "('seen', 5, 3)" in done.stdout
    assert all(count in done.stdout for count in COUNTS), "and it goes on"


def test_a_function_that_raises_ends_the_job(tmp_path: Path) -> None:
    done = debug(tmp_path, "if count == 3: raise ValueError('third')")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "ValueError: third" in done.stderr
    assert "restarts" not in done.stderr


def test_a_terminal_is_needed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("")
    assert run(["run", "--debug", "--detached", str(tmp_path / "job.py")]) == 2
    assert "--debug needs this terminal" in capsys.readouterr().err
