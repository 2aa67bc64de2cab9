"""What a PyFlink program imports, it can import here, or it reads what to use instead.

The file beside this one lists PyFlink's modules and the names that can be imported from each.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.absent import ABSENT

EXPORTS = {
    module: [name.strip() for name in names.split(",")]
    for line in Path(__file__).with_name("pyflink-exports.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
    for module, _, names in [line.partition(":")]
}


def ours(module: str) -> str:
    return module.replace("pyflink", "penstock", 1)


def test_the_list_is_read() -> None:
    assert len(EXPORTS) > 40
    assert "Counter" in EXPORTS["pyflink.metrics"]


@pytest.mark.parametrize("module", EXPORTS)
def test_a_module_has_the_names_or_says_what_to_use(module: str) -> None:
    if ours(module) in ABSENT:
        with pytest.raises(ModuleNotFoundError) as caught:
            importlib.import_module(ours(module))
        assert ABSENT[ours(module)] in str(caught.value)
        return
    found = importlib.import_module(ours(module))
    missing = [name for name in EXPORTS[module] if not hasattr(found, name)]
    assert not missing, f"{ours(module)} lacks {', '.join(missing)}"


def test_every_line_works_in_an_unchanged_program(tmp_path, monkeypatch) -> None:
    lines = []
    for module, names in EXPORTS.items():
        statement = f"from {module} import {', '.join(names)}"
        if ours(module) in ABSENT:
            reason = ABSENT[ours(module)]
            lines += ["try:", f"    {statement}", "except ImportError as error:"]
            lines += [f"    assert {reason!r} in str(error), error", "else:"]
            lines += [f"    raise AssertionError({module!r})"]
        else:
            lines.append(statement)
    Path(tmp_path, "job.py").write_text("\n".join([*lines, "print('imported')"]))
    monkeypatch.setenv("PYTHONPATH", str(Path(penstock.__file__).absolute().parents[1]))
    command = [sys.executable, "-m", "penstock", "run", "--pyflink", "job.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "imported\n"), done.stderr


@pytest.mark.parametrize("module", ABSENT)
def test_what_is_said_to_be_absent_is(module: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.util.find_spec(module)
    path = Path(penstock.__file__).parents[1].joinpath(*module.split("."))
    assert not path.is_dir() and not path.with_suffix(".py").exists()


@pytest.mark.parametrize(
    "system", ["Elasticsearch", "Pulsar", "Kinesis", "RabbitMQ", "Cassandra", "MongoDB"]
)
@pytest.mark.parametrize("package", ["penstock", "pyflink"])
def test_a_connector_that_is_not_here_says_so(system, package, tmp_path, monkeypatch) -> None:
    statement = f"from {package}.datastream.connectors.{system.lower()} import Anything"
    Path(tmp_path, "job.py").write_text(statement)
    monkeypatch.setenv("PYTHONPATH", str(Path(penstock.__file__).absolute().parents[1]))
    command = [sys.executable, "-m", "penstock", "run", "--pyflink", "job.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert f"Penstock has no connector for {system}" in said
    assert "Write a source or a sink" in said and "write-a-connector.md" in said
    assert f"{package}.datastream.connectors.{system.lower()}" in said


@pytest.mark.parametrize(
    ("name", "home"), [("FlinkKafkaConsumer", "kafka"), ("JdbcSink", "jdbc"), ("Sink", "base")]
)
def test_older_programs_import_connectors_from_their_package(name: str, home: str) -> None:
    package = importlib.import_module("penstock.datastream.connectors")
    module = importlib.import_module(f"penstock.datastream.connectors.{home}")
    assert getattr(package, name) is getattr(module, name)
    with pytest.raises(AttributeError, match="no attribute 'NoSuch'"):
        getattr(package, "NoSuch")  # noqa: B009
