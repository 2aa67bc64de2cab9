"""A program is checked as a whole, and every operator has an identity that lasts."""

from __future__ import annotations

import re

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import DuplicateNameError, InvalidParallelismError, ProgramError


@pytest.fixture
def env():
    return StreamExecutionEnvironment()


def one(value):
    return value


def uids(env):
    return {node.name: node.uid for node in env._program.stream_graph().nodes}


# --- uids -------------------------------------------------------------------------------------


def pipeline(env, name=""):
    stream = env.from_collection([1]).name(f"{name}source").map(one).name(f"{name}map")
    return stream.key_by(one).reduce(max).name(f"{name}reduce")


def test_generated_uids_do_not_depend_on_the_run():
    first, second = StreamExecutionEnvironment(), StreamExecutionEnvironment()
    pipeline(first).print()
    pipeline(second).print()
    assert uids(first) == uids(second)
    assert all(re.fullmatch("[0-9a-f]{32}", uid) for uid in uids(first).values())


def test_generated_uids_never_change():
    """State that was saved under these must be found again by a later version."""
    env = StreamExecutionEnvironment()
    pipeline(env).print()
    assert uids(env) == {
        "source": "1b1e1faa3eacb99c9eb8f48c8076e5d0",
        "map": "1e44422f9b4767766b282b009b9fd5a5",
        "reduce": "a63661932c1c031ea1061a8babda7ef1",
        "Print": "5b643d0e2aedd83216fc4f18584bffbe",
    }


@pytest.mark.parametrize("where", ["before", "beside", "after"])
def test_an_unrelated_operator_changes_no_uid(where):
    plain, changed = StreamExecutionEnvironment(), StreamExecutionEnvironment()
    pipeline(plain).print()
    if where == "before":
        pipeline(changed, "other ").print("other").name("other print")
    stream = pipeline(changed)
    if where == "beside":
        stream.map(one).name("extra").print().name("extra print")
    stream.print()
    if where == "after":
        pipeline(changed, "other ").print("other").name("other print")
    found = uids(changed)
    assert len(found) > 4
    assert {name: found[name] for name in uids(plain)} == uids(plain)


def test_parallelism_changes_no_uid():
    narrow, wide = StreamExecutionEnvironment(), StreamExecutionEnvironment()
    narrow.from_collection([1]).map(one).set_parallelism(2).map(one).name("b").set_parallelism(
        2
    ).print().set_parallelism(2)
    wide.from_collection([1]).map(one).set_parallelism(4).map(one).name("b").set_parallelism(
        4
    ).print().set_parallelism(4)
    assert uids(narrow) == uids(wide)


def test_forward_or_rebalance_as_fits_is_no_part_of_a_uid():
    narrow, wide = StreamExecutionEnvironment(), StreamExecutionEnvironment()
    narrow.from_collection([1]).map(one).name("a").print()
    wide.from_collection([1]).map(one).name("a").set_parallelism(3).print()
    assert uids(narrow) == uids(wide)


def test_what_feeds_an_operator_is_part_of_its_uid():
    direct, behind = StreamExecutionEnvironment(), StreamExecutionEnvironment()
    direct.from_collection([1]).map(one).name("x").print()
    behind.from_collection([1]).filter(one).map(one).name("x").print()
    assert uids(direct)["x"] != uids(behind)["x"]


def test_twins_have_uids_of_their_own(env):
    stream = env.from_collection([1])
    for _ in range(3):
        stream.map(one).print()
    found = [node.uid for node in env._program.stream_graph().nodes]
    assert len(found) == len(set(found)) == 7


def test_a_given_uid_is_kept(env):
    env.from_collection([1]).uid("numbers").map(one).uid("my-map").print().uid("my-print")
    assert uids(env) == {
        "Source: Collection Source": "numbers",
        "Map": "my-map",
        "Print": "my-print",
    }


def test_a_uid_used_twice_names_both_operators(env):
    env.from_collection([1]).map(one).name("first").uid("x").map(one).name("second").uid(
        "x"
    ).print()
    with pytest.raises(DuplicateNameError) as refused:
        env._program.stream_graph()
    assert "uid 'x' is used by operator 'first' and by operator 'second'" in str(refused.value)


# --- refusals ---------------------------------------------------------------------------------


def test_an_empty_program_has_nothing_to_execute(env):
    with pytest.raises(ProgramError, match="no operators: nothing to execute"):
        env._program.stream_graph()


def test_a_program_without_a_sink_is_refused(env):
    env.from_collection([1]).map(one)
    with pytest.raises(ProgramError, match=r"no sink: add one, for example \.print\(\)"):
        env._program.stream_graph()


@pytest.mark.parametrize("parallelism", [0, -1, 129])
def test_a_parallelism_out_of_range_names_operator_and_limit(env, parallelism):
    env.from_collection([1]).map(one).name("wide").set_parallelism(parallelism).print()
    with pytest.raises(InvalidParallelismError) as refused:
        env._program.stream_graph()
    assert f"operator 'wide': parallelism {parallelism} is not between 1 and its max" in str(
        refused.value
    )
    assert "128" in str(refused.value)


def test_the_environment_refuses_to_run_nothing(env):
    with pytest.raises(InvalidParallelismError):
        env.set_parallelism(0)


def test_an_operator_may_have_a_max_parallelism_of_its_own(env):
    env.from_collection([1]).map(one).set_max_parallelism(4).set_parallelism(5).print()
    with pytest.raises(InvalidParallelismError, match=r"parallelism 5 .* max parallelism 4"):
        env._program.stream_graph()


@pytest.mark.parametrize("max_parallelism", [0, 32769])
def test_a_max_parallelism_out_of_range_is_refused(env, max_parallelism):
    env.from_collection([1]).map(one).set_max_parallelism(max_parallelism).print()
    with pytest.raises(InvalidParallelismError, match="not between 1 and 32768"):
        env._program.stream_graph()


def test_forward_needs_the_same_parallelism_on_both_sides(env):
    env.from_collection([1]).forward().map(one).set_parallelism(2).print()
    with pytest.raises(ProgramError) as refused:
        env._program.stream_graph()
    assert str(refused.value) == (
        "forward from 'Source: Collection Source' (parallelism 1) to 'Map' (parallelism 2): "
        "both need the same parallelism; use rebalance()"
    )


def test_settings_belong_directly_behind_an_operator(env):
    with pytest.raises(ProgramError, match="name can be set on an operator only"):
        env.from_collection([1]).rebalance().name("x")
    with pytest.raises(ProgramError, match="parallelism can be set on an operator only"):
        env.from_collection([1]).union(env.from_collection([2])).set_parallelism(2)


@pytest.mark.parametrize(
    ("build", "hint"),
    [
        (lambda s: s.map(7), "map() needs a function or an object with a method map"),
        (lambda s: s.flat_map(None), "flat_map() needs"),
        (lambda s: s.filter("x"), "filter() needs"),
        (lambda s: s.key_by(7), "key_by() needs a function or an object with a method get_key"),
        (lambda s: s.key_by(one).reduce(7), "reduce() needs a function, not a int"),
        (lambda s: s.key_by(one).process(one), "needs a KeyedProcessFunction, not a function"),
        (lambda s: s.sink_to(7), "sink_to() needs a Sink, not a int"),
        (lambda s: s.partition_custom(7, one), "partition_custom() needs"),
    ],
)
def test_what_is_not_a_function_is_refused_where_it_is_given(env, build, hint):
    with pytest.raises(ProgramError, match=re.escape(hint)):
        build(env.from_collection([1]))


def test_streams_of_two_environments_do_not_unite(env):
    other = StreamExecutionEnvironment()
    with pytest.raises(ProgramError, match="different environments"):
        env.from_collection([1]).union(other.from_collection([2]))


def test_a_collection_that_cannot_be_pickled_is_refused(env):
    with pytest.raises(ProgramError, match="an element of the collection cannot be pickled"):
        env.from_collection([lambda: 1])


def test_a_stream_can_be_used_again_after_its_program_was_executed():
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_collection([1, 2, 3]).map(lambda n: n).name("First")
    numbers.print()
    env._program.mark_executed()
    numbers.map(lambda n: n).name("Second").print().name("Again")
    names = [node.name for node in env._program.stream_graph().nodes]
    assert names == ["Source: Collection Source", "First", "Second", "Again"]


def test_executing_twice_without_a_new_sink_is_refused():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).print()
    env._program.mark_executed()
    with pytest.raises(ProgramError, match="no sink"):
        env._program.stream_graph()
