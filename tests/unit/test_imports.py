"""What importing costs: the front does not bring Spark with it, and a command only what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest


def modules_after(code: str) -> set[str]:
    """The modules in a fresh process after `code`."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print('\\n'.join(sys.modules))"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def loaded_after(code: str) -> set[str]:
    """The top-level packages in a fresh process after `code`."""
    return {name.partition(".")[0] for name in modules_after(code)}


@pytest.mark.parametrize(
    "package", ["pyspark", "py4j", "pandas", "numpy", "pyarrow", "yaml", "zmq", "rich"]
)
def test_the_front_does_not_import(package):
    code = "import penstock.datastream as d; d.StreamExecutionEnvironment()"
    assert package not in loaded_after(code)


def test_the_front_does_not_import_what_only_jobs_need():
    """Dataclasses are slow to make, and what is imported is mostly those."""
    loaded = modules_after("import penstock.datastream, penstock.common")
    heavy = {
        "asyncio",
        "penstock.checkpoint.coordinator",
        "penstock.checkpoint.store",
        "penstock.jobmanager.restart",
        "penstock.network.messages",
        "penstock.runtime.context",
        "penstock.state.hashmap",
        "penstock.state.segments",
    }
    assert not heavy & loaded


def test_the_version_needs_only_the_command_line():
    loaded = loaded_after("from penstock.cli.main import run; run(['version'])")
    assert "click" in loaded
    assert not {"rich", "yaml", "zmq", "cloudpickle", "pyspark"} & loaded
