"""File, program, command line: later wins, whichever way a key is spelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.common import Configuration
from penstock.common.config_layers import Setting, settings_of
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.invocation import Invocation, invoked
from penstock.errors import ConfigurationError, ProgramError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def environment(**values):
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(values))


def test_a_program_reads_the_file_without_the_command_line():
    Path("penstock.yaml").write_text("parallelism.default: 3\n")
    assert StreamExecutionEnvironment().get_parallelism() == 3


def test_a_mistake_in_the_file_is_raised_where_the_environment_is_made():
    Path("penstock.yaml").write_text("nonsense: 3\n")
    with pytest.raises(ConfigurationError, match=r"^penstock\.yaml:1: unknown"):
        StreamExecutionEnvironment()


def test_the_program_wins_over_the_file():
    Path("penstock.yaml").write_text("parallelism.default: 3\npipeline.max-parallelism: 64\n")
    env = environment(**{"parallelism.default": 4})
    assert (env.get_parallelism(), env.get_max_parallelism()) == (4, 64)
    assert env.set_parallelism(5).get_parallelism() == 5


def test_the_command_line_wins_over_the_program():
    Path("penstock.yaml").write_text("parallelism.default: 3\n")
    with invoked(Invocation(overrides={"parallelism.default": Setting("6", "-p")})):
        env = environment(**{"parallelism.default": 4}).set_parallelism(5)
        assert env.get_parallelism() == 6
        env.from_collection([1]).map(str).print()
        graph = env._assemble(None).graph.job
    assert [vertex.parallelism for vertex in graph.vertices] == [1, 6]


def test_an_operators_own_parallelism_stays():
    with invoked(Invocation(overrides={"parallelism.default": Setting("6", "-p")})):
        env = StreamExecutionEnvironment()
        env.from_collection([1]).map(str).set_parallelism(2).print()
        graph = env._assemble(None).graph.job
    assert [vertex.parallelism for vertex in graph.vertices] == [1, 2, 6]


def test_another_spelling_is_the_same_key():
    Path("penstock.yaml").write_text("execution.buffer-timeout.interval: 1 ms\n")
    env = environment(**{"execution.buffer-timeout": "2 ms"})
    assert env.get_buffer_timeout() == 2
    env.configure(Configuration.from_dict({"execution.buffer-timeout.interval": "3 ms"}))
    env.configure(Configuration.from_dict({"execution.buffer-timeout": "4 ms"}))
    assert env.get_buffer_timeout() == 4


def test_in_one_layer_the_key_itself_wins_over_its_other_spellings():
    for values in ({"restart-strategy": "none"}, {}):
        values = {**values, "restart-strategy.type": "fixed-delay", "restart-strategy": "none"}
        assert settings_of(values, "x") == {"restart-strategy.type": Setting("fixed-delay", "x")}


def test_a_job_id_is_for_one_job():
    assert Invocation().take_job_id() is None
    asked = Invocation(job_id="nightly")
    assert asked.take_job_id() == "nightly"
    with pytest.raises(ProgramError, match="executes a second job"):
        asked.take_job_id()


def test_a_job_id_becomes_the_jobs():
    class Stopped(Exception):
        pass

    seen = []

    def stop(job, settings):
        seen.append(job.id)
        raise Stopped

    with invoked(Invocation(job_id="nightly", preview=stop)):
        env = StreamExecutionEnvironment()
        env.from_collection([1]).print()
        with pytest.raises(Stopped):
            env.execute_async()
    assert seen == ["nightly"]


def test_what_a_block_sets_ends_with_it():
    with invoked(Invocation(overrides={"parallelism.default": Setting("6", "-p")})):
        env = StreamExecutionEnvironment()
    assert env.get_parallelism() == 1
