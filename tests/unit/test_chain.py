"""Compiled chains: the text they are made of, and how they pause where there is no room."""

from __future__ import annotations

import itertools
import linecache
import textwrap

import pytest

from penstock.common.typeinfo import Types
from penstock.connectors.client_sinks import CollectSink
from penstock.datastream import KeyedProcessFunction


def one(value):
    return value


def source_of(cluster, vertex=0):
    return cluster.subtask(vertex).chain.source


def loop_of(cluster, vertex=0):
    """The text of the loop over a batch, without what surrounds it."""
    text = source_of(cluster, vertex)
    start = text.index("    def process(values):")
    return textwrap.dedent(text[start : text.index("    def fire_event")])


def text(expected):
    return textwrap.dedent(expected).lstrip("\n")


# --- the text ---------------------------------------------------------------------------------


def test_a_chain_is_one_loop_without_a_call_of_ours(cluster):
    def build(env):
        stream = env.from_collection([1]).map(one).filter(one)
        stream.flat_map(lambda value: [value]).sink_to(CollectSink())

    assert loop_of(cluster(build)) == text("""
        def process(values):
            for v0 in values:
                v1 = f_2(v0)
                r2 = f_3(v1)
                if r2:
                    if r2 is not True: refuse_generator(r2)
                    r3 = f_4(v1)
                    if r3 is None: r3 = ()
                    elif r3.__class__ in wrong_shapes: refuse(r3)
                    for v4 in r3:
                        write_5(v4)
            return
            yield
    """)


def test_an_immutable_type_is_routed_without_a_copy(cluster):
    def build(env):
        env.from_collection([1], Types.LONG()).key_by(one).reduce(max).print()

    assert loop_of(cluster(build)) == text("""
        def process(values):
            for v0 in values:
                v1 = convert_1(v0)
                k0 = key0(v1)
                c0 = route0[k0]
                b0 = buffers0[c0]
                b0.append(v1)
                if len(b0) >= out0.limit and out0.full(c0):
                    while room.blocked: yield
            return
            yield
    """)


def test_a_type_that_is_not_declared_is_copied(cluster):
    def build(env):
        env.from_collection([1]).rebalance().print()

    assert "copy0(v0)" in loop_of(cluster(build))
    assert "copy0(v0)" not in loop_of(cluster(build, object_reuse=True))


def test_a_generator_function_needs_no_check_of_its_shape(cluster):
    def several(value):
        yield value

    def build(env):
        env.from_collection([1]).flat_map(several).print()

    assert "wrong_shapes:" not in loop_of(cluster(build))


def test_a_fork_is_written_out_twice(cluster):
    def build(env):
        source = env.from_collection([1])
        source.map(one).print()
        source.filter(one).print()

    loop = loop_of(cluster(build))
    assert loop.index("f_2(v1)") < loop.index("f_4(v0)")
    assert "v1 = isolate(v0)" in loop, "what one branch changes, the other does not see"
    assert "isolate(v0)" not in loop_of(cluster(build, object_reuse=True))


def test_the_text_is_found_by_tracebacks_and_goes_with_the_subtask(cluster):
    running = cluster(lambda env: env.from_collection([1]).map(one).print())
    chain = running.subtask(0).chain
    assert linecache.getlines(chain.filename) == chain.source.splitlines(True)
    assert "Map" in chain.filename
    running.slots[0].close()
    assert linecache.getlines(chain.filename) == []


def test_every_user_call_has_a_place(cluster):
    class Count(KeyedProcessFunction):
        def process_element(self, value, ctx):
            return [value]

    def build(env):
        env.from_collection([1]).map(one).key_by(one).process(Count()).filter(one).print()

    places = [
        (place.node.name, place.action)
        for vertex in (0, 1)
        for place in cluster(build).subtask(vertex).chain.places.values()
    ]
    for expected in [
        ("Map", "map"),
        ("Map", "key_by"),
        ("KeyedProcess", "process_element"),
        ("KeyedProcess", "iterate"),
        ("Filter", "filter"),
        ("Print", "write"),
        ("KeyedProcess", "on_timer"),
    ]:
        assert expected in places


# --- suspension -------------------------------------------------------------------------------


def test_an_endless_flat_map_is_suspended_where_there_is_no_room(cluster):
    made = []

    def forever(_):
        for n in itertools.count():
            made.append(n)
            yield n

    def build(env):
        env.from_collection([0]).flat_map(forever).rebalance().map(one).print()

    running = cluster(build, parallelism=2, share_functions=True, credits=2, buffer_records=8)
    for _ in range(100):
        running.turn(slots=[0])
    # Two channels, each with two buffers under way, one waiting and one gathering.
    stuck = len(made)
    assert 0 < stuck <= 2 * 4 * 8
    for _ in range(100):
        running.turn(slots=[0])
    assert len(made) == stuck, "it goes on although nobody takes anything"
    for _ in range(20):
        running.turn()
    assert len(made) > stuck, "it does not go on although there is room"


def test_a_suspended_flat_map_loses_and_repeats_nothing(cluster):
    def build(env):
        stream = env.from_collection([0, 1000]).flat_map(lambda n: range(n, n + 500))
        stream.rebalance().map(one).sink_to(CollectSink())

    running = cluster(build, parallelism=3, credits=1, buffer_records=2).run()
    assert sorted(running.collected()) == [*range(500), *range(1000, 1500)]


def test_a_thousand_timers_are_suspended_between_two(cluster):
    fired = []

    class Many(KeyedProcessFunction):
        def process_element(self, value, ctx):
            for n in range(1000):
                ctx.timer_service().register_event_time_timer(n)

        def on_timer(self, timestamp, ctx):
            fired.append(timestamp)
            yield timestamp

    def build(env):
        keyed = env.from_collection([1]).key_by(one).process(Many())
        keyed.rebalance().map(one).set_parallelism(2).sink_to(CollectSink())

    running = cluster(build, share_functions=True, credits=1, buffer_records=4)
    for _ in range(200):
        running.turn(slots=[0])
    assert 0 < len(fired) < 100
    running.run()
    assert fired == list(range(1000))
    assert sorted(running.collected()) == list(range(1000))


@pytest.mark.parametrize("buffer_records", [1, 3, 256])
@pytest.mark.parametrize("credits", [1, 4])
def test_results_do_not_depend_on_buffers_and_credits(cluster, buffer_records, credits):
    def build(env):
        # From one subtask, so that the records of a key keep their order.
        stream = env.from_collection(range(300)).map(lambda n: n + 1).set_parallelism(1)
        stream = stream.filter(lambda n: n % 3).set_parallelism(1)
        stream.key_by(lambda n: n % 7).reduce(lambda a, b: a + b).sink_to(CollectSink())

    running = cluster(build, parallelism=2, credits=credits, buffer_records=buffer_records).run()
    totals, expected = {}, []
    for n in range(1, 301):
        if n % 3:
            totals[n % 7] = totals.get(n % 7, 0) + n
            expected.append(totals[n % 7])
    assert sorted(running.collected()) == sorted(expected)


# --- where records go -------------------------------------------------------------------------


def test_rebalance_goes_in_turns(cluster):
    running = cluster(
        lambda env: env.from_collection(range(9)).rebalance().map(one).print(), parallelism=3
    ).run()
    assert [running.subtask(1, index).metrics().records_in for index in range(3)] == [3, 3, 3]


def test_broadcast_goes_to_all(cluster):
    running = cluster(
        lambda env: env.from_collection(range(9)).broadcast().map(one).print(), parallelism=3
    ).run()
    assert [running.subtask(1, index).metrics().records_in for index in range(3)] == [9, 9, 9]


def test_a_custom_partitioner_chooses(cluster):
    def build(env):
        numbers = env.from_collection(range(9))
        numbers.partition_custom(lambda key, n: 2 if key > 3 else 0, one).map(one).print()

    running = cluster(build, parallelism=3).run()
    assert [running.subtask(1, index).metrics().records_in for index in range(3)] == [4, 0, 5]


def test_a_key_goes_to_one_subtask(cluster):
    def build(env):
        env.from_collection(["a", "b"] * 20).key_by(one).reduce(max).sink_to(CollectSink())

    running = cluster(build, parallelism=3).run()
    counts = sorted(running.subtask(1, index).metrics().records_in for index in range(3))
    assert counts in ([0, 20, 20], [0, 0, 40])


# --- mutable records --------------------------------------------------------------------------


def raise_by_hundred(record):
    record["x"] += 100
    return record


@pytest.mark.parametrize("chained", [True, False])
def test_an_operator_that_changes_its_input_changes_nothing_for_its_siblings(cluster, chained):
    def build(env):
        source = env.from_collection([{"x": 1}])
        for step in (source.map(raise_by_hundred), source.map(lambda record: record["x"])):
            if not chained:
                step.disable_chaining()
            step.sink_to(CollectSink())

    assert sorted(map(str, cluster(build).run().collected())) == ["1", "{'x': 101}"]


@pytest.mark.parametrize("chained", [True, False])
def test_an_operator_that_changes_its_input_changes_no_state_above_it(cluster, chained):
    def build(env):
        numbers = env.from_collection([{"x": 1}, {"x": 2}]).key_by(lambda record: 0)
        total = numbers.reduce(lambda a, b: {"x": a["x"] + b["x"]}).map(raise_by_hundred)
        if not chained:
            total.disable_chaining()
        total.sink_to(CollectSink())

    assert cluster(build).run().collected() == [{"x": 101}, {"x": 103}]
