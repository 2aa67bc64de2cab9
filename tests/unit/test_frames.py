"""Frames, elements and messages: what crosses the network comes out as it went in."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.store import CheckpointStore
from penstock.common.metrics import MetricReading
from penstock.common.settings import RuntimeSettings
from penstock.errors import (
    ChannelBrokenError,
    CorruptCheckpointError,
    FailureOrigin,
    RecordError,
    UserFunctionError,
)
from penstock.network import frames, messages
from penstock.network.elements import END_OF_INPUT, Barrier, EndOfInput, Watermark
from penstock.network.frames import (
    Frame,
    FrameKind,
    decode_frame,
    dump_element,
    encode_frame,
    load_element,
)

numbers = st.integers(0, 2**32 - 1)


@given(
    st.builds(
        Frame,
        st.sampled_from(FrameKind),
        numbers,
        numbers,
        numbers,
        numbers,
        st.integers(0, 2**64 - 1),
        st.binary(),
    )
)
def test_a_frame_comes_out_as_it_went_in(frame):
    assert decode_frame(encode_frame(frame)) == frame


@pytest.mark.parametrize(
    "parts",
    [[], [b""], [b"short", b""], [bytes(25)], [bytes(25), b"", b""], [bytes(26), b""]],
    ids=["nothing", "one", "short head", "no payload", "three parts", "long head"],
)
def test_what_is_not_a_frame_breaks_the_channel(parts):
    with pytest.raises(ChannelBrokenError, match="cannot be read"):
        decode_frame(parts)


def test_the_head_is_of_a_fixed_size():
    head, payload = encode_frame(Frame(FrameKind.DATA, 1, 2, 3, 4, 5, b"payload"))
    assert (len(head), payload) == (25, b"payload")


@pytest.mark.parametrize(
    "element", [[], [1, "a", {"b": [2]}], Watermark(-5), Barrier(7, 6), END_OF_INPUT]
)
def test_an_element_comes_out_as_it_went_in(element):
    assert load_element(dump_element(element)) == element
    assert isinstance(load_element(dump_element(END_OF_INPUT)), EndOfInput)


@given(
    st.lists(
        st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.binary())
        | st.tuples(st.text(), st.floats(allow_nan=False))
    )
)
def test_a_flat_batch_comes_out_as_it_went_in(batch):
    shared = [*batch, *batch]
    assert load_element(dump_element(shared, flat=True)) == shared


def test_a_record_that_cannot_be_pickled_is_named_as_such():
    with pytest.raises(RecordError, match="a record cannot be pickled"):
        dump_element([lambda: 1])


def test_records_may_refer_to_each_other_and_to_themselves():
    own = ["a"]
    own.append(own)
    first, second = load_element(dump_element([own, own]))
    assert first is second
    assert first[1] is first


def test_a_buffer_beyond_the_limit_is_refused_with_advice(monkeypatch):
    size = len(dump_element([b"x" * 1000]))
    monkeypatch.setattr(frames, "MAX_FRAME_BYTES", size)
    dump_element([b"x" * 1000])
    with pytest.raises(RecordError, match=f"larger than the limit of {size}; send a reference"):
        dump_element([b"x" * 1001])


# --- messages ---------------------------------------------------------------------------------

SNAPSHOT = SubtaskSnapshot(
    False, 5, {"uid": OperatorSnapshot((SegmentHandle.of("s", b"", range(3)),), ({"at": 1},))}
)
SAMPLES = [
    messages.Register(1, 0, "host", 4711),
    messages.Prepared(1, 0, "tcp://host:1"),
    messages.Restored(1, 0),
    messages.Damaged(1, 0, "shared/s", CorruptCheckpointError("shared/s was altered")),
    messages.Running(1, 0),
    messages.Acknowledge(1, (0, 1), 7, SNAPSHOT, {"shared/a": b"x"}),
    messages.Decline(1, (0, 1), 7, "no space"),
    messages.SplitRequest(1, (0, 1)),
    messages.SubtaskReport((MetricReading("Map", "uid", 0, "seen", 3),), b"pickled"),
    messages.AtEnd(1, (0, 1), {"uid": ("file",)}),
    messages.Emitted(1, (0, 1), "uid", 3, [b"value"]),
    messages.Failed(1, 0, UserFunctionError("m", "t", FailureOrigin("Map", 0, 1))),
    messages.Stopped(1, 0),
    messages.SubtaskMetrics(1, 2, 3, 4, 5, 6, 7),
    messages.Starting("restoring 'Count' (1/2)", 5, 9),
    messages.Heartbeat(1, 0, {}, 2),
    messages.Prepare(1, b"public", b"secret"),
    messages.Deploy(
        attempt=1,
        settings=RuntimeSettings(),
        store=CheckpointStore("memory:///x", "job"),
        restored={(0, 0): SNAPSHOT},
        segments={"shared/s": b"state"},
        peers={1: "a"},
    ),
    messages.Go(1),
    messages.Trigger(1, 7, 6),
    messages.Complete(1, 7),
    messages.Abort(1, 7),
    messages.AssignSplits(1, (0, 1), [{"file": "x"}]),
    messages.Align(1, (0, 1), 1000),
    messages.EmitCredit(1, (0, 1), "uid", 2),
    messages.EndAttempt(1),
    messages.Leave(),
]


def test_every_message_has_a_sample_here():
    declared = {
        value
        for _, value in inspect.getmembers(messages, inspect.isclass)
        if dataclasses.is_dataclass(value) and value.__module__ == messages.__name__
    }
    assert {type(sample) for sample in SAMPLES} == declared


@pytest.mark.parametrize("message", SAMPLES, ids=lambda message: type(message).__name__)
def test_every_message_is_frozen_and_picklable(message):
    back = pickle.loads(pickle.dumps(message))
    if isinstance(message, messages.Failed | messages.Damaged):
        assert str(back.error) == str(message.error)
    else:
        assert back == message
    for field in dataclasses.fields(message):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(message, field.name, None)
