"""Programs that import pyflink, unchanged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.cli import pyflink_hook


@pytest.fixture
def run_job(tmp_path, monkeypatch):
    # Processes that are started from there import the same package, however it was found here.
    monkeypatch.setenv("PYTHONPATH", str(Path(penstock.__file__).absolute().parents[1]))

    def run_job(code: str, *options: str) -> subprocess.CompletedProcess[str]:
        Path(tmp_path, "job.py").write_text(code)
        command = [sys.executable, "-m", "penstock", "run", *options, "job.py"]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    return run_job


def test_names_are_the_same_objects(run_job):
    done = run_job(
        """
import pyflink
import pyflink.datastream.connectors.file_system
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment as Theirs
from pyflink.datastream.functions import MapFunction
import penstock.common, penstock.datastream
from penstock.datastream import StreamExecutionEnvironment as Ours

assert Theirs is Ours
assert pyflink.datastream is penstock.datastream
assert penstock.datastream.__spec__.name == penstock.datastream.__name__ == "penstock.datastream"
assert Types is penstock.common.Types
assert MapFunction.__module__.startswith("penstock.")
print("same")
""",
        "--pyflink",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "same\n", "")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "from pyflink.table import StreamTableEnvironment",
            (
                "ModuleNotFoundError: pyflink.table: Penstock runs DataStream programs and has "
                "pyflink.common, pyflink.datastream and pyflink.metrics only"
            ),
        ),
        (
            "import pyflink.datastream.no_such",
            (
                "ModuleNotFoundError: pyflink.datastream.no_such: Penstock has no "
                "penstock.datastream.no_such"
            ),
        ),
        (
            "import pyflink.datastream.no_such.deeper",
            (
                "ModuleNotFoundError: pyflink.datastream.no_such: Penstock has no "
                "penstock.datastream.no_such"
            ),
        ),
        ("from pyflink.datastream import NoSuch", "ImportError: cannot import name 'NoSuch'"),
    ],
)
def test_what_is_lacking_is_named(run_job, statement, message):
    done = run_job(statement, "--pyflink")
    assert done.returncode == 1
    assert 'File "job.py", line 1' in done.stderr
    assert done.stderr.splitlines()[-1].startswith(message)


def test_without_the_option_pyflink_is_not_touched(run_job):
    done = run_job("import pyflink")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'pyflink'"


def test_the_search_path_is_given_back():
    before = list(sys.path)
    with pyflink_hook.pyflink_importable():
        assert len(sys.path) == len(before) + 1
    assert sys.path == before
