"""What an author sees when something fails: their own frames first, then where it was."""

from __future__ import annotations

import pickle
import re
import textwrap
from pathlib import Path

import pytest

import penstock
from penstock.common import WatermarkStrategy
from penstock.common.typeinfo import Types
from penstock.connectors.client_sinks import CollectSink
from penstock.connectors.generator import DataGeneratorSource
from penstock.datastream import KeyedProcessFunction, MapFunction
from penstock.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import (
    PenstockError,
    RecordError,
    ResultShapeError,
    StateError,
    UnsupportedKeyError,
    UserFunctionError,
)
from penstock.runtime.failure import explain

_PACKAGE = str(Path(penstock.__file__).parent)


def one(value):
    return value


def deeper(value):
    return 1 / value


def divide(value):
    return deeper(value)


@pytest.fixture
def failure(cluster):
    """The one failure of a program."""

    def run(build, **kwargs):
        running = cluster(build, **kwargs).run()
        [error] = running.failures()
        return error

    return run


def frames(error):
    """The functions in the traceback the author sees, outermost first."""
    return re.findall(r'File "(.*)", line \d+, in (\S+)', error.user_traceback)


def assert_only_the_authors(error, *functions):
    assert isinstance(error, UserFunctionError)
    found = frames(error)
    assert [name for _, name in found] == list(functions)
    # Not by the word alone: the folder of a checkout is often called that too.
    assert not any(file.startswith((_PACKAGE, "<chain")) for file, _ in found)


# --- exceptions of user functions -------------------------------------------------------------


def test_the_authors_frames_come_first_and_nothing_of_ours_before_them(failure):
    error = failure(lambda env: env.from_collection([1, 0]).map(divide).name("ratio").print())
    assert_only_the_authors(error, "divide", "deeper")
    lines = str(error).splitlines()
    assert lines[0] == "ZeroDivisionError: division by zero"
    assert lines[1] == "Traceback (most recent call last):"
    assert "return deeper(value)" in lines[3]
    assert lines[-1] == "  in operator 'ratio', subtask 1/1, record 0"


@pytest.mark.parametrize(
    ("apply", "operator"),
    [
        (lambda s: s.map(divide), "Map"),
        (lambda s: s.filter(divide), "Filter"),
        (lambda s: s.flat_map(divide), "Flat Map"),
        (lambda s: s.key_by(divide).reduce(max), "Source: Collection Source"),
        (lambda s: s.partition_custom(lambda key, n: 0, divide).map(one), "Source: Collection"),
    ],
    ids=["map", "filter", "flat_map", "key_by", "partition key"],
)
def test_every_function_is_located(failure, apply, operator):
    error = failure(lambda env: apply(env.from_collection([0])).print())
    assert_only_the_authors(error, "divide", "deeper")
    assert error.origin.operator.startswith(operator)
    assert error.origin.record == "0"


def test_a_partitioner_that_raises_is_the_authors(failure):
    def choose(key, count):
        return divide(key)

    error = failure(lambda env: env.from_collection([0]).partition_custom(choose, one).print())
    assert_only_the_authors(error, "choose", "divide", "deeper")


def test_a_generator_that_raises_in_the_middle_is_located(failure):
    def several(value):
        yield 1
        yield divide(value)

    error = failure(lambda env: env.from_collection([0]).flat_map(several).print())
    assert_only_the_authors(error, "several", "divide", "deeper")
    assert error.origin.record == "0"


def test_an_iterator_without_frames_is_blamed_for_what_it_raised(failure):
    """`map` is lazy and written in C: no frame of the author is left to show."""
    error = failure(lambda env: env.from_collection(["x"]).flat_map(lambda v: map(int, v)).print())
    assert isinstance(error, UserFunctionError)
    assert error.message == "ValueError: invalid literal for int() with base 10: 'x'"
    assert error.origin.record == "'x'"


def test_a_reduce_function_is_located(failure):
    def build(env):
        env.from_collection([1, 0]).key_by(lambda v: 1).reduce(lambda a, b: divide(b)).print()

    error = failure(build)
    assert error.origin.operator == "Reduce"
    assert error.origin.record == "0"


class Explodes(KeyedProcessFunction):
    def __init__(self, where):
        self.where = where

    def open(self, runtime_context):
        if self.where == "open":
            divide(0)

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(7)
        if self.where == "element":
            divide(0)

    def on_timer(self, timestamp, ctx):
        divide(0)


@pytest.mark.parametrize(
    ("where", "method", "record"),
    [("element", "process_element", "'rec'"), ("timer", "on_timer", "(7, 'rec')")],
)
def test_a_process_function_is_located(failure, where, method, record):
    error = failure(
        lambda env: env.from_collection(["rec"]).key_by(one).process(Explodes(where)).print()
    )
    assert_only_the_authors(error, method, "divide", "deeper")
    assert error.origin.operator == "KeyedProcess"
    assert error.origin.record == record


def test_opening_is_located(cluster):
    with pytest.raises(UserFunctionError) as raised:
        cluster(lambda env: env.from_collection([1]).key_by(one).process(Explodes("open")).print())
    assert_only_the_authors(raised.value, "open", "divide", "deeper")
    assert str(raised.value.origin) == "operator 'KeyedProcess', subtask 1/1"


def test_an_author_may_have_a_module_whose_name_resembles_ours(cluster):
    """Frames are told apart by the package, not by a part of a name."""
    scope = {"__name__": "my_penstock_job", "MapFunction": MapFunction}
    code = textwrap.dedent("""
        class Opens(MapFunction):
            def open(self, runtime_context):
                raise RuntimeError("in my module")
            def map(self, value):
                raise RuntimeError("in my module")
    """)
    exec(compile(code, "my_penstock_job.py", "exec"), scope)
    with pytest.raises(UserFunctionError) as raised:
        cluster(lambda env: env.from_collection([1]).map(scope["Opens"]()).print())
    assert_only_the_authors(raised.value, "open")


def test_a_generator_function_of_a_source_is_the_authors(failure):
    def make(n):
        return divide(0)

    def build(env):
        source = DataGeneratorSource(make, count=1)
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").print()

    error = failure(build)
    assert_only_the_authors(error, "make", "divide", "deeper")
    assert error.origin.operator.startswith("Source: numbers")


def test_an_encoder_of_a_sink_is_the_authors(failure):
    def encode(value):
        return divide(value)

    def build(env):
        env.from_collection([0]).sink_to(
            FileSink.for_row_format("memory:///test-failure", encode).build()
        ).name("files")

    error = failure(build)
    assert_only_the_authors(error, "encode", "divide", "deeper")
    assert error.origin.operator == "files"


def test_the_subtask_and_the_parallelism_are_named(failure):
    error = failure(
        lambda env: env.from_collection([0]).rebalance().map(divide).print(), parallelism=3
    )
    assert str(error.origin) == "operator 'Map', subtask 1/3, record 0"


def test_a_cause_is_shown(failure):
    def wraps(value):
        try:
            divide(value)
        except ZeroDivisionError as error:
            raise ValueError("no ratio") from error

    error = failure(lambda env: env.from_collection([0]).map(wraps).print())
    assert error.message == "ValueError: no ratio"
    assert "ZeroDivisionError" in error.user_traceback
    assert "direct cause" in error.user_traceback


# --- records ----------------------------------------------------------------------------------


def test_a_long_record_is_cut(failure):
    error = failure(lambda env: env.from_collection(["x" * 1000]).map(divide).print())
    assert error.origin.record.startswith("'xxx")
    assert error.origin.record.endswith("... (1002 characters)")
    assert len(error.origin.record) < 300


def test_records_can_be_kept_out_of_messages(failure):
    secret = "4711"
    error = failure(
        lambda env: env.from_collection([secret]).map(divide).print(), redact_records=True
    )
    assert error.origin.record == "(redacted)"
    assert secret not in str(error)


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no repr")


def test_a_record_without_a_repr_does_not_hide_the_error(failure):
    error = failure(
        lambda env: env.from_collection([0]).map(lambda v: Unprintable()).map(divide).print()
    )
    assert error.message.startswith("TypeError")
    assert error.origin.record == "(its repr failed: no repr)"


# --- results of the wrong shape ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "name"), [("text", "str"), (b"bytes", "bytes"), ({"a": 1}, "dict")]
)
def test_what_looks_like_one_record_is_not_taken_apart(failure, result, name):
    error = failure(lambda env: env.from_collection([7]).flat_map(lambda v: result).print())
    assert isinstance(error, ResultShapeError)
    assert f"a {name} was returned where a list, a generator or None is expected" in str(error)
    assert "wrap it in a list" in str(error)
    assert str(error).endswith("in operator 'Flat Map', subtask 1/1, record 7")


def test_what_cannot_be_iterated_over_is_named(failure):
    error = failure(lambda env: env.from_collection([7]).flat_map(lambda v: v).print())
    assert isinstance(error, ResultShapeError)
    assert "'int' object is not iterable" in str(error)
    assert str(error).endswith("in operator 'Flat Map', subtask 1/1, record 7")


@pytest.mark.parametrize("result", [None, [], (), iter([]), {1}, range(0)])
def test_shapes_that_are_fine(cluster, result):
    running = cluster(
        lambda env: env.from_collection([7]).flat_map(lambda v: result).sink_to(CollectSink())
    ).run()
    assert running.failures() == []


@pytest.mark.parametrize("chosen", [3, -1, "0", None, 1.0, True])
def test_a_partition_out_of_range_is_named(failure, chosen):
    def build(env):
        stream = env.from_collection([7]).partition_custom(lambda key, count: chosen, one)
        stream.map(one).print()

    error = failure(build, parallelism=3)
    assert isinstance(error, ResultShapeError)
    assert f"the partitioner returned {chosen!r}, which is not a number from 0 to 2" in str(error)
    assert "record 7" in str(error)


# --- keys, records and state that cannot be ---------------------------------------------------


@pytest.mark.parametrize("key", [[1], {"a": 1}, {1}], ids=str)
def test_an_unhashable_key_is_located(failure, key):
    error = failure(lambda env: env.from_collection([7]).key_by(lambda v: key).reduce(max).print())
    assert isinstance(error, UnsupportedKeyError)
    assert f"unhashable type: '{type(key).__name__}'" in str(error)
    assert str(error).endswith("record 7")


def test_a_key_without_an_encoding_is_located(failure):
    error = failure(
        lambda env: env.from_collection([7]).key_by(lambda v: float("nan")).reduce(max).print()
    )
    assert isinstance(error, UnsupportedKeyError)
    assert "NaN" in str(error) and str(error).endswith("record 7")


def test_a_record_that_cannot_be_pickled_is_located(failure):
    error = failure(
        lambda env: env.from_collection([7]).map(lambda v: [lambda: v]).rebalance().print()
    )
    assert isinstance(error, RecordError)
    assert "a record of type list cannot be pickled" in str(error)
    assert "operator 'Map'" in str(error)


class WantsState(MapFunction):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def map(self, value):
        return value


def test_state_without_a_key_is_refused_by_name(cluster):
    with pytest.raises(StateError, match=r"operator 'Map' asks for keyed state 'seen' .* key_by"):
        cluster(lambda env: env.from_collection([1]).map(WantsState()).print())


# --- what is not a user's ---------------------------------------------------------------------


def test_a_mistake_of_ours_is_told_with_all_its_frames():
    try:
        divide(0)
    except ZeroDivisionError as error:
        told = explain(error, None, 0, 1, False)
    assert type(told) is PenstockError
    assert "ZeroDivisionError" in str(told) and "in deeper" in str(told)


def test_our_own_errors_stay_what_they_are():
    error = RecordError("too large")
    assert explain(error, None, 0, 1, False) is error


@pytest.mark.parametrize("redact", [False, True])
def test_a_record_that_cannot_be_read_is_redacted_on_request(cluster, tmp_path, redact):
    (tmp_path / "f").write_text('{"card": 1234}\n{"card": 5678\n')
    made = StreamFormat.json_line_format()

    def build(env):
        source = FileSource.for_record_stream_format(made, str(tmp_path)).build()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "cards")
        stream.sink_to(CollectSink())

    [error] = cluster(build, redact_records=redact).run().failures()
    error = pickle.loads(pickle.dumps(error))
    assert isinstance(error, RecordError) and error.message.startswith(f"{tmp_path}/f, line 2: ")
    assert ("5678" in str(error)) is not redact
