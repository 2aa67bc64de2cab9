"""What a program logs and prints is its own, also on Spark; slots are as `python.*` says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import penstock

JOB = """
import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s %(message)s")
from penstock.common import Configuration
from penstock.datastream import MapFunction, StreamExecutionEnvironment

class Logging(MapFunction):
    def map(self, value):
        from module_of_the_host import SEEN
        logging.getLogger("my.module").debug("%s %d", SEEN, value)
        return value

settings = {"penstock.progress": "off", "spark.master": "local[4]"}
settings["python.logging.level.overrides"] = "my.module:DEBUG"
settings["python.pythonpath"] = "modules"
settings["jobmanager.rpc.address"] = "localhost"
env = StreamExecutionEnvironment(Configuration.from_dict(settings))
logging.info("begin")
env.from_collection([7]).map(Logging()).print()
env.execute()
logging.info("end")
"""


def test_sparks_loggers_stay_out_of_the_programs(tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "module_of_the_host.py").write_text("SEEN = 'function saw'\n")
    (tmp_path / "job.py").write_text(JOB.replace('"modules"', repr(str(tmp_path / "modules"))))
    paths = {"PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "job.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, **paths},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("penstock")] == [
        "root begin",
        "7",
        "root end",
    ]
    [said] = [line for line in lines if "without a meaning here" in line]
    assert "jobmanager.rpc.address" in said
    # What functions log is on the stderr of their process.
    assert "my.module: function saw 7" in done.stderr
