"""Savepoints on a real Spark, from another terminal: stop, rescale, go on, and go on twice."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock

NUMBERS, KEYS = 6_000, 11
PROGRAM = f"""
import sys
from penstock.common import Encoder, Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.connectors.file_system import FileSink

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(200)
source = DataGeneratorSource(lambda n: n, {NUMBERS}, 500.0)
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
ones = numbers.map(lambda n: (n % {KEYS}, 1)).uid("ones")
counts = ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).uid("counts")
lines = counts.map(lambda pair: f"{{pair[0]}} {{pair[1]}}", Types.STRING()).uid("lines")
sink = FileSink.for_row_format(sys.argv[1], Encoder.simple_string_encoder()).build()
lines.sink_to(sink).uid("files")
env.execute("counting")
"""


def written(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name[0] != "."]
    return [line for path in files for line in path.read_text().splitlines()]


def expected() -> list[str]:
    counts = Counter(n % KEYS for n in range(NUMBERS))
    return [f"{key} {i + 1}" for key, count in counts.items() for i in range(count)]


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., list[str]]:
    Path(tmp_path, "job.py").write_text(PROGRAM)
    Path(tmp_path, "penstock.yaml").write_text(
        "spark:\n  master: local[8]\nexecution:\n  checkpointing:\n"
        f"    dir: {tmp_path / 'checkpoints'}\n"
    )
    return lambda *words: [sys.executable, "-m", "penstock", *words]


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(Path(penstock.__file__).absolute().parents[1]),
        "PENSTOCK_CONTROL_DIR": str(tmp_path / "control"),
    }


def test_stopped_from_another_terminal_and_on_at_another_parallelism(
    tmp_path: Path, command: Callable[..., list[str]], surroundings: dict[str, str]
) -> None:
    def penstock_says(*words: str) -> str:
        done = subprocess.run(
            command(*words),
            cwd=tmp_path,
            env=surroundings,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    out = tmp_path / "out"
    with open(tmp_path / "log", "wb") as log:
        driver = subprocess.Popen(
            command("run", "-p", "2", "job.py", str(out)),
            cwd=tmp_path,
            env=surroundings,
            stdout=log,
            stderr=log,
        )
    try:
        while not written(out):
            assert driver.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
        [line] = penstock_says("list").splitlines()
        assert line.split()[1:] == [str(driver.pid), "RUNNING", "counting"]
        # The directory is relative to this terminal, not to the driver's.
        first = penstock_says("savepoint", line.split()[0], "savepoints")
        assert Path(first).parent == tmp_path / "savepoints"
        assert driver.poll() is None, "the job goes on"
        last = penstock_says("stop", "-p", "savepoints", "counting")
        assert driver.wait(100) == 0, (tmp_path / "log").read_text()
    finally:
        driver.kill()
        driver.wait()
    before = written(out)
    assert 0 < len(before) < NUMBERS
    assert "uid counts" in penstock_says("state", "ls", last)
    assert "the job would start" in penstock_says(
        "run", "--dry-run", "-p", "3", "-s", last, "job.py", str(out)
    )
    penstock_says("run", "-p", "3", "-s", last, "job.py", str(out))
    assert sorted(written(out)) == sorted(expected()), "every record once"
    # Another job from the older one, elsewhere on the disk: it goes on from there, to the same end.
    Path(first).rename(tmp_path / "moved")
    penstock_says("run", "-p", "1", "-s", "moved", "job.py", str(tmp_path / "other"))
    again = written(tmp_path / "other")
    assert len(again) == len(set(again)) and set(again) < set(expected())
    assert set(again) | set(before) == set(expected())
