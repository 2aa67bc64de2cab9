"""The examples of docs/connectors.md run: as they stand, in the simulator, and with crashes."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest

from penstock.common.job_status import JobStatus
from penstock.datastream import StreamExecutionEnvironment, live
from penstock.datastream.results import ClientResults
from penstock.testing.faults import FaultRates
from penstock.testing.simulator import Simulation

PAGE = Path(__file__).resolve().parents[2] / "docs" / "connectors.md"


def examples():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [pytest.param(block, id=f"example {n + 1}") for n, block in enumerate(blocks)]


class FinishedJob:
    graph = progress = None

    def on_end(self, action):
        action()

    def client_moved(self):
        pass

    def result(self):
        pass


@pytest.fixture
def simulated(monkeypatch, caplog):
    """Makes `execute` run in the simulator; the simulations of the program are returned."""
    caplog.set_level("CRITICAL", logger="penstock")
    simulations = []

    def use(seed, rates):
        def submit(env, job_name, collecting):
            job = env._assemble(job_name)
            simulation = Simulation(seed, job, rates)
            simulations.append(simulation)
            assert simulation.run() is JobStatus.FINISHED, simulation.describe()
            uids = {node.id: node.uid for vertex in job.graph.job.vertices for node in vertex.nodes}
            results = ClientResults(uids.get(collecting))
            for uid, subtasks in simulation.delivered.items():
                for subtask, values in subtasks.items():
                    results.deliver(uid, subtask, values)
            return FinishedJob(), results

        monkeypatch.setattr(StreamExecutionEnvironment, "_submit", submit)
        monkeypatch.setattr(live, "shown", lambda *_: contextlib.nullcontext())
        return simulations

    return use


def test_there_are_examples_of_a_source_and_of_a_sink():
    text = PAGE.read_text()
    assert len(examples()) == 4 and "(Source)" in text and "(Sink)" in text


@pytest.mark.parametrize("code", examples())
def test_an_example_runs(simulated, code):
    ran = simulated(1, FaultRates())
    exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
    assert ran


@pytest.mark.parametrize(
    "code", [example for example in examples() if "(Sink)" in example.values[0]]
)
def test_the_example_of_a_sink_is_exactly_once(simulated, code):
    restarts = 0
    for seed in range(20):
        ran = simulated(seed, FaultRates(crash=0.02, crash_soon=0.5, budget=3))
        exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
        restarts += ran[-1].master.progress().restarts
    assert restarts > 5, "nothing went wrong: the example was not put to the test"
