"""Folders that are watched: every file once, also across restarts and under faults."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import random
from dataclasses import replace

import pytest

from penstock.checkpoint.coordinator import CheckpointMode, CheckpointSettings
from penstock.checkpoint.store import CheckpointStore
from penstock.common import WatermarkStrategy, plain
from penstock.common.job_status import JobStatus
from penstock.common.typeinfo import Types
from penstock.connectors.client_sinks import CollectSink
from penstock.connectors.file_discovery import DiscoveringEnumerator
from penstock.connectors.file_source import FilesSource
from penstock.connectors.line_format import LineFormat
from penstock.connectors.source import EnumeratorContext, splits_for
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.errors import ProgramError, StorageError
from penstock.jobmanager.restart import FixedDelayRestart
from penstock.testing.faults import FaultRates, FaultyFileSystem
from penstock.testing.simulator import Simulation

SECOND = 1_000_000_000


def stored(value):
    return plain.decode(json.loads(json.dumps(plain.encode(value, "enumerator state"))))


class Folder:
    """A folder with a clock, and enumerators that watch it."""

    def __init__(self, path):
        self.path = path
        self.now = 1_000_000 * SECOND
        self.fail = False

    def put(self, name, text="x", age=100):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        modified = self.now - age * SECOND
        os.utime(path, ns=(modified, modified))

    def cut(self, files):
        if self.fail:
            raise StorageError("cannot cut")
        return [os.path.basename(file) for file in files]

    def enumerator(self, restored=None):
        return DiscoveringEnumerator([str(self.path)], self.cut, 10_000, restored, lambda: self.now)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def drain(enumerator, subtask=0):
    found = []
    while more := splits_for(enumerator, subtask):
        found += more
    return found


def test_new_files_are_found_and_old_ones_not_again(folder):
    folder.put("a")
    watching = folder.enumerator()
    assert drain(watching) == ["a"]
    assert drain(watching) == []
    folder.put("b")
    folder.put("deep/er/c")
    folder.put(".hidden")
    folder.put("_tmp/d")
    assert sorted(drain(watching)) == ["b", "c"]
    assert drain(watching) == []


def test_files_come_in_the_order_in_which_they_were_changed(folder):
    for name, age in (("a", 50), ("b", 70), ("c", 60), ("d", 70)):
        folder.put(name, age=age)
    assert drain(folder.enumerator()) == ["b", "d", "c", "a"]


def test_a_reader_asks_again_only_when_there_was_nothing(folder):
    folder.put("a")
    watching = folder.enumerator()
    assert watching.ask_again_ms(0) is None
    assert splits_for(watching, 0) == ["a"] and watching.ask_again_ms(0) is None
    assert splits_for(watching, 0) == [] and watching.ask_again_ms(0) == 10_000
    assert watching.ask_again_ms(1) is None


def test_one_look_serves_a_round_of_questions(folder, monkeypatch):
    looks = []
    watching = folder.enumerator()
    look = watching.look
    monkeypatch.setattr(watching, "look", lambda: (looks.append(1), look())[1])
    for _ in range(5):
        for subtask in range(4):
            assert splits_for(watching, subtask) == []
    assert len(looks) == 5


def test_a_file_that_is_being_written_is_left_alone(folder):
    watching = folder.enumerator()
    folder.put("a", "1", age=1)
    assert drain(watching) == []
    folder.now += 2 * SECOND
    folder.put("a", "12", age=0)
    assert drain(watching) == []
    assert drain(watching) == ["a"], "it did not change between two looks"
    folder.put("b", age=11)
    assert drain(watching) == ["b"], "moved here, long finished"


def test_a_file_with_a_time_in_the_future_is_read_all_the_same(folder):
    watching = folder.enumerator()
    folder.put("a", age=-1000)
    assert (drain(watching), drain(watching), drain(watching)) == ([], ["a"], [])


def test_a_replaced_file_is_a_new_one(folder):
    watching = folder.enumerator()
    folder.put("a", "old")
    assert drain(watching) == ["a"]
    folder.put("a", "newer", age=50)
    assert drain(watching) == ["a"]


def test_deleted_files_are_forgotten(folder):
    watching = folder.enumerator()
    folder.put("a")
    drain(watching)
    (folder.path / "a").unlink()
    drain(watching)
    assert watching.snapshot() == {"seen": {}, "left": []}


def test_a_file_that_could_not_be_cut_is_not_lost(folder):
    watching = folder.enumerator()
    folder.put("a")
    folder.fail = True
    with pytest.raises(StorageError):
        splits_for(watching, 0)
    folder.fail = False
    assert drain(folder.enumerator(stored(watching.snapshot()))) == ["a"]


def test_the_folder_going_away_is_an_error_and_forgets_nothing(folder, tmp_path):
    folder.path = tmp_path / "in"
    folder.put("a")
    watching = folder.enumerator()
    assert drain(watching) == ["a"]
    (tmp_path / "in").rename(tmp_path / "away")
    with pytest.raises(ProgramError, match="there is no file or folder"):
        splits_for(watching, 0)
    (tmp_path / "away").rename(tmp_path / "in")
    assert drain(folder.enumerator(stored(watching.snapshot()))) == []


def test_every_file_once_across_restarts(folder):
    rng = random.Random(7)
    watching, handed, count = folder.enumerator(), [], 0
    for _ in range(300):
        action = rng.random()
        if action < 0.4:
            folder.put(f"f{count}")
            count += 1
        elif action < 0.8:
            handed += watching.next_splits(rng.randrange(3))
        else:
            watching = folder.enumerator(stored(watching.snapshot()))
    for subtask in range(3):
        handed += drain(watching, subtask)
    handed += drain(watching)
    assert sorted(handed) == sorted(f"f{n}" for n in range(count))


@pytest.mark.parametrize("interval", [0.25, datetime.timedelta(milliseconds=250)])
def test_monitoring_by_the_builder(tmp_path, interval):
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    source = builder.monitor_continuously(interval).build()
    watching = source.create_enumerator(EnumeratorContext(1), None)
    assert splits_for(watching, 0) == [] and watching.ask_again_ms(0) == 250
    bounded = builder.process_static_file_set().build()
    assert bounded.create_enumerator(EnumeratorContext(1), None).next_splits(0) is None


# --- a whole job ------------------------------------------------------------------------------


class Ending(FilesSource):
    """Watches a folder until it has seen a number of files, and adds one at every look."""

    def __init__(self, path, files):
        super().__init__([path], LineFormat(), interval_ms=40)
        self.path, self.files = path, files

    def create_enumerator(self, context, restored):
        return EndingEnumerator(super().create_enumerator(context, restored), self)


class EndingEnumerator:
    def __init__(self, inner, source):
        self.inner, self.source = inner, source
        self.must_look, self.found = inner.must_look, inner.found
        self.snapshot, self.ask_again_ms = inner.snapshot, inner.ask_again_ms
        self.check, self.waited_for = inner.check, inner.waited_for

    def close(self):
        pass

    def look(self):
        count = len(os.listdir(self.source.path))
        if count < self.source.files:
            path = os.path.join(self.source.path, f"f{count:03}")
            with open(path, "w") as file:
                file.writelines(f"{count}-{n}\n" for n in range(5))
            os.utime(path, (1, 1))
        return self.inner.look()

    def next_splits(self, subtask):
        splits = self.inner.next_splits(subtask)
        done = len(self.inner._seen) >= self.source.files
        return None if done and not splits else splits


@pytest.mark.parametrize("seed", range(25))
def test_a_watching_job_reads_every_file_once_whatever_breaks(tmp_path, seed, caplog):
    caplog.set_level("CRITICAL", logger="penstock")
    (tmp_path / "in").mkdir()
    rates = FaultRates(crash=0.002, crash_soon=0.2, storage_error=0.01, freeze=0.0005, budget=4)
    filesystem = FaultyFileSystem(random.Random(seed), rates)
    env = StreamExecutionEnvironment().set_parallelism(2)
    source = Ending(str(tmp_path / "in"), 12)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "files", Types.STRING())
    stream.sink_to(CollectSink()).uid("collect")
    job = replace(
        env._assemble("watch"),
        id=f"{seed:032x}",
        checkpoints=CheckpointSettings(20, CheckpointMode.EXACTLY_ONCE, 5000, 1),
        store=CheckpointStore(f"{filesystem.uri}/checkpoints", f"{seed:032x}"),
        restart=FixedDelayRestart(2**31, 10),
    )
    simulation = Simulation(seed, job, rates, filesystem)
    simulation.run()
    filesystem.forget()
    assert simulation.master.status is JobStatus.FINISHED, simulation.master.error
    subtasks = simulation.delivered["collect"].values()
    lines = sorted(pickle.loads(value) for values in subtasks for value in values)
    assert lines == sorted(f"{file}-{n}" for file in range(12) for n in range(5))
