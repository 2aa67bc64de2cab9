"""Functions as sinks, and printing: what is called when, and where lines go."""

from __future__ import annotations

import pytest

from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, Types
from penstock.common.filesystem import filesystem_for
from penstock.connectors import PrintSink
from penstock.connectors.sink import WriterContext
from penstock.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    MapFunction,
    SinkFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.results import ClientResults
from penstock.datastream.state import ListStateDescriptor
from penstock.errors import ProgramError, UserFunctionError
from penstock.network.messages import Abort, Complete, Decline
from penstock.testing import local_environment


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
    results.flush()
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("out\n", "err\n")


# --- functions that take part in checkpoints --------------------------------------------------


class Held(SinkFunction, CheckpointedFunction, CheckpointListener):
    """Holds records back until the checkpoint that covers them is complete; each file is whole."""

    def __init__(self, directory):
        self.directory = directory
        self.heard = []

    def initialize_state(self, context):
        descriptor = ListStateDescriptor("pending", Types.PICKLED_BYTE_ARRAY())
        self.state = context.get_operator_state_store().get_list_state(descriptor)
        # What a checkpoint that was restored holds is covered by it.
        self.pending = list(self.state.get())
        self.records = []
        self.heard.append("restored" if context.is_restored() else "initialized")

    def open(self, context):
        self.heard.append("opened")
        self.subtask = context.subtask
        self._write(float("inf"))

    def invoke(self, value):
        self.records.append(value)

    def snapshot_state(self, context):
        if self.records:
            self.pending.append((context.get_checkpoint_id(), self.subtask, self.records))
            self.records = []
        self.state.update(self.pending)

    def notify_checkpoint_complete(self, checkpoint_id):
        self.heard.append(("complete", checkpoint_id))
        self._write(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id):
        self.heard.append(("aborted", checkpoint_id))

    def _write(self, upto):
        covered = [part for part in self.pending if part[0] <= upto]
        self.pending = [part for part in self.pending if part[0] > upto]
        for checkpoint, subtask, records in covered:
            fs, path = filesystem_for(f"{self.directory}/{checkpoint}-{subtask}")
            fs.create(path, " ".join(map(str, records)).encode())


def test_a_sink_function_hears_of_its_checkpoints_and_keeps_state(cluster, tmp_path):
    sink = Held(str(tmp_path / "out"))

    def build(env):
        env.from_collection(range(100)).add_sink(sink)

    store = CheckpointStore(str(tmp_path), "job")
    running = cluster(build, share_functions=True, store=store, step_records=1)
    for checkpoint in (1, 2, 3):
        for _ in range(6):
            running.turn()
        running.trigger(checkpoint)
        running.turn()
    assert sink.heard == ["initialized", "opened"]
    running.tell(Abort(running.ATTEMPT, 1))
    running.tell(Complete(running.ATTEMPT, 2))
    running.tell(Complete(running.ATTEMPT, 2))
    assert sink.heard[2:] == [("aborted", 1), ("complete", 2)], "each once"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["1-0", "2-0"]
    written = [path.read_text().split() for path in sorted((tmp_path / "out").iterdir())]
    # Whoever goes on from checkpoint 3 has what nobody had written.
    snapshots = {tuple(subtask): snapshot for subtask, snapshot in running.snapshots(3).items()}
    cluster(build, share_functions=True, store=store, restored=snapshots)
    assert sink.heard[-2:] == ["restored", "opened"]
    third = (tmp_path / "out" / "3-0").read_text().split()
    found = [*written[0], *written[1], *third]
    assert found and found == [str(n) for n in range(len(found))]


class RefusingSink(Held):
    def snapshot_state(self, context):
        raise OSError("no snapshot today")


def test_a_sink_function_that_cannot_be_saved_declines_the_checkpoint(cluster, tmp_path):
    def build(env):
        env.from_collection(range(100)).add_sink(RefusingSink(str(tmp_path))).name("held")

    store = CheckpointStore(str(tmp_path), "job")
    running = cluster(build, share_functions=True, store=store, step_records=1)
    running.turn()
    running.trigger(1)
    running.turn()
    [declined] = running.of(Decline)
    assert declined.reason.endswith(
        "operator 'held': snapshot_state raised OSError: no snapshot today"
    )


@pytest.mark.parametrize("parallelism", [1, 3])
def test_held_records_survive_a_failure_and_are_written_once(parallelism):
    configuration = Configuration.from_dict({"execution.checkpointing.interval": "10 ms"})
    with local_environment(seed=3, configuration=configuration) as env:
        env.set_parallelism(parallelism)
        numbers = env.from_collection(range(3000)).rebalance().map(FailOnce())
        numbers.add_sink(Held(f"{env.storage}/out"))
        env.execute()
        assert env.simulation.restored, "it went back to a checkpoint"
        files = env.filesystem.files
        found = [w for path in files if path.startswith("/out/") for w in files[path].split()]
    assert sorted(map(int, found)) == list(range(3000))


class FailOnce(MapFunction):
    """Raises at one record of the first attempt."""

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        if value == 2500 and self.attempt == 0:
            raise RuntimeError("out of luck")
        return value


def test_without_checkpoints_no_state_is_asked_for(cluster, tmp_path):
    sink = RefusingSink(str(tmp_path))
    assert run(cluster, sink).ended()
    assert sink.heard == ["initialized", "opened"]
