"""Names of segments: written and parsed alike; what is not ours is not parsed."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.segment_names import CopyName, SegmentName, written_for

NUMBERS = st.integers(0, 1 << 40)
BASES = st.builds(SegmentName.of, NUMBERS, NUMBERS, NUMBERS, st.text()) | st.builds(
    SegmentName.of_channels, NUMBERS, NUMBERS, NUMBERS, NUMBERS
)
PARTS = st.sampled_from(
    [
        lambda name: name,
        SegmentName.own,
        SegmentName.union,
        SegmentName.merged,
        lambda name: name.logged(12),
        lambda name: name.file("000012.sst"),
        lambda name: name.file("OPTIONS-000007"),
    ]
)
NAMES = st.builds(lambda name, part: part(name), BASES, PARTS)


@given(NAMES)
def test_what_is_written_is_parsed(name: SegmentName) -> None:
    assert SegmentName.parse(str(name)) == name
    assert SegmentName.parse(f"{name}.{uuid.uuid4().hex}.tmp") == name, "left by a dead writer"


@given(NUMBERS, NUMBERS, NAMES.map(str) | st.builds(written_for, st.text(), NUMBERS))
def test_a_copy_is_parsed_and_so_is_the_copy_of_a_copy(
    generation: int, checkpoint: int, original: str
) -> None:
    copy = CopyName(generation, checkpoint, original)
    assert SegmentName.parse(str(copy)) == copy
    again = CopyName(generation, checkpoint, str(copy))
    assert SegmentName.parse(str(again)) == again


@given(NAMES)
def test_a_name_says_what_kind_of_segment_it_is(name: SegmentName) -> None:
    assert name.is_merged == str(name).endswith("-merged")
    assert name.is_logged == str(name).endswith("-log-12")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "notes.txt",
        "1-2",
        "1-2-",
        "1-2-three-a",
        "1-2-3-../x",
        "1-2-3-a-/x",
        "x1-2-3-a",
        "1-2-3-",
    ],
)
def test_what_is_not_ours_is_no_name(text: str) -> None:
    assert SegmentName.parse(text) is None
