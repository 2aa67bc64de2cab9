"""Checkpoints that have the files of a RocksDB database."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle
from penstock.checkpoint.parts import keyed_files
from penstock.checkpoint.segment_names import SegmentName
from penstock.checkpoint.store import CheckpointStore
from penstock.common import Types
from penstock.common.clock import SystemClock
from penstock.common.keys import groups_of_subtask, key_group
from penstock.common.settings import StateSettings
from penstock.common.time import Time
from penstock.datastream.state import (
    ListStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.errors import CorruptCheckpointError, StateError, StorageError
from penstock.inspection.catalog import StateInfo
from penstock.inspection.entries import StatePart, parts_of
from penstock.runtime.compaction import Compaction
from penstock.runtime.operator_cut import OperatorCut
from penstock.runtime.segment_chain import ChainSettings, SegmentChain
from penstock.state.compaction import Merging
from penstock.state.hashmap import HashMapBackend
from penstock.state.keyed_parts import keyed_parts
from penstock.state.kinds import KeyContext
from penstock.state.rocksdb import RocksDBBackend
from penstock.state.segments import Origin
from penstock.state.timers import KIND as TIMERS
from penstock.state.timers import TimerQueue
from penstock.state_api.writing import CopyPart, Target

MOST = 16
COUNT = ValueStateDescriptor("count", Types.LONG())
SEEN = ListStateDescriptor("seen", Types.STRING())
Handles = tuple[SegmentHandle, ...]


class Subtask:
    """An operator's keyed state in one subtask, with its chain of segments."""

    def __init__(self, store: CheckpointStore, folder: Path, index: int = 0, of: int = 1) -> None:
        self.store, self.folder, self.index, self.of = store, folder, index, of
        self.groups = groups_of_subtask(index, MOST, of)
        self.context = KeyContext()
        # Left alone, RocksDB would merge files this small into one all the time.
        self.settings = StateSettings(
            "rocksdb", str(folder), managed=0, files_from=0, merges_files=False
        )
        self.backend = RocksDBBackend(self.context, MOST, SystemClock(), self.settings)
        self.chain = SegmentChain(ChainSettings())
        self.attempt = 1

    def put(self, key: Any, number: int) -> None:
        self.context.key = key
        self.backend.get_state(COUNT).update(number)
        self.backend.get_state(SEEN).add(str(number))

    def remove(self, key: Any) -> None:
        self.context.key = key
        self.backend.get_state(COUNT).clear()
        self.backend.get_state(SEEN).clear()

    def content(self) -> dict[Any, tuple[Any, list[str]]]:
        counts = self.backend.table("count", "value").entries.items()
        found = {}
        for key, _ in list(counts):
            self.context.key = key
            seen = list(self.backend.get_state(SEEN).get())
            found[key] = (self.backend.get_state(COUNT).value(), seen)
        return found

    def cut(self, number: int) -> OperatorCut:
        base = self.chain.base()
        captured = self.backend.cut(number, full=not base, files=True)
        return OperatorCut(
            "uid",
            number,
            base=base,
            blocks=captured,
            groups=self.groups,
            files=captured.files,
            stored_files=self.chain.files(),
            origin=Origin(self.index, self.of, "rocksdb"),
        )

    def checkpoint(self, number: int, confirmed: bool = True) -> tuple[Handles, int]:
        name = SegmentName(self.attempt, number, self.index, f"op of {self.of}")
        stored = self.cut(number).store(self.store, name)
        snapshot, size = stored.snapshot, stored.size
        self.chain.stored(number, snapshot.segments)
        if confirmed:
            self.backend.confirm(number)
            self.chain.confirm(number)
        return snapshot.segments, size

    def restore(self, handles: Handles, attempt: int = 2) -> bool:
        self.attempt = attempt
        goes_on = True
        for part in keyed_parts(keyed_files(handles, self.store, self.groups)):
            self.backend.restore(part.own_blocks(self.groups))
            if part.database is not None:
                goes_on &= self.backend.restore_database(part.database, self.groups)
        own = (self.groups.start, self.groups.stop - 1)
        if goes_on and all((h.first_group, h.last_group) == own for h in handles):
            self.chain.restored(handles)
        return goes_on

    def links(self) -> list[str]:
        return [path.name for path in self.folder.glob("*/cut-*")]


def files_of(handles: Handles) -> list[str]:
    return [handle.file for handle in handles if handle.file.endswith(".sst")]


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(str(tmp_path / "checkpoints"), "job")


@pytest.fixture
def make(store: CheckpointStore, tmp_path: Path) -> Any:
    made: list[Subtask] = []

    def subtask(index: int = 0, of: int = 1) -> Subtask:
        folder = tmp_path / f"local-{len(made)}"
        made.append(Subtask(store, folder, index, of))
        return made[-1]

    yield subtask
    for each in made:
        each.backend.close()


def test_a_subtask_goes_on_with_the_files_and_stores_only_new_ones(make):
    first = make()
    for key in range(2000):
        first.put(f"key-{key}", key)
    handles, full = first.checkpoint(1)
    described, *files = handles
    assert described.database and not described.file
    assert {h.database for h in files} == {described.database}
    assert {name.partition("-")[0] for name in (h.file for h in files)} >= {"CURRENT", "MANIFEST"}
    assert first.links() == []

    copy, second = make(), make()
    assert copy.restore(handles) and second.restore(handles)
    assert copy.content() == first.content()
    for key in range(20):
        second.put(f"key-{key}", -key)
    deltas, small = second.checkpoint(2)
    assert deltas[: len(handles)] == handles, "a delta upon the same database"
    assert len(deltas) == len(handles) + 1 and small < full / 20
    for number in range(3, 40):
        for key in range(400):
            second.put(f"key-{key}", number)
        again, size = second.checkpoint(number)
        if again[0].database != described.database:
            break
    # As much as the database in deltas: a new one, with the old one's files.
    shared = {h.path for h in again if h.file} & {h.path for h in files}
    assert shared and {h.database for h in again} == {again[0].database}
    assert size == sum(h.size for h in again if h.path not in shared)

    third = make()
    assert third.restore(again)
    assert third.content() == second.content()


def test_what_a_checkpoint_that_came_to_nothing_has_stored_is_stored_again(make):
    subtask = make()
    subtask.put("a", 1)
    failed, _ = subtask.checkpoint(1, confirmed=False)
    handles, size = subtask.checkpoint(2)
    assert files_of(failed) and size == sum(handle.size for handle in handles)
    assert not {h.path for h in handles} & {h.path for h in failed}


def test_removed_keys_stay_removed(make):
    first = make()
    for key in range(100):
        first.put(key, key)
    first.checkpoint(1)
    for key in range(0, 100, 2):
        first.remove(key)
    handles, _ = first.checkpoint(2)
    second = make()
    second.restore(handles)
    assert sorted(second.content()) == list(range(1, 100, 2))


def test_timers_are_in_the_segment_beside_the_files(make):
    first = make()
    queue = TimerQueue(first.backend.table("__event_timers", TIMERS))
    queue.register("a", 7)
    queue.register("b", 3)
    first.put("a", 1)
    handles, _ = first.checkpoint(1)
    second = make()
    second.restore(handles)
    restored = TimerQueue(second.backend.table("__event_timers", TIMERS))
    assert [restored.pop_due(10) for _ in range(2)] == [(3, "b"), (7, "a")]


@pytest.mark.parametrize("old", [1, 2, 3])
@pytest.mark.parametrize("new", [1, 2, 5])
def test_any_number_of_subtasks_gets_its_key_groups(make, old, new):
    before = [make(index, old) for index in range(old)]
    expected = {}
    for key in range(300):
        owner = next(s for s in before if key_group(key, MOST) in s.groups)
        owner.put(key, key)
        expected[key] = (key, [str(key)])
    handles = tuple(h for s in before for h in s.checkpoint(1)[0])
    # Something upon the files, too.
    for subtask in before:
        key = next(k for k in range(300) if key_group(k, MOST) in subtask.groups)
        subtask.put(key, -1)
        expected[key] = (-1, [str(key), "-1"])
    handles = tuple(h for s in before for h in s.checkpoint(2)[0])
    found: dict[Any, Any] = {}
    for index in range(new):
        subtask = make(index, new)
        subtask.restore(tuple(h for h in handles if h.overlaps(subtask.groups)))
        mine = subtask.content()
        assert {key_group(key, MOST) for key in mine} <= set(subtask.groups)
        found |= mine
        # What it has now it can write, and another reads that.
        subtask.put(next(k for k in range(300, 999) if key_group(k, MOST) in subtask.groups), 1)
        written, _ = subtask.checkpoint(3)
        copy = make(index, new)
        copy.restore(written)
        assert copy.content() == subtask.content()
    assert found == expected


def test_tables_have_the_places_that_their_own_database_gave_them(make):
    first, second = make(0, 2), make(1, 2)
    keys = {s: [k for k in range(60) if key_group(k, MOST) in s.groups] for s in (first, second)}
    # The second one declares its states the other way round.
    second.context.key = keys[second][0]
    second.backend.get_state(SEEN)
    for subtask, own in keys.items():
        for key in own:
            subtask.put(key, key)
    handles = tuple(h for s in (first, second) for h in s.checkpoint(1)[0])
    one = make()
    assert not one.restore(handles), "one of two databases is read"
    assert one.content() == {key: (key, [str(key)]) for key in range(60)}
    assert one.chain.base() == ()


def test_types_that_differ_between_subtasks_become_one(make):
    first, second = make(0, 2), make(1, 2)
    whole, real = (ValueStateDescriptor("count", kind) for kind in (Types.INT(), Types.DOUBLE()))
    keys = {s: [k for k in range(60) if key_group(k, MOST) in s.groups] for s in (first, second)}
    first.backend._settings = replace(first.settings, files_from=1 << 30)
    for key in keys[first]:
        first.context.key = key
        first.backend.get_state(real).update(float(key))
    for key in keys[second]:
        second.context.key = key
        second.backend.get_state(whole).update(key)
    handles = tuple(h for s in (first, second) for h in s.checkpoint(1)[0])
    assert {bool(handle.database) for handle in handles} == {False, True}
    one = make()
    one.restore(handles)
    found = dict(one.backend.table("count", "value").entries.items())
    assert found == {key: float(key) for key in range(60)}
    assert {type(value) for value in found.values()} == {float}


def test_without_enough_in_it_and_in_a_savepoint_there_are_entries(make):
    subtask = make()
    subtask.put("a", 1)
    assert subtask.backend.whole().files is None
    subtask.backend._settings = replace(subtask.settings, files_from=1 << 30)
    assert subtask.cut(2).files is None
    subtask.backend._settings = subtask.settings
    cut = subtask.cut(3)
    assert cut.files is not None and subtask.links()
    cut.files.discard()


def test_before_anything_was_written_there_are_no_files(make):
    assert make().cut(1).files is None


def test_what_expires_in_full_snapshots_is_not_shipped_in_files(make):
    subtask = make()
    ttl = StateTtlConfig.new_builder(Time.hours(1)).cleanup_full_snapshot().build()
    expiring = ValueStateDescriptor("expiring", Types.LONG())
    expiring.enable_time_to_live(ttl)
    subtask.context.key = "a"
    subtask.backend.get_state(expiring).update(1)
    assert subtask.cut(1).files is None


def test_links_go_whatever_happens(make, monkeypatch):
    subtask = make()
    subtask.put("a", 1)
    cut = subtask.cut(1)
    assert subtask.links()

    def refuse(self: Any, name: str, *parts: bytes) -> str:
        raise StorageError("full")

    monkeypatch.setattr(CheckpointStore, "write_segment", refuse)
    with pytest.raises(StorageError, match="full"):
        cut.store(subtask.store, SegmentName(1, 1, 0, "op"))
    assert subtask.links() == []


@pytest.mark.parametrize("damage", ["cut short", "altered", "missing"])
def test_a_damaged_file_is_noticed_and_leaves_nothing_behind(make, damage, tmp_path):
    first = make()
    for key in range(100):
        first.put(key, key)
    handles, _ = first.checkpoint(1)
    [path] = (tmp_path / "checkpoints" / "job" / h.path for h in handles if h.file.endswith(".sst"))
    data = path.read_bytes()
    path.unlink()
    if damage != "missing":
        altered = data[:50] + bytes([data[50] ^ 1]) + data[51:]
        path.write_bytes(data[:-1] if damage == "cut short" else altered)
    second = make()
    with pytest.raises((CorruptCheckpointError, StorageError), match=path.name):
        second.restore(handles)
    assert list(second.folder.iterdir()) == []


def test_a_database_is_not_merged_with_deltas(make):
    subtask = make()
    for key in range(3000):
        subtask.put(key, key)
    subtask.checkpoint(1)
    for number in range(2, 12):
        subtask.put(number, number)
        handles, _ = subtask.checkpoint(number)
    old, how = subtask.chain.begin_compaction()
    assert how is Merging.NEWEST and len(old) >= 8
    assert all(not handle.database for handle in old)
    assert handles[: len(handles) - len(old)] == tuple(h for h in handles if h.database)


def test_whoever_looks_inside_finds_the_entries(make, store, tmp_path):
    subtask = make()
    for key in range(50):
        subtask.put(key, key)
    subtask.checkpoint(1)
    subtask.put(7, -7)
    subtask.remove(8)
    handles, _ = subtask.checkpoint(2)
    part = StatePart(store, handles, "count", Types.LONG(), range(MOST), trust=True)
    expected = {key: -7 if key == 7 else key for key in range(50) if key != 8}
    assert dict(part.entries()) == expected
    group = key_group(7, MOST)
    assert dict(replace(part, groups=range(group, group + 1)).entries())[7] == -7

    # And a copy of it is for any backend.
    target = Target(CheckpointStore(str(tmp_path / "savepoint"), "s"), "uid", 1, MOST)
    [(_, copied)] = CopyPart(store, handles, target, 0, frozenset())()
    assert not copied.database
    live = HashMapBackend(KeyContext(), MOST)
    for each in keyed_parts(keyed_files([copied], target.store, range(MOST))):
        assert each.origin.backend == ""
        live.restore(each.own_blocks(range(MOST)))
    assert dict(live.table("count", "value").entries) == expected
    live = HashMapBackend(KeyContext(), MOST)
    for each in keyed_parts(keyed_files(handles, store, range(MOST))):
        live.restore(each.own_blocks(range(MOST)))
        if each.database is not None:
            assert live.restore_database(each.database, range(MOST)) is False
    assert dict(live.table("count", "value").entries) == expected


def test_tables_are_described_as_they_were_at_the_cut(make):
    first = make()
    for key in range(50):
        first.context.key = key
        first.backend.get_state(COUNT).update(key)
    cut = first.cut(1)
    # Before it is stored a state is declared.
    first.context.key = 0
    first.backend.get_state(SEEN).add("late")
    snapshot = cut.store(first.store, SegmentName(1, 1, 0, "op")).snapshot
    assert [handle.states for handle in snapshot.segments if not handle.file] == [
        (("count", "value"),)
    ]


def test_a_state_that_is_only_in_a_delta_is_found(make, store):
    subtask = make()
    for key in range(50):
        subtask.context.key = key
        subtask.backend.get_state(COUNT).update(key)
    subtask.checkpoint(1)
    subtask.context.key = 7
    subtask.backend.get_state(SEEN).add("late")
    handles, _ = subtask.checkpoint(2)
    saved = SimpleNamespace(
        parts=[OperatorSnapshot(handles)], vertex=SimpleNamespace(max_parallelism=MOST)
    )
    catalog = SimpleNamespace(saved=lambda uid: saved, snapshot=SimpleNamespace(store=store))
    found = StateInfo("seen", "list", Types.LIST(Types.STRING()), 0, True)
    [part] = parts_of(catalog, "uid", found, trust=True)
    assert dict(part.entries()) == {7: ["late"]}


def test_a_state_that_grows_comes_to_have_files(make):
    subtask = make()
    subtask.backend._settings = replace(subtask.settings, files_from=300_000)
    io = SimpleNamespace(submit=lambda work, done: done(work(), None))
    for number in range(1, 60):
        for key in range(100 * number, 100 * number + 200):
            subtask.put(f"key-{key}", key)
        handles, _ = subtask.checkpoint(number)
        if number == 1:
            assert not files_of(handles)
        compaction = Compaction(
            subtask.chain, subtask.store, io, subtask.groups, Origin(backend="rocksdb")
        )
        compaction.start(f"1-{number}-0-op-merged", subtask.backend.ships_files())
        if files_of(handles):
            break
    assert files_of(handles)
    copy = make()
    assert copy.restore(handles)
    assert copy.content() == subtask.content()


def test_of_files_that_are_mostly_others_entries_are_read(make):
    first = make()
    for key in range(2000):
        first.put(f"key-{key}", key)
    handles, size = first.checkpoint(1)
    written = 0
    for index in range(8):
        subtask = make(index, 8)
        assert not subtask.restore(handles)
        written += subtask.checkpoint(2)[1]
        assert [path.name.startswith("penstock-rocksdb-") for path in subtask.folder.iterdir()] == [
            True
        ], "the copy is gone"
    assert written < 3 * size


def test_an_emptied_state_may_change_its_type(make):
    first = make()
    first.put("a", 1)
    first.context.key = "b"
    other = ValueStateDescriptor("other", Types.LONG())
    first.backend.get_state(other).update(1)
    first.backend.get_state(other).clear()
    handles, _ = first.checkpoint(1)
    assert files_of(handles)
    second = make()
    second.restore(handles)
    second.context.key = "b"
    text = second.backend.get_state(ValueStateDescriptor("other", Types.STRING()))
    assert text.value() is None
    text.update("x")
    handles, _ = second.checkpoint(2)
    third = make()
    third.restore(handles)
    third.context.key = "b"
    assert third.backend.get_state(ValueStateDescriptor("other", Types.STRING())).value() == "x"


class Gone:
    """Of a module that is not there where it is read."""


def test_what_cannot_be_read_says_why(make, monkeypatch):
    first = make()
    first.context.key = "a"
    first.backend.get_state(ValueStateDescriptor("v", Types.PICKLED_BYTE_ARRAY())).update(Gone())
    handles, _ = first.checkpoint(1)
    [part] = keyed_parts(keyed_files(handles, first.store, range(MOST)))
    with monkeypatch.context() as patch:
        patch.delattr(f"{__name__}.Gone")
        with pytest.raises(StateError, match="state 'v' has pickled objects that cannot be read"):
            list(part.blocks(range(MOST)))
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(StateError, match=r"pip install \"penstock\[rocksdb\]\""):
            list(part.blocks(range(MOST)))

    def full(self: Any, mode: str) -> int:
        raise OSError(28, "No space left on device")

    second = make()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(StorageError, match=r"No space left.*localdir says where"):
            second.restore(handles)
    assert list(second.folder.iterdir()) == []


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_whatever_is_done_the_state_is_that_of_the_last_checkpoint(seed, tmp_path_factory):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("model")
    store = CheckpointStore(str(folder / "checkpoints"), "job")
    live = Subtask(store, folder / "0")
    model: dict[Any, tuple[Any, list[str]]] = {}
    saved: tuple[Handles, dict[Any, Any]] = ((), {})
    for step in range(1, 60):
        what = rng.random()
        if what < 0.7:
            for _ in range(rng.choice((1, 5, 40))):
                key = rng.choice((rng.randrange(30), f"k{rng.randrange(30)}"))
                if rng.random() < 0.2:
                    live.remove(key)
                    model.pop(key, None)
                else:
                    live.put(key, step)
                    before = model.get(key, (0, []))[1]
                    model[key] = (step, [*before, str(step)])
        elif what < 0.9:
            confirmed = rng.random() < 0.8
            handles, _ = live.checkpoint(step, confirmed)
            if confirmed:
                saved = (handles, dict(model))
        else:
            live.backend.close()
            attempt = live.attempt + 1
            live = Subtask(store, folder / str(step))
            live.restore(saved[0], attempt)
            model = dict(saved[1])
            assert live.content() == model
    assert live.content() == model
    live.backend.close()
