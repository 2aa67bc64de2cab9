"""A notebook, really run: the progress shows itself, and results can be iterated over."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from patience import PATIENCE

# The notebook is run once, by one process.
pytestmark = pytest.mark.xdist_group("notebook")

BUILD = """
from penstock.common import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource

def stream():
    env = StreamExecutionEnvironment.get_execution_environment()
    source = DataGeneratorSource(lambda n: n, count=200, rate_per_second=100)
    return env, env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
"""

EXECUTE = """
env, numbers = stream()
numbers.filter(lambda n: n % 100 == 7).name("sevens").print("seen")
result = env.execute("in a notebook")
"""

COLLECT = """
env, numbers = stream()
with numbers.map(lambda n: n * n).execute_and_collect() as squares:
    first = [next(squares) for _ in range(3)]
first
"""


OWN_CLASS = """
import dataclasses

@dataclasses.dataclass
class Seen:
    number: int
    #MORE

env, numbers = stream()
with numbers.map(lambda n: Seen(n)).key_by(lambda s: s.number).execute_and_collect() as seen:
    first = next(seen)
assert type(first) is Seen
first
"""
DEFINED_ANEW = OWN_CLASS.replace("#MORE", "again: bool = True")


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The cells of the notebook, with what they put out."""
    sources = (BUILD, EXECUTE, COLLECT, OWN_CLASS, DEFINED_ANEW)
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources]
    )
    folder = tmp_path_factory.mktemp("notebook")
    # As on a user's machine, not as under pytest: nothing of this process's settings.
    spark = ("SPARK_", "PYSPARK_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(spark)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3", resources=resources)
    executed = client.execute(env=environment)
    Path(folder, "executed.ipynb").write_text(nbformat.writes(executed))
    return list(executed.cells)


def text_of(cell: Any, stream: str) -> str:
    return "".join(
        output.text
        for output in cell.outputs
        if output.output_type == "stream" and output.name == stream
    )


def test_execute_shows_one_table_that_keeps_itself_current(cells: list[Any]) -> None:
    tables = [output for output in cells[1].outputs if output.output_type == "display_data"]
    assert len(tables) == 1, cells[1].outputs
    shown = tables[0].data["text/html"]
    # The last picture stays.
    assert "in a notebook" in shown and "sevens" in shown and "finished" in shown
    assert "backpressured" in tables[0].data["text/plain"]


def test_printed_records_stand_in_the_cell_that_ran_the_job(cells: list[Any]) -> None:
    assert text_of(cells[1], "stdout").splitlines() == ["seen> 7", "seen> 107"]


def test_results_are_collected(cells: list[Any]) -> None:
    [result] = [output for output in cells[2].outputs if output.output_type == "execute_result"]
    assert result.data["text/plain"] == "[0, 1, 4]"


def test_records_of_a_class_of_a_cell_that_is_run_again(cells: list[Any]) -> None:
    shown = [
        [out.data["text/plain"] for out in cell.outputs if out.output_type == "execute_result"]
        for cell in cells[3:]
    ]
    assert shown == [["Seen(number=0)"], ["Seen(number=0, again=True)"]]


def test_nothing_else_is_on_the_page(cells: list[Any]) -> None:
    assert cells[0].outputs == []
    assert all(output.output_type != "error" for cell in cells for output in cell.outputs)
