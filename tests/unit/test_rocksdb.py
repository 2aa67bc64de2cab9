"""The rocksdb backend: state that is larger than the memory it may take."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Types
from penstock.common.clock import SystemClock
from penstock.common.settings import StateSettings
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.errors import ConfigurationError
from penstock.state import choice
from penstock.state.generations import Generations
from penstock.state.kinds import KeyContext
from penstock.state.rocks_database import RocksDatabase
from penstock.state.rocks_entries import RocksEntries
from penstock.state.rocksdb import RocksDBBackend
from penstock.state.segments import decode_segment, encode_segment

COUNT = ValueStateDescriptor("count", Types.LONG())
SEEN = ListStateDescriptor("seen", Types.LONG())


class Rocks:
    """A backend with little memory, in a directory that can be looked at."""

    def __init__(self, folder, memory=64 << 10):
        self.context = KeyContext()
        self.settings = StateSettings("rocksdb", str(folder), memory, write_buffer_size=64 << 10)
        self.backend = RocksDBBackend(self.context, 128, SystemClock(), self.settings)

    def count(self, key):
        self.context.key = key
        return self.backend.get_state(COUNT)

    def seen(self, key):
        self.context.key = key
        return self.backend.get_state(SEEN)

    def cached(self):
        return sum(dict.__len__(entries) for _, entries in self.backend._tables.values())


@pytest.fixture
def rocks(tmp_path):
    rocks = Rocks(tmp_path)
    yield rocks
    rocks.backend.close()


def test_going_through_a_table_finds_what_is_there_when_it_is_reached(rocks):
    """Though it is read some entries at a time, and goes on after others have been worked on."""
    for key in range(3000):
        rocks.count(key).update(key)
    entries = rocks.backend.table("count", "value").entries
    entries.flush()
    through = iter(entries.in_turn())
    first = {key for key, _ in (next(through) for _ in range(rocks.cached() + 10))}
    changed = [key for key in range(3000) if key not in first]
    for key in changed[::3]:
        rocks.count(key).update(-key)
    for key in changed[1::3]:
        rocks.count(key).clear()
    rocks.count(next(iter(first))).value()
    entries.flush()
    rest = dict(through)
    assert {key: rest[key] for key in changed[::3]} == {key: -key for key in changed[::3]}
    assert not set(changed[1::3]) & set(rest)


def test_state_many_times_its_memory_is_all_there(rocks, tmp_path):
    rounds, keys = 3, 5000
    for number in range(rounds):
        for key in range(keys):
            count = rocks.count(key)
            count.update((count.value() or 0) + 1)
            rocks.seen(key).add(number)
            assert rocks.cached() < keys / 10
    assert rocks.backend.database.size() > 4 * rocks.settings.objects()
    for key in range(keys):
        assert rocks.count(key).value() == rounds
        assert list(rocks.seen(key).get()) == list(range(rounds))

    segment = encode_segment(rocks.backend.cut(1, full=True))
    copy = Rocks(tmp_path)
    copy.backend.restore(decode_segment(segment, range(128)))
    for key in range(0, keys, 7):
        assert list(copy.seen(key).get()) == list(range(rounds))
    assert copy.cached() < keys / 10
    copy.backend.close()


@pytest.mark.parametrize("size", [10, 1_000, 10_000])
def test_the_larger_the_values_the_fewer_are_in_the_cache(rocks, size):
    """Those that are take about the memory that there is for objects."""
    text = rocks.backend.get_state(ValueStateDescriptor("text", Types.STRING()))
    most = 0
    for key in range(1_000):
        rocks.context.key = key
        text.update("x" * size)
        most = max(most, rocks.cached())
    expected = rocks.settings.objects() // (200 + 3 * size)
    # By so many values the cache learns how large they are.
    assert expected // 2 <= most <= max(16, 2 * expected)


def test_a_cache_that_is_large_enough_needs_no_database(tmp_path):
    """Values of which some cannot be written are in it, too, until they have to be."""
    rocks = Rocks(tmp_path, memory=1 << 30)
    anything = rocks.backend.get_state(ValueStateDescriptor("any", Types.PICKLED_BYTE_ARRAY()))
    for key in range(5_000):
        rocks.context.key = key
        anything.update((lambda: 1) if key % 2 else key)
    assert rocks.cached() == 5_000 and list(tmp_path.iterdir()) == []
    rocks.backend.close()


def test_a_delta_holds_what_has_left_the_cache(rocks, tmp_path):
    for key in range(3000):
        rocks.count(key).update(key)
    base = encode_segment(rocks.backend.cut(1, full=True))
    rocks.backend.confirm(1)
    for key in range(1000):
        rocks.count(key).update(-key)
    for key in range(1000, 2000):
        rocks.count(key).clear()
    assert rocks.cached() < 1000
    captured = rocks.backend.cut(2, full=False)
    for key in range(3000):
        rocks.count(key).update(0)
    deltas = []
    # As in a slot: what was cut is gone through by another thread.
    writer = threading.Thread(target=lambda: deltas.append(encode_segment(captured)))
    writer.start()
    writer.join()
    assert len(deltas[0]) < len(base)
    copy = Rocks(tmp_path)
    for data in (base, *deltas):
        copy.backend.restore(decode_segment(data, range(128)))
    found = [copy.count(key).value() for key in range(3000)]
    assert found == [-k for k in range(1000)] + [None] * 1000 + list(range(2000, 3000))
    copy.backend.close()


def test_a_full_cut_does_not_follow_later_changes(rocks, tmp_path):
    for key in range(2000):
        rocks.count(key).update(key)
    captured = rocks.backend.cut(1, full=True)
    for key in range(2000):
        rocks.count(key).clear()
    for key in range(5000, 7000):
        rocks.count(key).update(key)
    copy = Rocks(tmp_path)
    copy.backend.restore(decode_segment(encode_segment(captured), range(128)))
    assert [copy.count(key).value() for key in range(2000)] == list(range(2000))
    assert {copy.count(key).value() for key in range(5000, 7000)} == {None}
    copy.backend.close()


def test_an_object_that_is_changed_after_its_cache_was_emptied_is_not_lost(tmp_path):
    rocks = Rocks(tmp_path, memory=0)
    rocks.context.key = "k"
    anything = rocks.backend.get_state(ValueStateDescriptor("any", Types.PICKLED_BYTE_ARRAY()))
    anything.update({"n": 0})
    rocks.context.key = "other"
    anything.update({})
    rocks.context.key = "k"
    held = anything.value()
    anything.update(held)
    held["n"] = 1
    rocks.context.key = "other"
    anything.value()
    rocks.context.key = "k"
    assert anything.value() == {"n": 1}
    rocks.backend.close()


def test_a_database_is_made_when_memory_does_not_do_and_goes_when_it_is_closed(tmp_path):
    rocks = Rocks(tmp_path, memory=1 << 30)
    rocks.count("k").update(1)
    assert list(tmp_path.iterdir()) == []
    list(rocks.backend.cut(1, full=True))
    [folder] = tmp_path.iterdir()
    assert folder.name.startswith("penstock-rocksdb-")
    rocks.backend.close()
    assert list(tmp_path.iterdir()) == []


def test_a_cut_can_be_stored_after_the_backend_was_closed(rocks):
    for key in range(2000):
        rocks.count(key).update(key)
    captured = rocks.backend.cut(1, full=True)
    rocks.backend.close()
    assert len(list(captured)) > 100


def test_how_large_it_is_and_how_well_it_does_can_be_asked(rocks):
    gauges = rocks.backend.gauges()
    assert [gauge() for gauge in gauges.values()] == [0, 0, 0]
    for key in range(20_000):
        rocks.count(key).update(key)
    for key in range(0, 20_000, 5):
        rocks.count(key).value()
    assert gauges["rocksdb.size"]() > 100_000
    assert 0 < gauges["rocksdb.blockCacheHitRatio"]() <= 1
    assert gauges["rocksdb.meanReadMicros"]() > 0


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install .*penstock\[rocksdb\]"):
        choice.make_backend(KeyContext(), 128, SystemClock(), StateSettings("rocksdb"))


def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    rocks = Rocks(Path(tmp_path, "file", "below"), memory=0)
    rocks.count("a").update(1)
    count = rocks.count("b")
    with pytest.raises(ConfigurationError, match="localdir"):
        count.update(1)


# --- entries against a dict -------------------------------------------------------------------

keys = st.integers(0, 5)
steps = st.lists(
    st.tuples(st.just("set"), keys, st.integers(0, 9))
    | st.tuples(st.just("append"), keys)
    | st.tuples(st.just("del"), keys)
    | st.tuples(st.just("pop"), keys)
    | st.tuples(st.just("in"), keys)
    | st.tuples(st.just("items"))
    | st.tuples(st.just("cut")),
    max_size=60,
)


@settings(max_examples=50)
@given(steps, st.integers(1, 4))
def test_entries_are_a_dict(script, limit):
    """Whatever is done, also in place, with a cache of any size."""
    database, changes, model = RocksDatabase(StateSettings("rocksdb", managed=0)), Generations(), {}
    entries = RocksEntries("t", 0, database, changes, 128)
    entries._set_limit = lambda: None
    entries._limit = limit
    for number, step in enumerate(script):
        match step:
            case ("set", key, value):
                entries[key] = [value]
                changes.current.add(key)
                model[key] = [value]
            case ("append", key):
                found = entries.get(key)
                if found is not None:
                    found.append("more")
                    changes.current.add(key)
                    model[key].append("more")
            case ("del", key):
                if key in model:
                    del entries[key]
                    changes.current.add(key)
                    del model[key]
                else:
                    with pytest.raises(KeyError):
                        del entries[key]
            case ("pop", key):
                assert entries.pop(key, None) == model.pop(key, None)
                changes.current.add(key)
            case ("in", key):
                assert (key in entries) == (key in model)
                assert entries.get(key, "none") == model.get(key, "none")
            case ("items",):
                assert dict(entries.items()) == model
                assert (set(entries), len(entries)) == (set(model), len(model))
            case ("cut",):
                entries.end_generation(number)
        assert dict.__len__(entries) <= limit
    assert {key: entries[key] for key in model} == model
    database.close()
