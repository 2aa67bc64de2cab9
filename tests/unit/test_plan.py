"""The execution plan as JSON, in Flink's shape."""

from __future__ import annotations

import json

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ProgramError


def plan(env):
    return json.loads(env.get_execution_plan())


def predecessor(node, strategy):
    return {"id": node, "ship_strategy": strategy, "side": "second"}


def test_a_plan_has_a_node_for_each_operator_and_what_feeds_it():
    env = StreamExecutionEnvironment().set_parallelism(2)
    words = env.from_collection(["a", "b"])
    counts = words.map(lambda word: (word, 1)).name("Pair").key_by(lambda pair: pair[0])
    counts.reduce(lambda a, b: (a[0], a[1] + b[1])).print()
    assert plan(env) == {
        "nodes": [
            {
                "id": 1,
                "type": "Source: Collection Source",
                "pact": "Data Source",
                "contents": "Source: Collection Source",
                "parallelism": 1,
            },
            {
                "id": 2,
                "type": "Pair",
                "pact": "Operator",
                "contents": "Pair",
                "parallelism": 2,
                "predecessors": [predecessor(1, "REBALANCE")],
            },
            {
                "id": 3,
                "type": "Reduce",
                "pact": "Operator",
                "contents": "Reduce",
                "parallelism": 2,
                "predecessors": [predecessor(2, "HASH")],
            },
            {
                "id": 4,
                "type": "Print",
                "pact": "Data Sink",
                "contents": "Print",
                "parallelism": 2,
                "predecessors": [predecessor(3, "FORWARD")],
            },
        ]
    }


def test_a_union_has_several_predecessors():
    env = StreamExecutionEnvironment()
    env.from_collection([1]).union(env.from_collection([2]).broadcast()).print()
    assert plan(env)["nodes"][2]["predecessors"] == [
        predecessor(1, "FORWARD"),
        predecessor(2, "BROADCAST"),
    ]


def test_chaining_does_not_change_the_plan():
    fused, apart = StreamExecutionEnvironment(), StreamExecutionEnvironment()
    for env in (fused, apart.disable_operator_chaining()):
        env.from_collection([1]).map(str).print()
    assert plan(fused) == plan(apart)


def test_asking_for_the_plan_executes_nothing():
    env = StreamExecutionEnvironment()
    env.from_collection([1]).print()
    assert plan(env) == plan(env)


def test_a_program_without_a_sink_has_no_plan():
    env = StreamExecutionEnvironment()
    env.from_collection([1])
    with pytest.raises(ProgramError, match="no sink"):
        env.get_execution_plan()
