"""Segments: what was written comes back, by key group, and damage is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.checksums import PIECE
from penstock.checkpoint.handles import SegmentHandle
from penstock.errors import CorruptCheckpointError
from penstock.state.segments import GroupBlock, decode_segment, encode_segment, segment_parts

blocks = st.lists(
    st.builds(
        GroupBlock,
        st.text(max_size=5),
        st.sampled_from(["value", "timers"]),
        st.integers(0, 127),
        st.lists(st.binary(max_size=30), max_size=3),
    ),
    max_size=8,
)


@given(blocks, st.integers(0, 128), st.integers(0, 128))
def test_the_blocks_of_the_asked_for_groups_come_back_in_order(written, start, stop):
    found = list(decode_segment(encode_segment(written), range(start, stop)))
    whole = [replace(block, parts=[block.payload]) for block in written]
    assert found == [block for block in whole if start <= block.group < stop]


@given(blocks)
def test_a_segment_in_parts_has_the_handle_that_it_has_whole(written):
    parts = list(segment_parts(written))
    assert b"".join(parts) == encode_segment(written)
    assert SegmentHandle.of("s", parts, range(8)) == SegmentHandle.of(
        "s", encode_segment(written), range(8)
    )


SEGMENT = encode_segment(
    [GroupBlock("s", "value", 3, [b"pay", b"load"]), GroupBlock("t", "map", 9, [b"x"])]
)


@pytest.mark.parametrize(
    "data",
    [b"", b"PSEG", b"JUNK" + SEGMENT[4:], SEGMENT[:4] + b"\x09\x00" + SEGMENT[6:], SEGMENT[:20]],
    ids=["empty", "short", "magic", "version", "index cut short"],
)
def test_what_is_not_a_segment_is_refused(data):
    with pytest.raises(CorruptCheckpointError):
        list(decode_segment(data, range(128)))


def test_a_handle_sees_every_truncation():
    handle = SegmentHandle.of("shared/s", SEGMENT, range(128))
    handle.verify(SEGMENT)
    for length in range(len(SEGMENT)):
        with pytest.raises(CorruptCheckpointError, match=r"shared/s .* cut short"):
            handle.verify(SEGMENT[:length])


def test_a_handle_sees_every_flipped_byte():
    handle = SegmentHandle.of("shared/s", SEGMENT, range(128))
    for position in range(len(SEGMENT)):
        damaged = bytearray(SEGMENT)
        damaged[position] ^= 1
        with pytest.raises(CorruptCheckpointError, match="shared/s was altered"):
            handle.verify(bytes(damaged))


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_a_handle_knows_which_groups_it_overlaps(first, size, start, stop):
    groups, asked = range(first, first + size), range(start, stop)
    handle = SegmentHandle.of("s", b"", groups)
    expected = bool(set(groups) & set(asked))
    assert handle.overlaps(asked) == expected or not (groups and asked)


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5])
def test_the_pieces_of_a_segment_do_not_depend_on_its_parts(size):
    data = bytes(n % 251 for n in range(1000)) * (size // 1000 + 1)
    data = data[:size]
    whole = SegmentHandle.of("s", data, range(8))
    whole.verify(data)
    for cut in (1, 1000, 700_001, PIECE, 2 * PIECE):
        parts = [data[start : start + cut] for start in range(0, min(size, 5000), cut)]
        parts.append(data[sum(map(len, parts)) :])
        assert SegmentHandle.of("s", parts, range(8)) == whole
