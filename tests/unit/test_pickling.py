"""What cannot travel to the slots is named: the operator, and the variable that drags it in."""

from __future__ import annotations

import threading

import pytest

from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.errors import ProgramError
from penstock.graph.execution_graph import build_execution_graph
from penstock.graph.job_graph import build_job_graph
from penstock.graph.pickling import pickle_graph


def message(func):
    env = StreamExecutionEnvironment()
    env.from_collection([1]).map(func).name("Shape").print()
    graph = build_execution_graph(build_job_graph(env._program.stream_graph(), "job"))
    with pytest.raises(ProgramError) as caught:
        pickle_graph(graph)
    return str(caught.value)


def test_a_variable_of_a_function_is_named():
    guard = threading.Lock()
    text = message(lambda value: (guard, value))
    assert "operator 'Shape' cannot be sent to the slots: guard is a lock" in text


class Client:
    def __init__(self):
        self.guard = threading.Lock()


class Asks(MapFunction):
    def __init__(self):
        self.clients = {"main": Client()}

    def map(self, value):
        return value


def test_an_attribute_deep_inside_is_named():
    assert "clients.['main'].guard is a lock" in message(Asks())


def test_a_function_by_way_of_another_is_named():
    event = threading.Event()

    def inner(value):
        return event, value

    assert "inner.event._cond" in message(lambda value: inner(value))


@pytest.mark.parametrize("spread", ["key_by", "partition_custom"])
def test_what_says_where_records_go_is_named(spread):
    guard = threading.Lock()

    def key(value):
        return guard, value

    stream = StreamExecutionEnvironment().from_collection([1]).map(str).name("Text")
    if spread == "key_by":
        stream = stream.key_by(key).reduce(max).name("Most")
    else:
        stream = stream.partition_custom(lambda key, n: 0, key).map(str).name("Most")
    stream.print()
    graph = stream._env._program.stream_graph()
    with pytest.raises(ProgramError, match=r"between operators 'Text' and 'Most'.*guard is a lock"):
        pickle_graph(build_execution_graph(build_job_graph(graph, "job")))


def test_a_default_of_a_parameter_is_named():
    lock = threading.Lock()
    text = message(lambda value, guard=lock: value)
    assert "operator 'Shape' cannot be sent to the slots: guard is a lock" in text


def test_a_map_does_not_yield():
    def several(value):
        yield value

    stream = StreamExecutionEnvironment().from_collection([1])
    with pytest.raises(ProgramError, match="a generator was given, which yields: use flat_map"):
        stream.map(several)


def test_a_program_that_was_executed_is_not_executed_again():
    env = StreamExecutionEnvironment()
    env.from_collection([1]).print()
    env._program.mark_executed()
    with pytest.raises(ProgramError, match="all of the program was executed before"):
        env._assemble("again")
