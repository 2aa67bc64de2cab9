"""Subtasks on slots: where each one lives, what feeds it, and who talks to whom."""

from __future__ import annotations

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.execution_graph import ChannelId, SubtaskId, build_execution_graph
from penstock.graph.job_graph import build_job_graph


def one(value):
    return value


def layout(build, parallelism=1):
    env = StreamExecutionEnvironment()
    env.set_parallelism(parallelism)
    build(env)
    return build_execution_graph(build_job_graph(env._program.stream_graph(), "job"))


def keyed(env):
    env.from_collection([1]).key_by(one).reduce(max).print()


def test_a_group_needs_as_many_slots_as_its_widest_vertex():
    graph = layout(keyed, 3)
    assert graph.slots == 3
    assert graph.subtasks() == [(0, 0), (1, 0), (1, 1), (1, 2)]
    assert graph.subtasks_of_slot(0) == [(0, 0), (1, 0)]
    assert graph.subtasks_of_slot(2) == [(1, 2)]


def test_groups_do_not_share_slots():
    def build(env):
        stream = env.from_collection([1]).map(one).name("a").slot_sharing_group("heavy")
        stream.set_parallelism(2).print().slot_sharing_group("default").set_parallelism(3)

    graph = layout(build)
    assert graph.slots == 5
    assert graph.group_offsets == (("default", 0), ("heavy", 3))
    slots = [[s.vertex for s in graph.subtasks_of_slot(slot)] for slot in range(5)]
    assert slots == [[0, 2], [2], [2], [1], [1]]


def test_every_subtask_has_exactly_one_slot():
    graph = layout(keyed, 4)
    placed = [s for slot in range(graph.slots) for s in graph.subtasks_of_slot(slot)]
    assert sorted(placed) == sorted(graph.subtasks())


def test_every_sender_has_a_channel_to_every_receiver():
    graph = layout(lambda env: env.from_collection([1]).map(one).key_by(one).reduce(max).print(), 3)
    assert graph.input_channels(SubtaskId(2, 1)) == [(1, 0, 1), (1, 1, 1), (1, 2, 1)]
    [edge] = graph.job.outputs(1)
    assert graph.output_channels(edge, 2) == [(1, 2, 0), (1, 2, 1), (1, 2, 2)]


def test_a_forward_has_a_channel_to_its_twin_only():
    def build(env):
        env.from_collection([1]).map(one).map(one).start_new_chain().print()

    graph = layout(build, 3)
    assert graph.input_channels(SubtaskId(2, 1)) == [(1, 1, 1)]
    [edge] = graph.job.outputs(1)
    assert graph.output_channels(edge, 1) == [(1, 1, 1)]


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_the_two_ends_of_a_channel_agree(parallelism):
    def build(env):
        left = env.from_collection([1]).map(one)
        right = env.from_collection([2])
        left.map(one).start_new_chain().union(right, left.broadcast()).key_by(one).reduce(
            max
        ).print()

    graph = layout(build, parallelism)
    received = {
        channel: subtask
        for subtask in graph.subtasks()
        for channel in graph.input_channels(subtask)
    }
    sent = {
        channel: SubtaskId(edge.source, index)
        for edge in graph.job.edges
        for index in range(graph.job.vertex(edge.source).parallelism)
        for channel in graph.output_channels(edge, index)
    }
    assert received.keys() == sent.keys()
    for channel in received:
        assert graph.receiver_of(channel) == received[channel]
        assert graph.sender_of(channel) == sent[channel]


def test_peers_are_the_slots_at_the_other_end_in_either_direction():
    graph = layout(keyed, 3)
    # The one source subtask feeds all three receivers, so slot 0 meets both others.
    assert [graph.peers(slot) for slot in range(3)] == [{1, 2}, {0}, {0}]


def test_slots_that_exchange_nothing_are_no_peers():
    def build(env):
        env.from_collection([1]).map(one).map(one).start_new_chain().print()

    graph = layout(build, 2)
    assert [graph.peers(slot) for slot in range(2)] == [{1}, {0}]
    alone = layout(lambda env: env.from_collection([1]).print())
    assert alone.peers(0) == set()


def test_peering_is_mutual():
    def build(env):
        stream = env.from_collection([1]).map(one).slot_sharing_group("x")
        stream.rebalance().map(one).slot_sharing_group("default").print()

    graph = layout(build, 3)
    for slot in range(graph.slots):
        for peer in graph.peers(slot):
            assert slot in graph.peers(peer) and peer != slot


def test_channels_are_named_by_edge_sender_and_receiver():
    assert ChannelId(1, 2, 3) == (1, 2, 3)
    assert SubtaskId(4, 5).index == 5
