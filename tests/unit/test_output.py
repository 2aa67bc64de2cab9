"""Outputs: never more buffers under way than credits, and everything in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.network.elements import END_OF_INPUT, Barrier, Watermark
from penstock.runtime.output import TARGET_BUFFER_BYTES, Output, OutputChannel, Room


class Wire:
    """A port that keeps what was sent; `size` is what it says a batch weighs."""

    def __init__(self, size=None):
        self.sent = []
        self.size = size
        self.flat = []

    def encode(self, batch, flat):
        self.flat.append(flat)
        return batch, None if self.size is None else self.size(batch)

    def send_batch(self, encoded, sequence):
        self.sent.append((sequence, encoded))

    def send_control(self, element, sequence):
        self.sent.append((sequence, element))

    def elements(self):
        assert [sequence for sequence, _ in self.sent] == list(range(1, len(self.sent) + 1))
        return [element for _, element in self.sent]


class Sender:
    def __init__(self, channels=1, credits=2, most=256, size=None, by_reference=False):
        self.room = Room()
        self.wires = [Wire(size) for _ in range(channels)]
        self.channels = [OutputChannel(wire, credits, self.room) for wire in self.wires]
        self.output = Output(self.channels, self.room, most, by_reference)

    def write(self, value, channel=0):
        """What the compiled chain does for one record."""
        buffer = self.output.buffers[channel]
        buffer.append(value)
        if len(buffer) >= self.output.limit:
            self.output.full(channel)


def test_a_full_buffer_leaves():
    sender = Sender(most=2)
    for n in range(5):
        sender.write(n)
    assert sender.wires[0].elements() == [[0, 1], [2, 3]]
    assert sender.output.buffers[0] == [4]
    assert sender.output.records == 4


def test_without_credit_a_buffer_waits_and_there_is_no_room():
    sender = Sender(most=1, credits=1)
    sender.write("a")
    assert not sender.room.blocked
    sender.write("b")
    assert sender.room.blocked == 1
    assert sender.wires[0].elements() == [["a"]]
    sender.channels[0].grant(1)
    assert sender.wires[0].elements() == [["a"], ["b"]]
    assert not sender.room.blocked
    assert sender.channels[0].credits == 0


def test_a_control_element_needs_no_credit():
    sender = Sender(credits=0)
    sender.output.control(Watermark(1))
    assert sender.wires[0].elements() == [Watermark(1)]
    assert sender.channels[0].credits == 0


def test_a_control_element_stays_behind_the_records_before_it():
    sender = Sender(credits=1, most=1)
    sender.write("a")
    sender.write("b")
    sender.output.control(Barrier(1, 0))
    assert sender.wires[0].elements() == [["a"]]
    sender.channels[0].grant(1)
    assert sender.wires[0].elements() == [["a"], ["b"], Barrier(1, 0)]


def test_a_control_element_takes_the_gathered_records_along():
    sender = Sender(channels=2)
    sender.write("a", channel=0)
    sender.output.control(END_OF_INPUT)
    assert sender.wires[0].elements() == [["a"], END_OF_INPUT]
    assert sender.wires[1].elements() == [END_OF_INPUT]


def test_one_channel_without_credit_blocks_the_whole_subtask():
    sender = Sender(channels=2, credits=1, most=1)
    sender.write("a", 0)
    sender.write("b", 0)
    sender.write("c", 1)
    assert sender.room.blocked == 1
    sender.write("d", 1)
    assert sender.room.blocked == 2
    sender.channels[1].grant(1)
    assert sender.room.blocked == 1
    sender.channels[0].grant(5)
    assert sender.room.blocked == 0
    assert sender.channels[0].credits == 4


def test_flush_sends_partial_buffers_once():
    sender = Sender()
    assert not sender.output.flush()
    sender.write("a")
    assert sender.output.flush()
    assert not sender.output.flush()
    assert sender.wires[0].elements() == [["a"]]


def test_flush_leaves_a_channel_that_waits_alone():
    sender = Sender(credits=0, most=2)
    sender.write("a")
    sender.write("b")
    sender.write("c")
    assert not sender.output.flush()
    assert sender.output.buffers[0] == ["c"]


def test_flush_gathers_on_where_there_is_no_credit():
    sender = Sender(credits=0, most=8)
    sender.write("a")
    assert not sender.output.flush()
    assert not sender.room.blocked
    sender.write("b")
    sender.channels[0].grant(1)
    assert sender.output.flush()
    assert sender.wires[0].elements() == [["a", "b"]]


def test_the_limit_grows_step_by_step_up_to_the_most():
    sender = Sender(credits=10_000, most=100)
    limits = []
    for n in range(1000):
        sender.write(n)
        limits.append(sender.output.limit)
    assert limits == sorted(limits)
    assert sorted(set(limits)) == [8, 16, 32, 64, 100]


@pytest.mark.parametrize(
    "size", [None, lambda batch: sum(map(len, batch))], ids=["local", "remote"]
)
def test_large_records_make_small_buffers(size):
    sender = Sender(credits=10_000, most=256, size=size)
    record = b"x" * (TARGET_BUFFER_BYTES // 4)
    for _ in range(200):
        sender.write(record)
    assert 1 <= sender.output.limit <= 4
    for _ in range(10):
        sender.write(b"x" * (TARGET_BUFFER_BYTES * 2))
    assert sender.output.limit == 1


def test_the_limit_recovers_when_records_become_small_again():
    sender = Sender(credits=100_000, most=256, size=lambda batch: sum(map(len, batch)))
    for _ in range(10):
        sender.write(b"x" * TARGET_BUFFER_BYTES)
    assert sender.output.limit == 1
    for _ in range(1000):
        sender.write(b"x")
    assert sender.output.limit == 256


def test_local_records_that_grow_are_noticed():
    sender = Sender(credits=100_000, most=8)
    for n in range(100):
        sender.write(n)
    assert sender.output.limit == 8
    for _ in range(8 * 64):
        sender.write(b"x" * TARGET_BUFFER_BYTES)
    assert sender.output.limit == 1


def test_a_batch_counts_as_flat_until_a_record_was_not():
    sender = Sender(credits=100, most=1)
    for record in ({"a": 1}, {"a": [1]}, {"a": 2}):
        sender.write(sender.output.isolate(record))
    assert sender.wires[0].flat == [True, False, False]


def test_nothing_is_known_of_records_that_pass_by_reference():
    sender = Sender(credits=100, most=1, by_reference=True)
    sender.write({"a": 1})
    assert sender.wires[0].flat == [False]


def test_records_that_cannot_be_pickled_have_a_usual_size():
    sender = Sender(credits=100, most=16)
    for _ in range(64):
        sender.write(lambda: 1)
    assert sender.output.limit == 16


moves = st.lists(
    st.just("write") | st.just("control") | st.just("flush") | st.integers(1, 3), max_size=80
)


@given(moves, st.integers(0, 3), st.integers(1, 4))
def test_credits_are_never_exceeded_and_order_is_kept(script, credits, most):
    sender, granted, written = Sender(credits=credits, most=most), credits, []
    for position, move in enumerate(script):
        if move == "write" and not sender.room.blocked:
            sender.write(position)
            written.append(position)
        elif move == "control" and not sender.room.blocked:
            sender.output.control(Watermark(position))
            written.append(Watermark(position))
        elif move == "flush":
            sender.output.flush()
        elif isinstance(move, int):
            granted += move
            sender.channels[0].grant(move)
        sent = sender.wires[0].elements()
        buffers = sum(isinstance(element, list) for element in sent)
        assert buffers <= granted
        assert sender.channels[0].credits == granted - buffers
        assert bool(sender.room.blocked) == bool(sender.channels[0]._waiting)
    sender.output.flush()
    sender.channels[0].grant(1000)
    sender.output.flush()
    flat = []
    for element in sender.wires[0].elements():
        flat.extend(element if isinstance(element, list) else [element])
    assert flat == written
