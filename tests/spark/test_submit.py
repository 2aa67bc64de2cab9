"""`spark-submit job.py`: the program runs where, and with what, the command says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from penstock.testing.spark_cluster import standalone_cluster

PROGRAM = """
import beside
from pyspark import SparkContext, SparkFiles

from penstock.datastream import StreamExecutionEnvironment


def told(n):
    with open(SparkFiles.get("note.txt")) as note:
        return n, beside.WORD, note.read()


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
print(sorted(env.from_collection(range(2)).key_by(lambda n: n).map(told).execute_and_collect()))
context = SparkContext._active_spark_context
print(context.master, context.appName, context.getConf().get("spark.submit.word"))
"""


def submit(folder: Path, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Submit the program, with a module and a file that only the command knows of."""
    (folder / "job.py").write_text(PROGRAM)
    (folder / "lib").mkdir()
    (folder / "lib" / "beside.py").write_text("WORD = 'shipped'")
    (folder / "note.txt").write_text("noted")
    return subprocess.run(
        [
            str(Path(_find_spark_home()) / "bin" / "spark-submit"),
            *("--name", "an app", "--py-files", "lib/beside.py", "--files", "note.txt"),
            *options,
            "job.py",
        ],
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environ},
        capture_output=True,
        text=True,
    )


RESULT = "[(0, 'shipped', 'noted'), (1, 'shipped', 'noted')]"


def test_what_the_command_says_holds(tmp_path: Path) -> None:
    (tmp_path / "own.conf").write_text("spark.submit.word from-a-file\n")
    done = submit(tmp_path, "--master", "local[3]", "--properties-file", "own.conf")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [RESULT, "local[3] an app from-a-file"]


def test_a_job_that_would_run_here_though_a_cluster_was_given_is_refused(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text("spark.master: local[4]\n")
    done = submit(tmp_path, "--master", "spark://127.0.0.1:1")
    assert done.returncode == 1
    # A submitted program writes all it says to stdout.
    assert "started with Spark master spark://127.0.0.1:1, and the job asks for local[4]" in (
        done.stdout
    )


@pytest.mark.full
def test_a_program_is_submitted_to_a_cluster(tmp_path: Path) -> None:
    with standalone_cluster(workers=2, cores=1) as cluster:
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "spark-defaults.conf").write_text(
            f"spark.master {cluster.master_url}\n"
            "spark.submit.word=from-the-defaults\n"
            "spark.dynamicAllocation.enabled true\n"
        )
        done = submit(tmp_path, SPARK_CONF_DIR=str(tmp_path / "conf"))
        assert done.returncode == 0, done.stderr
        warning, *printed = done.stdout.splitlines()
        assert warning.startswith("spark.dynamicAllocation.enabled is true and is taken for false")
        assert printed == [RESULT, f"{cluster.master_url} an app from-the-defaults"]


@pytest.mark.full
def test_a_program_that_python_starts_finds_the_master_of_the_defaults(tmp_path: Path) -> None:
    with standalone_cluster(workers=2, cores=1) as cluster:
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "spark-defaults.conf").write_text(
            f"# the cluster\nspark.master  {cluster.master_url}\nspark.submit.word = plain\n"
        )
        job = (
            "from pyspark import SparkContext\n"
            "from penstock.datastream import StreamExecutionEnvironment\n"
            "env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)\n"
            "print(list(env.from_collection([7]).execute_and_collect()))\n"
            "context = SparkContext._active_spark_context\n"
            "print(context.master, context.getConf().get('spark.submit.word'))\n"
        )
        (tmp_path / "job.py").write_text(job)
        done = subprocess.run(
            [sys.executable, "job.py"],
            cwd=tmp_path,
            env={**os.environ, "SPARK_CONF_DIR": str(tmp_path / "conf")},
            capture_output=True,
            text=True,
        )
        assert done.stdout.splitlines() == ["[7]", f"{cluster.master_url} plain"], done.stderr
