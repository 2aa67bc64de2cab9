"""The command line on a real Spark: a program written for PyFlink, with a mistake in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import penstock

HELPER = """
from pyflink.datastream import MapFunction

class Divide(MapFunction):
    def map(self, value):
        return 10 // value
"""
PROGRAM = """
import sys
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from helper import Divide

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_collection([int(word) for word in sys.argv[1:]], type_info=Types.INT())
numbers.map(Divide()).name("Divide").print()
print(env.execute("shares").get_job_id())
env.from_collection([0]).map(Divide()).name("Divide").print()
env.execute("by zero")
"""


def test_a_pyflink_program_runs_and_its_failure_is_told(tmp_path: Path, monkeypatch) -> None:
    Path(tmp_path, "helper.py").write_text(HELPER)
    Path(tmp_path, "job.py").write_text(PROGRAM)
    Path(tmp_path, "penstock.yaml").write_text("spark:\n  master: local[8]\n")
    monkeypatch.setenv("PYTHONPATH", str(Path(penstock.__file__).absolute().parents[1]))
    command = [sys.executable, "-m", "penstock", "run", "--pyflink", "-p", "2", "job.py", "2", "5"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    *printed, job_id = done.stdout.splitlines()
    assert sorted(printed) == ["1> 5", "2> 2"]
    assert len(job_id) == 32
    assert done.returncode == 1
    told = done.stderr[done.stderr.index("Traceback") :].splitlines()
    assert told[1].strip().startswith("File") and told[1].endswith("in map")
    assert "helper.py" in told[1]
    assert any("in operator 'Divide', subtask" in line for line in told)
    assert told[-1].startswith("job 'by zero' failed: ZeroDivisionError")
