"""Mistakes in programs: each is one clear error, as early as it can be known."""

from __future__ import annotations

import importlib
import threading

import pytest
from patience import PATIENCE

from penstock.common import Types
from penstock.datastream import (
    CoMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from penstock.errors import JobFailedError, ProgramError
from penstock.testing import local_environment


def first(word):
    return word[0]


class First(KeySelector):
    def get_key(self, value):
        return value[0]


class Same(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class YieldingPair(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        yield value


def words():
    return StreamExecutionEnvironment().from_collection(["ab", "ac"])


def yielding(*values):
    yield values


# --- while the program is written -------------------------------------------------------------


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: words().process(first), "needs a ProcessFunction, not a function"),
        (lambda: words().process(Same()), "needs a ProcessFunction, not a Same"),
        (lambda: words().key_by(first).process(first), "needs a KeyedProcessFunction, not a"),
        (lambda: words().connect(words()), "different environments"),
        (lambda: words().union(words()), "different environments"),
        (lambda: words().map(yielding), "takes what its function returns.* use flat_map"),
        (lambda: words().filter(yielding), "takes what its function returns"),
        (lambda: words().key_by(yielding), "takes what its function returns"),
        (lambda: words().key_by(first).reduce(yielding), "takes what its function returns"),
        (lambda: words().partition_custom(yielding, first), "takes what its function returns"),
        (lambda: connected().map(YieldingPair()), "map2.* takes what its function returns"),
        (lambda: words().map(Remembering), r"class Remembering was given: Remembering\(\) makes"),
        (lambda: words().key_by(First), r"class First was given: First\(\) makes"),
        (lambda: words().map(7), "needs a function or an object with a method map, not a int"),
        (lambda: words().map(first).get_side_output(OutputTag("late")), "has no side outputs"),
        (lambda: words().sink_to(print), "needs a Sink, not a builtin"),
        (lambda: words().slot_sharing_group(3), "needs the name of a group"),
    ],
)
def test_what_is_wrong_by_itself_is_refused_by_the_call(mistake, message):
    with pytest.raises(ProgramError, match=message):
        mistake()


def connected():
    stream = words()
    return stream.connect(stream)


# --- when the program is executed -------------------------------------------------------------


def test_a_program_without_a_sink():
    with local_environment() as env:
        env.from_collection([1]).map(str)
        with pytest.raises(ProgramError, match="has no sink"):
            env.execute()


def test_executing_twice():
    with local_environment() as env:
        env.from_collection([1]).print()
        env.execute()
        with pytest.raises(ProgramError, match="was executed before"):
            env.execute()


def test_a_function_that_cannot_travel():
    guard = threading.Lock()
    with local_environment() as env:
        env.from_collection([1]).map(lambda n: (guard, n)).name("Guard").print()
        with pytest.raises(ProgramError, match=r"operator 'Guard'.*guard is a lock"):
            env.execute()


def test_an_operator_without_a_uid_where_all_must_have_one():
    with local_environment() as env:
        env.get_config().disable_auto_generated_uids()
        env.from_collection([1]).uid("numbers").map(str).name("Text").print().uid("out")
        with pytest.raises(ProgramError, match="operator 'Text' has no uid"):
            env.execute()


def test_a_stream_without_a_type_where_all_must_have_one():
    with local_environment() as env:
        env.get_config().disable_generic_types()
        env.from_collection([1], Types.INT()).map(str).name("Text").print()
        with pytest.raises(ProgramError, match="operator 'Text' have no declared type"):
            env.execute()


# --- when the functions are opened, before any record -----------------------------------------


def failure(build):
    with local_environment() as env:
        build(env.from_collection(["ab", "ac"])).print()
        with pytest.raises(JobFailedError) as caught:
            env.execute()
        return caught.value.__cause__


class Remembering(MapFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.STRING()))

    def map(self, value):
        raise AssertionError("no record may come this far")


class TwoKinds(KeyedProcessFunction):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("one", Types.LONG()))
        runtime_context.get_list_state(ListStateDescriptor("one", Types.LONG()))

    def process_element(self, value, ctx):
        raise AssertionError("no record may come this far")


def test_state_in_a_function_that_is_not_keyed():
    error = failure(lambda stream: stream.map(Remembering()).name("Remember"))
    assert error.code == "STATE"
    assert "operator 'Remember' asks for keyed state 'last' but its input is not keyed" in str(
        error
    )


def test_two_states_of_one_name_and_different_kinds():
    error = failure(lambda stream: stream.key_by(first).process(TwoKinds()))
    assert error.code == "STATE"
    assert "'one' is declared twice: as value of LONG and as list of LONG" in str(error)
    assert "in operator 'KeyedProcess', subtask 1/1" in str(error)


# --- at the first record ----------------------------------------------------------------------


class Early(ProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(1)
        yield value


def test_a_timer_without_a_key():
    error = failure(lambda stream: stream.process(Early()).name("Early"))
    assert "timers belong to a key" in str(error) and "in operator 'Early'" in str(error)


RULES = MapStateDescriptor("rules", Types.STRING(), Types.STRING())


class TimedRules(KeyedBroadcastProcessFunction):
    """Asks for a timer where there is no key."""

    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(1)


def timed_rules(stream):
    return stream.key_by(first).connect(stream.broadcast(RULES)).process(TimedRules())


class OutOfPlace(KeyedProcessFunction):
    """Looks at keyed state where there is no key."""

    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("last", Types.STRING())).value()

    def process_element(self, value, ctx):
        raise AssertionError("no record may come this far")


class Elsewhere:
    """Travels as a module that only the driver has."""

    def __call__(self, value):
        return value

    def __reduce__(self):
        return importlib.import_module, ("a_module_of_the_driver",)


def test_a_module_that_slots_do_not_have():
    error = failure(lambda stream: stream.map(Elsewhere()))
    assert "needs the module 'a_module_of_the_driver'" in str(error)
    assert "add_python_file" in str(error)


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda stream: stream.map(Elsewhere()), "PROGRAM"),
        (lambda stream: stream.map(Remembering()), "STATE"),
        (lambda stream: stream.key_by(first).process(TwoKinds()), "STATE"),
        (lambda stream: stream.key_by(first).process(OutOfPlace()), "STATE"),
        (lambda stream: stream.process(Early()), "PROGRAM"),
        (timed_rules, "PROGRAM"),
    ],
    ids=["no module", "not keyed", "two kinds", "no key", "timer", "timer of a rule"],
)
def test_a_mistake_of_the_program_is_no_reason_to_start_it_again(build, code):
    with local_environment() as env:
        env.enable_checkpointing(100)  # and with it restarts without end
        build(env.from_collection(["ab", "ac"])).print()
        job = env.execute_async()
        with pytest.raises(JobFailedError) as caught:
            job.get_job_execution_result().result(PATIENCE)
        assert caught.value.__cause__.code == code
        assert (job.progress().attempt, job.progress().restarts) == (1, 0)


def test_a_type_that_does_not_fit():
    error = failure(lambda stream: stream.map(lambda word: word, Types.LONG()).name("Number"))
    assert error.code == "TYPE_MISMATCH"
    assert "expected LONG, got str" in str(error) and "'ab'" in str(error)
    assert "'ac'" not in str(error)


@pytest.mark.parametrize(
    "build",
    [
        lambda stream: stream.map(lambda word: (letter for letter in word)),
        lambda stream: stream.map(lambda word: (letter for letter in word)).rebalance().map(str),
    ],
    ids=["printed", "sent"],
)
def test_a_lambda_that_makes_a_generator(build):
    error = failure(build)
    assert error.code == "RECORD"
    assert "generator" in str(error) and "in operator" in str(error)


@pytest.mark.parametrize(
    "build",
    [
        lambda stream: stream.filter(lambda word: (letter == "z" for letter in word)),
        lambda stream: stream.key_by(len).reduce(lambda a, b: (each for each in (a, b))),
    ],
    ids=["filter", "reduce"],
)
def test_a_lambda_that_makes_a_generator_in_place_of_a_value(build):
    error = failure(build)
    assert error.code == "RESULT_SHAPE"
    assert "a generator was returned where a value is expected" in str(error)
    assert "in operator" in str(error) and "any()" in str(error)
