"""The manifest of a checkpoint: what was written comes back, and no damage passes."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint import sealed
from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.metadata import (
    CheckpointMetadata,
    VertexSnapshot,
    decode_metadata,
    encode_metadata,
    encode_tombstone,
)
from penstock.errors import CheckpointFormatError, CorruptCheckpointError, ProgramError

SAMPLE = CheckpointMetadata(
    "job-1",
    7,
    2,
    1_700_000_000_000,
    {
        "uid-source": VertexSnapshot(
            "Source",
            1,
            128,
            (
                SubtaskSnapshot(
                    False, 99, {"uid-source": OperatorSnapshot((), ({"file": "ä", "at": 3},))}
                ),
            ),
        ),
        "uid-count": VertexSnapshot(
            "Count -> Sink",
            2,
            128,
            (
                SubtaskSnapshot(
                    False,
                    -(1 << 63),
                    {
                        "uid-count": OperatorSnapshot(
                            (SegmentHandle.of("shared/1-7-0-x", b"data", range(64)),)
                        )
                    },
                ),
                SubtaskSnapshot(True),
            ),
        ),
    },
    {"uid-source": [{"file": "b", "raw": b"\x00\xff"}]},
    {"uid-sink": ("part-1", {"id": 3})},
)
ENCODED = encode_metadata(SAMPLE)
FORMAT_2 = {"database", "file", "entries_size"}
"""What a handle of a segment has in format 2 only."""


def test_what_was_written_comes_back():
    assert decode_metadata(ENCODED, "p") == SAMPLE


def test_it_is_readable_json_with_a_format():
    written = json.loads(ENCODED)
    assert written["format"] == 2
    assert written["content"]["vertices"]["uid-source"]["name"] == "Source"


def test_every_truncation_is_seen():
    for length in range(len(ENCODED)):
        with pytest.raises(CorruptCheckpointError, match=r"chk-7/_metadata is cut short"):
            decode_metadata(ENCODED[:length], "chk-7/_metadata")


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80, 0xFF])
def test_every_flipped_byte_is_seen_or_means_nothing(mask):
    """What reads the same may pass: another blank, or an older format."""
    for position in range(len(ENCODED)):
        damaged = bytearray(ENCODED)
        damaged[position] ^= mask
        try:
            found = decode_metadata(bytes(damaged), "p")
        except (CorruptCheckpointError, CheckpointFormatError):
            continue
        assert found == SAMPLE


@given(st.integers(0, len(ENCODED) - 1), st.binary(min_size=1, max_size=20))
def test_overwritten_bytes_are_seen(position, junk):
    damaged = ENCODED[:position] + junk + ENCODED[position + len(junk) :]
    with contextlib.suppress(CorruptCheckpointError, CheckpointFormatError):
        assert decode_metadata(damaged, "p") == SAMPLE


@pytest.mark.parametrize(
    "data", [b"", b"null", b"[]", b'"x"', b"{}", b'{"format": 1}', b"\xff\xfe", b"7"]
)
def test_what_is_no_manifest_is_refused(data):
    with pytest.raises(CorruptCheckpointError, match="not a checkpoint"):
        decode_metadata(data, "p")


def test_another_format_is_named():
    with pytest.raises(CheckpointFormatError, match=r"p has format 9, .* reads formats up to 2:"):
        decode_metadata(ENCODED.replace(b'"format": 2', b'"format": 9'), "p")
    for other in (b"0", b"-1", b'"1"', b"null", b"1.5"):
        with pytest.raises(CorruptCheckpointError, match=r"p has format .*, which there is not"):
            decode_metadata(ENCODED.replace(b'"format": 2', b'"format": ' + other), "p")


@pytest.mark.parametrize("without", [FORMAT_2, {*FORMAT_2, "pieces"}], ids=["last", "first"])
def test_the_older_format_is_read(without, monkeypatch):
    """With what handles of segments had when it was written last, and at first."""

    def as_it_was(pairs):
        fields = dict(pairs)
        for name in without if "path" in fields else ():
            del fields[name]
        return fields

    content = json.loads(ENCODED, object_pairs_hook=as_it_was)["content"]
    with monkeypatch.context() as before:
        before.setattr(sealed, "FORMAT", 1)
        older = sealed.seal(content)
    assert older.startswith(b'{"format": 1,')
    assert decode_metadata(older, "p") == SAMPLE


def test_a_tombstone_is_no_checkpoint_and_as_safe_from_damage():
    tombstone = encode_tombstone(7)
    assert decode_metadata(tombstone, "p") is None
    for length in range(len(tombstone)):
        with pytest.raises(CorruptCheckpointError):
            decode_metadata(tombstone[:length], "p")


def test_what_is_not_plain_is_refused_with_its_place():
    vertex = VertexSnapshot(
        "V", 1, 1, (SubtaskSnapshot(False, 0, {"uid-7": OperatorSnapshot((), (object(),))}),)
    )
    with pytest.raises(ProgramError, match="a split of uid-7 holds a object"):
        encode_metadata(CheckpointMetadata("j", 1, 1, 0, {"u": vertex}, {}, {}))
    with pytest.raises(ProgramError, match="a committable holds a set"):
        encode_metadata(CheckpointMetadata("j", 1, 1, 0, {}, {}, {"u": ({1},)}))


def test_it_knows_its_segments_and_whether_it_is_the_last():
    assert SAMPLE.segment_paths() == {"shared/1-7-0-x"}
    assert not SAMPLE.is_final()
    done = VertexSnapshot("V", 2, 2, (SubtaskSnapshot(True), SubtaskSnapshot(True)))
    assert CheckpointMetadata("j", 1, 1, 0, {"u": done}, {}, {}).is_final()
