"""Functions as sinks, and printing: what is called when, and where lines go."""

from __future__ import annotations

import pytest

from penstock.connectors import PrintSink
from penstock.connectors.sink import WriterContext
from penstock.datastream import SinkFunction, StreamExecutionEnvironment
from penstock.datastream.results import ClientResults
from penstock.errors import ProgramError, UserFunctionError


class Recording(SinkFunction):
    def __init__(self):
        self.calls = []

    def open(self, context):
        assert isinstance(context, WriterContext)
        self.calls.append(("open", context.subtask))

    def invoke(self, value):
        self.calls.append(value)

    def flush(self):
        if self.calls[-1] != "flush":
            self.calls.append("flush")

    def close(self):
        self.calls.append("close")


def run(cluster, sink):
    def build(env):
        env.from_collection([1, 2, 3]).add_sink(sink)

    return cluster(build, share_functions=True).run()


def test_a_function_gets_every_record(cluster):
    got = []
    running = run(cluster, got.append)
    assert got == [1, 2, 3] and running.ended()


def test_an_object_is_opened_flushed_and_closed(cluster):
    sink = Recording()
    running = run(cluster, sink)
    running.slots[0].close()
    calls = [call for call in sink.calls if call != "flush"]
    assert calls == [("open", 0), 1, 2, 3, "close"]
    assert "flush" in sink.calls[sink.calls.index(3) :]


def test_an_object_needs_only_invoke(cluster):
    class Plain:
        def __init__(self):
            self.got = []

        def invoke(self, value):
            self.got.append(value)

    sink = Plain()
    assert run(cluster, sink).ended() and sink.got == [1, 2, 3]


def test_a_checkpoint_flushes_before_it_is_taken(cluster, tmp_path):
    from penstock.checkpoint.store import CheckpointStore

    sink = Recording()

    def build(env):
        env.from_collection(range(100)).add_sink(sink)

    store = CheckpointStore(str(tmp_path), "job")
    running = cluster(build, share_functions=True, store=store, step_records=1)
    for _ in range(6):
        running.turn()
    running.trigger(1)
    running.turn()
    assert sink.calls[-1] == "flush" and not running.ended()


def test_a_function_that_raises_is_shown_with_its_record(cluster):
    def explode(value):
        raise ValueError(f"cannot write {value}")

    [error] = run(cluster, explode).failures()
    assert isinstance(error, UserFunctionError)
    assert "cannot write 1" in str(error) and error.origin.record == "1"


def test_a_sink_may_be_added_too(cluster):
    running = run(cluster, PrintSink("id"))
    assert running.ended() and not running.failures()


@pytest.mark.parametrize("wrong", [None, 7, "print", object()])
def test_what_cannot_be_called_is_refused(wrong):
    stream = StreamExecutionEnvironment().from_collection([1])
    with pytest.raises(ProgramError, match=r"add_sink\(\) needs a function or an object"):
        stream.add_sink(wrong)


def test_printing_goes_where_the_sink_says(capsys):
    results = ClientResults(None, frozenset({"errors"}))
    results.deliver("lines", 0, ["out"])
    results.deliver("errors", 0, ["err"])
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("out\n", "err\n")
