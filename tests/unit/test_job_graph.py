"""Which operators are fused, and how the rest is connected: the plan, as text."""

from __future__ import annotations

import textwrap

import pytest

from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.graph.job_graph import Chains, build_job_graph


def plan(env, chaining=True):
    return build_job_graph(env._program.stream_graph(), "job", Chains(chaining)).describe()


def text(expected):
    return textwrap.dedent(expected).strip("\n")


def one(value):
    return value


class Nothing(KeyedProcessFunction):
    def process_element(self, value, ctx):
        return None


@pytest.fixture
def env():
    return StreamExecutionEnvironment()


def test_a_straight_program_is_one_vertex(env):
    env.from_collection([1]).map(one).filter(one).flat_map(one).print()
    assert plan(env) == text("""
        [0] Source: Collection Source -> Map -> Filter -> Flat Map -> Print x1 (default)
    """)


def test_a_key_ends_a_chain(env):
    env.set_parallelism(2)
    env.from_collection([1]).map(one).key_by(one).process(Nothing()).map(one).print()
    assert plan(env) == text("""
        [0] Source: Collection Source x1 (default)
            Source: Collection Source --REBALANCE--> [1]
        [1] Map x2 (default)
            Map --HASH--> [2]
        [2] KeyedProcess -> Map -> Print x2 (default)
    """)


def test_reduce_is_the_head_of_a_chain(env):
    env.from_collection([1]).key_by(one).reduce(max).filter(one).print()
    assert plan(env) == text("""
        [0] Source: Collection Source x1 (default)
            Source: Collection Source --HASH--> [1]
        [1] Reduce -> Filter -> Print x1 (default)
    """)


def test_start_new_chain_cuts_above(env):
    env.from_collection([1]).map(one).name("a").map(one).name("b").start_new_chain().print()
    assert plan(env) == text("""
        [0] Source: Collection Source -> a x1 (default)
            a --FORWARD--> [1]
        [1] b -> Print x1 (default)
    """)


def test_disable_chaining_cuts_on_both_sides(env):
    env.from_collection([1]).map(one).name("a").disable_chaining().map(one).name("b").print()
    assert plan(env) == text("""
        [0] Source: Collection Source x1 (default)
            Source: Collection Source --FORWARD--> [1]
        [1] a x1 (default)
            a --FORWARD--> [2]
        [2] b -> Print x1 (default)
    """)


def test_without_chaining_every_operator_is_a_vertex(env):
    env.from_collection([1]).map(one).print()
    assert plan(env, chaining=False) == text("""
        [0] Source: Collection Source x1 (default)
            Source: Collection Source --FORWARD--> [1]
        [1] Map x1 (default)
            Map --FORWARD--> [2]
        [2] Print x1 (default)
    """)


def test_another_parallelism_means_an_exchange(env):
    env.from_collection([1]).map(one).set_parallelism(3).map(one).set_parallelism(3).print()
    assert plan(env) == text("""
        [0] Source: Collection Source x1 (default)
            Source: Collection Source --REBALANCE--> [1]
        [1] Map -> Map x3 (default)
            Map --REBALANCE--> [2]
        [2] Print x1 (default)
    """)


def test_the_writer_of_an_exchange_is_the_operator_it_leaves_from(env):
    head = env.from_collection([1]).map(one).name("head")
    head.map(one).name("tail").print()
    head.rebalance().print("second")
    assert plan(env) == text("""
        [0] Source: Collection Source -> head -> tail -> Print x1 (default)
            head --REBALANCE--> [1]
        [1] Print x1 (default)
    """)


def test_a_union_has_one_edge_per_input(env):
    left = env.from_collection([1]).map(one).name("left")
    right = env.from_collection([2]).map(one).name("right")
    left.union(right).map(one).name("both").print()
    assert plan(env) == text("""
        [0] Source: Collection Source -> left x1 (default)
            left --FORWARD--> [2]
        [1] Source: Collection Source -> right x1 (default)
            right --FORWARD--> [2]
        [2] both -> Print x1 (default)
    """)


def test_a_stream_united_with_itself_has_two_edges(env):
    stream = env.from_collection([1])
    stream.union(stream).print()
    assert plan(env) == text("""
        [0] Source: Collection Source x1 (default)
            Source: Collection Source --FORWARD--> [1]
            Source: Collection Source --FORWARD--> [1]
        [1] Print x1 (default)
    """)


def test_a_diamond_forks_inside_a_chain_and_meets_outside(env):
    source = env.from_collection([1])
    evens, odds = source.filter(one).name("evens"), source.filter(one).name("odds")
    evens.union(odds).print()
    assert plan(env) == text("""
        [0] Source: Collection Source -> evens -> odds x1 (default)
            evens --FORWARD--> [1]
            odds --FORWARD--> [1]
        [1] Print x1 (default)
    """)


def test_a_union_keeps_how_each_input_is_spread(env):
    env.set_parallelism(2)
    left = env.from_collection([1]).map(one).name("left")
    right = env.from_collection([2])
    left.broadcast().union(right).map(one).name("both").print()
    assert plan(env) == text("""
        [0] Source: Collection Source x1 (default)
            Source: Collection Source --REBALANCE--> [1]
        [1] left x2 (default)
            left --BROADCAST--> [3]
        [2] Source: Collection Source x1 (default)
            Source: Collection Source --REBALANCE--> [3]
        [3] both -> Print x2 (default)
    """)


def test_another_group_means_an_exchange_and_is_inherited(env):
    env.from_collection([1]).map(one).slot_sharing_group("heavy").map(one).print()
    assert plan(env) == text("""
        [0] Source: Collection Source x1 (default)
            Source: Collection Source --FORWARD--> [1]
        [1] Map -> Map -> Print x1 (heavy)
    """)


def test_inputs_of_different_groups_leave_the_default(env):
    left = env.from_collection([1]).slot_sharing_group("left")
    right = env.from_collection([2]).slot_sharing_group("right")
    left.union(right).print()
    assert plan(env) == text("""
        [0] Source: Collection Source x1 (left)
            Source: Collection Source --FORWARD--> [2]
        [1] Source: Collection Source x1 (right)
            Source: Collection Source --FORWARD--> [2]
        [2] Print x1 (default)
    """)


@pytest.mark.parametrize(
    ("spread", "name"),
    [
        (lambda stream: stream.rebalance(), "REBALANCE"),
        (lambda stream: stream.broadcast(), "BROADCAST"),
        (lambda stream: stream.partition_custom(lambda key, n: 0, one), "CUSTOM"),
        (lambda stream: stream.key_by(one), "HASH"),
    ],
    ids=["rebalance", "broadcast", "custom", "hash"],
)
def test_a_partitioning_is_never_fused_away(env, spread, name):
    spread(env.from_collection([1])).map(one).print()
    assert plan(env) == text(f"""
        [0] Source: Collection Source x1 (default)
            Source: Collection Source --{name}--> [1]
        [1] Map -> Print x1 (default)
    """)


def test_an_explicit_forward_is_fused(env):
    env.from_collection([1]).forward().map(one).print()
    assert plan(env) == text("""
        [0] Source: Collection Source -> Map -> Print x1 (default)
    """)


def test_the_last_partitioning_counts(env):
    env.from_collection([1]).broadcast().rebalance().print()
    assert "--REBALANCE-->" in plan(env)
    assert "--BROADCAST-->" not in plan(env)


def test_a_vertex_knows_its_inputs_and_outputs(env):
    env.from_collection([1]).key_by(one).reduce(max).print()
    job = build_job_graph(env._program.stream_graph(), "job")
    source, reduce = job.vertices
    assert (source.uid, source.parallelism) == (source.head.uid, 1)
    [edge] = job.edges
    assert job.outputs(source.id) == job.inputs(reduce.id) == [edge]
    assert job.inputs(source.id) == job.outputs(reduce.id) == []
    assert (edge.source, edge.node, edge.target) == (source.id, source.head.id, reduce.id)
