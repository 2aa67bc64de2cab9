"""Segments that are read in parts: no more than is needed, and nothing that is not verified."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint import parts
from penstock.checkpoint.checksums import PIECE
from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.parts import VerifiedParts
from penstock.checkpoint.store import CarriedSegments, CheckpointStore
from penstock.common.filesystem import Content
from penstock.errors import CorruptCheckpointError, StorageError
from penstock.network.messages import Starting
from penstock.runtime.segment_writing import write_segment
from penstock.runtime.startup import CountedSegments, Startup
from penstock.state.segments import GroupBlock, decode_segment, encode_segment, read_blocks
from penstock.state.segments import read_index as index_of

GROUPS = range(8)


@dataclass
class Watched:
    """A store that remembers how much of it was read."""

    data: bytes
    read: list[tuple[int, int]] = field(default_factory=list)

    def write_segment(self, name: str, content: Content) -> str:
        raise NotImplementedError

    def read_segment(self, path: str) -> bytes:
        return self.read_part(path, 0, len(self.data))

    def read_part(self, path: str, start: int, size: int) -> bytes:
        part = self.data[start : start + size]
        self.read.append((start, len(part)))
        return part

    @property
    def volume(self) -> int:
        return sum(size for _, size in self.read)


def blocks(size: int) -> list[GroupBlock]:
    """Two states in all groups, `size` bytes of each in each."""
    rng = random.Random(size)
    return [
        GroupBlock(state, "value", group, [rng.randbytes(size)])
        for state in ("one", "two")
        for group in GROUPS
    ]


def segment(size: int) -> tuple[SegmentHandle, Watched]:
    data = encode_segment(blocks(size))
    return SegmentHandle.of("shared/1-4-0-s", data, GROUPS), Watched(data)


def restored(handle: SegmentHandle, store: Watched, groups: range) -> list[GroupBlock]:
    read = VerifiedParts(handle, store)
    return list(read_blocks(read, index_of(read)[1], groups))


@pytest.mark.parametrize("size", [0, 1, 1000, PIECE // 2, PIECE + 17])
@pytest.mark.parametrize("groups", [GROUPS, range(0), range(3), range(3, 5), range(7, 8)])
def test_the_blocks_of_some_groups(size: int, groups: range) -> None:
    handle, store = segment(size)
    assert restored(handle, store, groups) == list(decode_segment(store.data, groups))


def test_little_more_is_read_than_is_needed() -> None:
    handle, store = segment(PIECE)
    restored(handle, store, range(4, 6))
    needed = 2 * 2 * PIECE
    # The index, and a piece more at either end of what each of the two states has.
    assert needed <= store.volume <= needed + 5 * PIECE
    assert len(store.read) == 3


def test_nothing_is_read_twice_by_the_subtask_that_has_it_all() -> None:
    handle, store = segment(PIECE)
    restored(handle, store, GROUPS)
    assert store.volume == len(store.data)


@pytest.mark.parametrize("way", ["blocks", "file"])
def test_one_large_block_is_read_in_chunks_and_each_is_told(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "CHUNK", PIECE)
    data = encode_segment([GroupBlock("one", "value", 0, [random.Random(1).randbytes(40 * PIECE)])])
    handle = SegmentHandle.of("shared/s", data, GROUPS)
    snapshot = SubtaskSnapshot(False, operators={"uid": OperatorSnapshot((handle,))})
    told: list[int] = []
    startup = Startup([snapshot], lambda: told.append(startup.seen().read))
    startup.restores("'count' (1/2)")
    read = VerifiedParts(handle, CountedSegments(Watched(data), startup))
    if way == "blocks":
        assert list(read_blocks(read, index_of(read)[1], GROUPS)) == list(
            decode_segment(data, GROUPS)
        )
    else:
        assert b"".join(read.chunks()) == data
    assert len(told) >= 10
    assert told == sorted(set(told))
    assert startup.seen() == Starting("restoring 'count' (1/2)", len(data), len(data))


def test_a_small_segment_is_read_at_once() -> None:
    handle, store = segment(100)
    assert handle.pieces == ()
    restored(handle, store, range(2, 3))
    assert store.read == [(0, len(store.data))]


@given(st.randoms(use_true_random=False), st.lists(st.integers(0, 100), max_size=6))
def test_any_parts_in_any_order(rng: random.Random, places: list[int]) -> None:
    data = random.Random(1).randbytes(3 * PIECE + 5)
    read = VerifiedParts(SegmentHandle.of("shared/1-4-0-s", data, GROUPS), Watched(data))
    for place in places:
        start, size = len(data) * place // 100, rng.randrange(2 * PIECE)
        assert read(start, size) == data[start : start + size]


@pytest.mark.parametrize("size", [100, PIECE])
def test_no_bytes_are_nothing_to_verify(size: int) -> None:
    handle, store = segment(size)
    read = VerifiedParts(handle, store)
    for start in (0, 1, PIECE, handle.size):
        assert read(start, 0) == b""


@pytest.mark.parametrize("size", [100, PIECE])
def test_one_flipped_bit_is_found_by_whoever_reads_it(size: int) -> None:
    handle, store = segment(size)
    for place in (5, len(store.data) - 5):
        changed = bytearray(store.data)
        changed[place] ^= 1
        altered = Watched(bytes(changed))
        with pytest.raises(CorruptCheckpointError, match="shared/1-4-0-s was altered"):
            restored(handle, altered, GROUPS)
        with pytest.raises(CorruptCheckpointError, match="shared/1-4-0-s was altered"):
            handle.verify(altered.data)


@pytest.mark.parametrize("size", [100, PIECE])
@pytest.mark.parametrize("kept", [0, 20, 0.5, 1])
def test_a_segment_that_ends_early(size: int, kept: float) -> None:
    handle, store = segment(size)
    end = int(len(store.data) * kept) - 1 if isinstance(kept, float) or kept == 1 else kept
    with pytest.raises(CorruptCheckpointError, match="cut short"):
        restored(handle, Watched(store.data[:end]), GROUPS)


@given(st.lists(st.integers(0, 2 * PIECE), max_size=5))
def test_it_does_not_matter_in_which_parts_a_segment_was_written(sizes: list[int]) -> None:
    data = bytes(range(251)) * (2 * 5 * PIECE // 251 + 1)
    ends = list(itertools.accumulate(sizes, initial=0))
    parts = [data[start:end] for start, end in itertools.pairwise(ends)]
    whole = b"".join(parts)
    handle = SegmentHandle.of("shared/1-4-0-s", parts, GROUPS)
    assert handle == SegmentHandle.of("shared/1-4-0-s", whole, GROUPS)
    handle.verify(whole)


def test_handles_go_through_manifests_old_and_new() -> None:
    handle, store = segment(PIECE)
    written = json.loads(json.dumps(vars(handle)))
    assert SegmentHandle.from_json(written) == handle
    # As they were before there were pieces: one checksum of everything.
    before = {**written, "sha256": hashlib.sha256(store.data).hexdigest()}
    del before["pieces"]
    old = SegmentHandle.from_json(before)
    old.verify(store.data)
    assert restored(old, store, range(2)) == list(decode_segment(store.data, range(2)))


def test_stores_read_parts(tmp_path: Path) -> None:
    data = encode_segment(blocks(PIECE))
    store = CheckpointStore(str(tmp_path), "job")
    path = store.write_segment("s", data)
    handle = SegmentHandle.of(path, data, GROUPS)
    expected = list(decode_segment(data, range(1, 3)))
    for each in (store, CarriedSegments({path: data})):
        read = VerifiedParts(handle, each)
        assert list(read_blocks(read, index_of(read)[1], range(1, 3))) == expected


@pytest.mark.parametrize("size", [100, PIECE])
def test_a_segment_is_known_again(size: int, tmp_path: Path) -> None:
    store = CheckpointStore(str(tmp_path), "job")
    handle = write_segment(store, "1-4-0-s", blocks(size), GROUPS, None)
    data = encode_segment(blocks(size))
    states = [("one", "value"), ("two", "value")]
    assert handle == SegmentHandle.of("shared/1-4-0-s", data, GROUPS, states)
    assert store.read_whole(handle) == data
    with pytest.raises(StorageError, match="exists"):
        write_segment(store, "1-4-0-s", blocks(size), GROUPS, None)
