"""Compaction: what is merged, what comes of it, and what a chain of segments refers to."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.coordinator import unreferenced
from penstock.checkpoint.handles import SegmentHandle
from penstock.common.filesystem import parts_of
from penstock.common.typeinfo import Types
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import StorageError
from penstock.runtime.compaction import Compaction
from penstock.runtime.segment_chain import ChainSettings, SegmentChain
from penstock.state.compaction import Merge, Merging, plan, spans_of
from penstock.state.entries import decode_entries
from penstock.state.kinds import KeyContext
from penstock.state.segments import Origin, decode_segment, encode_segment

GROUPS = range(128)

# --- what is merged ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], None),
        ([10], None),
        ([1000, 1, 1], None),
        ([1000, 1, 1, 1], None),
        ([1000, 1, 1, 1, 1], range(1, 5)),
        ([1000, 4, 1, 1, 1, 1], range(2, 6)),
        ([10, 4, 4, 4], range(4)),
        ([10, 20], None),
        # Each is larger than four times what follows it: only their number asks for a merge.
        ([8**n for n in range(15, 0, -1)], None),
        ([8**n for n in range(16, 0, -1)], range(12, 16)),
    ],
)
def test_neighbours_of_one_size_are_merged(sizes, expected):
    assert plan(sizes, fanout=4) == expected


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=300), st.integers(2, 9), st.booleans())
def test_a_chain_stays_short_and_small(deltas, fanout, all_keys_differ):
    """Whatever is written: the length is logarithmic, the bytes are bounded by the state."""
    chain, state, written, total = [], 0, 0, 0
    for delta in deltas:
        state = state + delta if all_keys_differ else max(state, delta)
        chain.append(delta)
        total += delta
        chosen = plan(chain, fanout)
        if chosen is not None:
            assert chosen.stop == len(chain) and len(chosen) >= fanout
            part = chain[chosen.start :]
            merged = sum(part) if all_keys_differ else max(part)
            chain[chosen.start :] = [merged]
            written += sum(part)
        assert len(chain) < 4 * fanout
        assert len(chain) < fanout or sum(chain) < 2 * chain[0] <= 2 * state
    assert written <= total * (2 + 2 * math.log2(total + 1))


def test_steady_deltas_are_rewritten_a_few_times_only():
    base, delta, chain, written = 10_000, 100, [10_000], 0
    for _ in range(1000):
        chain.append(delta)
        chosen = plan(chain)
        if chosen is not None:
            part = chain[chosen.start :]
            chain[chosen.start :] = [base if chosen.start == 0 else min(base, sum(part))]
            written += sum(part)
    assert written < 1000 * delta * 6
    assert sum(chain) < 2.2 * base


# --- the merging ------------------------------------------------------------------------------

COUNT = ValueStateDescriptor("count", Types.LONG())
BOXED = ValueStateDescriptor("boxed", Types.PICKLED_BYTE_ARRAY())


class Live:
    """A backend whose deltas are kept as segments."""

    def __init__(self):
        self.context = KeyContext()
        self.backend = self.make(self.context, 128)
        self.checkpoint = 0

    def put(self, key, value):
        self.context.key = key
        self.backend.get_state(COUNT).update(value)
        self.backend.get_state(BOXED).update(None if value is None else [value])

    def delta(self):
        self.checkpoint += 1
        data = encode_segment(self.backend.cut(self.checkpoint, full=self.checkpoint == 1))
        self.backend.confirm(self.checkpoint)
        return data

    def contents(self):
        found = {}
        for key in range(10):
            self.context.key = key
            count, boxed = self.backend.get_state(COUNT), self.backend.get_state(BOXED)
            found[key] = (count.value(), boxed.value())
        return found

    @staticmethod
    def restored(*segments):
        live = Live()
        for data in segments:
            live.backend.restore(decode_segment(data, GROUPS))
        return live.contents()


@pytest.fixture(scope="module", autouse=True)
def on_every_backend(make_state):
    Live.make = staticmethod(make_state)


CHANGES = st.dictionaries(st.integers(0, 9), st.none() | st.integers(0, 99), max_size=5)


def merge(segments, how, size=1, lot=1 << 30):
    sizes = Counter()
    for data in segments:
        for block in decode_segment(data, GROUPS):
            sizes[block.group] += block.size
    spans = [GROUPS] if how is Merging.JOINED else spans_of(sizes, GROUPS, lot)
    merging = Merge(
        ((b for data in segments for b in decode_segment(data, span)) for span in spans), how
    )
    while merging.step(size):
        pass
    return encode_segment(merging.blocks())


@given(st.lists(CHANGES, min_size=1, max_size=6), st.data())
def test_a_merged_segment_means_what_its_parts_mean(rounds, data):
    live, segments = Live(), []
    for changes in rounds:
        for key, value in changes.items():
            live.put(key, value)
        segments.append(live.delta())
    start = data.draw(st.integers(0, len(segments) - 1))
    stop = data.draw(st.integers(start + 1, len(segments)))
    ways = [Merging.JOINED, Merging.NEWEST] if start else list(Merging)
    how, size = data.draw(st.sampled_from(ways)), data.draw(st.integers(1, 500))
    merged = merge(segments[start:stop], how, size, lot=data.draw(st.integers(1, 500)))
    assert Live.restored(*segments[:start], merged, *segments[stop:]) == live.contents()


@given(st.dictionaries(st.integers(0, 30), st.integers(1, 100)), st.integers(1, 300))
def test_key_groups_are_merged_in_spans_of_some_size(sizes, most):
    groups = range(3, 25)
    spans = list(spans_of(sizes, groups, most))
    assert [group for span in spans for group in span] == list(groups)
    amounts = [[sizes.get(group, 0) for group in span] for span in spans]
    assert all(sum(amount[:-1]) < most for amount in amounts), "no longer than it must be"
    assert all(sum(amount) >= most for amount in amounts[:-1]), "and no shorter"


def test_a_merged_base_holds_no_removals():
    live = Live()
    for key in range(10):
        live.put(key, key)
    base = live.delta()
    for key in range(10):
        live.put(key, None)
    gone = live.delta()
    assert len(list(decode_segment(merge([base, gone], Merging.WHOLE), GROUPS))) == 0
    for parts, how in (
        ([gone], Merging.JOINED),
        ([gone], Merging.NEWEST),
        ([base, gone], Merging.NEWEST),
    ):
        removals = list(decode_segment(merge(parts, how), GROUPS))
        assert sum(len(decode_entries(block.payload, block.schema)[2]) for block in removals) == 20


def test_the_newest_of_each_key_is_all_that_is_left():
    live, segments = Live(), []
    for number in range(5):
        for key in range(10):
            live.put(key, None if number % 2 else number)
        segments.append(live.delta())
    merged = merge(segments, Merging.NEWEST)
    found = [
        decode_entries(block.payload, block.schema) for block in decode_segment(merged, GROUPS)
    ]
    assert sum(len(keys) for keys, _, _ in found) == 20
    assert not any(removed for _, _, removed in found)


# --- the chain --------------------------------------------------------------------------------


def handle(name, size=10):
    return SegmentHandle(name, size, "", 0, 127)


def chain_of(*names, **settings):
    chain = SegmentChain(ChainSettings(**{"fanout": 2, **settings}))
    chain.restored(tuple(handle(name) for name in names))
    return chain


def test_the_next_checkpoint_names_the_merged_segment():
    chain = chain_of("a", "b", "c")
    old, how = chain.begin_compaction()
    assert (old, how) == ((handle("a"), handle("b"), handle("c")), Merging.WHOLE)
    assert chain.begin_compaction() is None, "one at a time"
    assert chain.base() == old
    chain.stored(4, (*old, handle("d")))
    chain.confirm(4)
    chain.end_compaction(old, handle("m"))
    assert chain.base() == (handle("m"), handle("d"))
    assert chain.begin_compaction() is None, "not before a checkpoint has it"
    chain.stored(5, (*chain.base(), handle("e")))
    assert chain.base() == (handle("m"), handle("d")), "5 may still come to nothing"
    assert chain.confirm(5)
    assert chain.base() == (handle("m"), handle("d"), handle("e"))


def test_a_compaction_that_failed_changes_nothing():
    chain = chain_of("a", "b")
    old, _ = chain.begin_compaction()
    chain.end_compaction(old, None)
    assert chain.base() == old
    assert chain.begin_compaction() is not None, "it is tried again"


def test_confirming_what_was_never_stored_changes_nothing():
    chain = chain_of("a")
    assert not chain.confirm(3)
    assert chain.base() == (handle("a"),)


@pytest.mark.parametrize("settings", [{"incremental": False}, {"compacts": False}])
def test_a_chain_that_is_not_compacted(settings):
    chain = chain_of("a", "b", "c", **settings)
    assert chain.begin_compaction() is None


class Storage(dict):
    def read_segment(self, path):
        return self[path]

    def write_segment(self, name, content):
        self[name] = b"".join(parts_of(content))
        return name


class Pieces:
    """Work off the loop, one piece at a time."""

    def __init__(self):
        self.queue = []

    def submit(self, work, done):
        self.queue.append((work, done))

    def run(self, pieces=1000):
        while self.queue and pieces:
            pieces -= 1
            work, done = self.queue.pop(0)
            try:
                result = work()
            except Exception as error:
                done(None, error)
            else:
                done(result, None)


@pytest.fixture
def compacting():
    live, storage, io = Live(), Storage(), Pieces()
    for number in range(3):
        for key in range(10):
            live.put(key, number)
        storage[f"s{number}"] = live.delta()
    chain = SegmentChain(ChainSettings(fanout=2))
    chain.restored(tuple(SegmentHandle.of(name, data, GROUPS) for name, data in storage.items()))
    Compaction(chain, storage, io, GROUPS, Origin()).start("merged")
    return chain, storage, io, live


def test_a_compaction_reads_merges_and_writes(compacting):
    chain, storage, io, live = compacting
    io.run()
    [merged] = chain.base()
    assert merged.path == "merged"
    merged.verify(storage["merged"])
    assert Live.restored(storage["merged"]) == live.contents()


@pytest.mark.parametrize("pieces", [0, 1])
def test_a_compaction_stops_with_its_attempt(compacting, pieces):
    chain, storage, io, _ = compacting
    io.run(pieces)
    chain.closed = True
    io.run(1)
    assert not io.queue
    io.run()
    assert "merged" not in storage


def test_damage_and_silence_end_a_compaction_only(compacting, monkeypatch, caplog):
    chain, storage, io, _ = compacting
    before = chain.base()
    storage["s1"] = b"X" + storage["s1"][1:]
    io.run()
    assert chain.base() == before
    assert "could not be compacted" in caplog.text and "s1 was altered" in caplog.text

    def refuse(path):
        raise StorageError("no answer")

    monkeypatch.setattr(storage, "read_segment", refuse)
    Compaction(chain, storage, io, GROUPS, Origin()).start("again")
    io.run()
    assert chain.base() == before and "no answer" in caplog.text


# --- what may be deleted ----------------------------------------------------------------------


def test_what_was_merged_is_deleted_when_no_checkpoint_refers_to_it():
    references = {1: frozenset("ab"), 2: frozenset("abc"), 3: frozenset("mcd")}
    assert unreferenced(references, 2) == {1: frozenset()}
    assert unreferenced(references, 1) == {1: frozenset("ab"), 2: frozenset()}
