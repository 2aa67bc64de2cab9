"""An exception on another executor reads like one in the program itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from clusters import one_at_a_time

pytestmark = [pytest.mark.full, one_at_a_time]

_PROGRAM = """
from clusters import local_cluster

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment


def divide(pair):
    return 100 // pair[1]


settings = Configuration.from_dict(local_cluster(2, 1))
env = StreamExecutionEnvironment.get_execution_environment(settings)
env.set_parallelism(2)
numbers = env.from_collection([("a", 5), ("b", 0), ("c", 2)])
numbers.rebalance().filter(lambda pair: True).map(divide).name("Shares").map(str).print()
env.execute()
"""

_WORDS_OF_THE_MACHINERY = ("py4j", "Py4J", "zmq", "ZeroMQ", "barrier", "java.", "org.apache")


def test_the_users_frames_come_first(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(_PROGRAM)
    before = set(_work())
    ended = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    for folder in set(_work()) - before:
        # Where local-cluster puts its executors' logs.
        shutil.rmtree(folder, ignore_errors=True)
    assert ended.returncode == 1
    text = ended.stderr
    assert not [word for word in _WORDS_OF_THE_MACHINERY if word in text], text
    assert "return 100 // pair[1]" in text
    assert "in operator 'Shares', subtask" in text and "('b', 0)" in text
    # Of all frames shown the first ones are the user's own.
    assert text.index("in divide") < text.index("penstock/")


def _work() -> list[Path]:
    folder = Path(pyspark.__file__).parent / "work"
    return list(folder.iterdir()) if folder.exists() else []
