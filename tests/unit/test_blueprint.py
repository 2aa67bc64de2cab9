"""A program laid out at one parallelism or another: chains, own parallelisms, uids."""

from __future__ import annotations

import pytest

from penstock.common import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import InvalidParallelismError, ProgramError
from penstock.jobmanager.job import Job


def program(parallelism: int, forward: bool = False) -> Job:
    """source -> map x2 -> map -> print"""
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    source = NumberSequenceSource(0, 10)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    stream = stream.map(lambda n: n).name("fixed").set_parallelism(2)
    if forward:
        stream = stream.forward()
    stream.map(lambda n: n).name("free").print()
    return env._assemble("job")


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_it_is_what_a_program_at_that_parallelism_would_be(parallelism: int) -> None:
    changed = program(5).at(parallelism).job
    written_so = program(parallelism).graph.job
    assert changed.describe() == written_so.describe()
    uids = [[node.uid for node in vertex.nodes] for vertex in changed.vertices]
    assert uids == [[node.uid for node in vertex.nodes] for vertex in written_so.vertices]


def test_chains_form_and_break_up() -> None:
    job = program(2)
    assert len(job.graph.job.vertices) == 1
    assert len(job.at(3).job.vertices) == 3


def test_it_can_be_changed_back() -> None:
    job = program(2)
    assert job.at(2).job.describe() == job.graph.job.describe()


def test_what_only_one_can_read_is_read_by_one() -> None:
    env = StreamExecutionEnvironment().set_parallelism(2)
    env.from_collection([1]).key_by(lambda n: n).reduce(max).print()
    parallelisms = [v.parallelism for v in env._assemble("job").at(4).job.vertices]
    assert parallelisms == [1, 4]


def test_a_forward_that_was_asked_for_needs_the_same_parallelism() -> None:
    job = program(2, forward=True)
    with pytest.raises(ProgramError, match="both need the same parallelism"):
        job.at(3)


def test_what_cannot_be() -> None:
    with pytest.raises(InvalidParallelismError):
        program(2).at(0)
    with pytest.raises(InvalidParallelismError, match="128"):
        program(2).at(129)
