"""Files that travel with a job, in slots that are other processes, on one executor and on two."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from clusters import one_at_a_time
from pyspark.sql import SparkSession

from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import JobFailedError

PROGRAM = """
import sys
from pathlib import Path
from clusters import EXECUTORS
from penstock.common import Configuration
from penstock.datastream import MapFunction, StreamExecutionEnvironment


class Look(MapFunction):
    def open(self, runtime_context):
        import shipped_module, shipped_package.inner, zipped_module, required_package
        from pathlib import Path

        self.found = [
            shipped_module.NAME,
            shipped_package.inner.NAME,
            zipped_module.NAME,
            required_package.NAME,
            Path("data/numbers.txt").read_text(),
            Path(runtime_context.get_distributed_cache().get_file("model")).read_text(),
            runtime_context.get_job_parameter("mood", "none"),
            runtime_context.get_job_parameter("other", "none"),
        ]

    def map(self, value):
        import sys
        return self.found + [sys.executable]


def results(version):
    settings = {**EXECUTORS, "spark.master": sys.argv[1], "penstock.progress": "off"}
    configuration = Configuration.from_dict(settings)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    folder = Path(sys.argv[2])
    (folder / "shipped_module.py").write_text(f"NAME = {version!r}")
    env.add_python_file(str(folder / "shipped_module.py"))
    env.add_python_file(str(folder / "packages"))
    env.add_python_file(str(folder / "zipped.zip"))
    env.add_python_archive(str(folder / "archive.zip"), "data")
    env.set_python_requirements(str(folder / "requirements.txt"), str(folder / "wheels"))
    env.register_cached_file(str(folder / "model.txt"), "model")
    env.get_config().set_global_job_parameters({"mood": "good"})
    if len(sys.argv) > 3:
        env.set_python_executable(sys.argv[3])
    stream = env.from_collection([1, 2]).rebalance().map(Look()).set_parallelism(2)
    return list(stream.execute_and_collect())


for version in ("first", "second"):
    for found in results(version):
        print(*found, sep="|")
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    (folder / "packages" / "shipped_package").mkdir(parents=True)
    (folder / "packages" / "shipped_package" / "__init__.py").write_text("")
    (folder / "packages" / "shipped_package" / "inner.py").write_text("NAME = 'package'")
    with zipfile.ZipFile(folder / "zipped.zip", "w") as archive:
        archive.writestr("zipped_module.py", "NAME = 'zip'")
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr("numbers.txt", "1 2 3")
    (folder / "model.txt").write_text("weights")
    (folder / "wheels").mkdir()
    (folder / "requirements.txt").write_text("required-package==1.0\n")
    write_wheel(folder / "wheels" / "required_package-1.0-py3-none-any.whl")
    return folder


def write_wheel(path: Path) -> None:
    """A wheel with one module, made by hand: nothing is fetched and nothing built."""
    info = "required_package-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("required_package.py", "NAME = 'required'")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: required-package\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{info}/RECORD", "")


@pytest.mark.parametrize(
    "master",
    [
        "local[4]",
        pytest.param("local-cluster[2,1,1024]", marks=[pytest.mark.full, one_at_a_time]),
    ],
)
def test_slots_have_the_files_of_their_job_and_no_other(
    master: str, files: Path, run_driver: Callable[..., tuple[str, str]]
) -> None:
    out, _ = run_driver(PROGRAM, master, str(files))
    seen = [line.split("|")[:-1] for line in out.splitlines()]
    rest = ["package", "zip", "required", "1 2 3", "weights", "good", "none"]
    # The second job runs in the same processes, with another module of the same name.
    assert seen == [["first", *rest]] * 2 + [["second", *rest]] * 2


def test_a_python_that_is_not_there(session: SparkSession) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_executable("/no/such/python")
    env.from_collection([1]).print()
    with pytest.raises(JobFailedError, match="/no/such/python cannot be executed"):
        env.execute()


def test_another_python_runs_the_slots(
    files: Path, tmp_path: Path, run_driver: Callable[..., tuple[str, str]]
) -> None:
    other = tmp_path / "other-python"
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    marked = tmp_path / "marked-python"
    marked.write_text(f'#!/bin/sh\ntouch "{tmp_path}/was-used"\nexec "{other}" "$@"\n')
    marked.chmod(0o755)
    out, _ = run_driver(PROGRAM, "local[4]", str(files), str(marked))
    assert len(out.splitlines()) == 4
    assert (tmp_path / "was-used").exists()
