"""The gate: one stream out of many channels, with barriers, watermarks and ends in their places."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.handles import MAX_WATERMARK
from penstock.network.elements import END_OF_INPUT, Barrier, EndOfInput, Watermark, WatermarkStatus
from penstock.runtime.gate import InputGate
from penstock.runtime.input_channel import InputChannel

END = END_OF_INPUT
LAST = Watermark(MAX_WATERMARK)


def barrier(checkpoint):
    return Barrier(checkpoint, checkpoint - 1)


class Clock:
    """Stands still unless it is moved."""

    def __init__(self):
        self.now = 0

    def now_ms(self):
        return self.now

    def monotonic_ns(self):
        return self.now * 1_000_000


class Gate:
    """A gate with channels that count what they gave back."""

    def __init__(self, channels=2, exactly_once=True):
        self.clock = Clock()
        self.released = [0] * channels
        self.channels = [InputChannel(self._release(i)) for i in range(channels)]
        self.gate = InputGate(self.channels, exactly_once, self.clock)

    def _release(self, index):
        def release():
            self.released[index] += 1

        return release

    def push(self, channel, *elements):
        for element in elements:
            self.gate.push(self.channels[channel], element)

    def drain(self):
        found = []
        while (element := self.gate.poll()) is not None:
            found.append(element)
        return found


# --- batches ----------------------------------------------------------------------------------


def test_channels_are_read_in_turns():
    gate = Gate()
    gate.push(0, *([("a", n)] for n in range(4)))
    gate.push(1, *([("b", n)] for n in range(2)))
    assert [batch[0][0] for batch in gate.drain()] == ["a", "b", "a", "b", "a", "a"]


def test_a_full_channel_does_not_starve_the_others():
    gate = Gate(3)
    gate.push(0, *([0] for _ in range(1000)))
    for _ in range(10):
        gate.push(1, [1])
        gate.push(2, [2])
        assert sorted(gate.gate.poll()[0] for _ in range(3)) == [0, 1, 2]


def test_reading_a_batch_gives_its_credit_back_and_a_control_element_does_not():
    gate = Gate()
    gate.push(0, [1], Watermark(5), [2])
    assert gate.released == [0, 0]
    gate.drain()
    assert gate.released == [2, 0]


def test_nothing_to_read_is_none():
    gate = Gate()
    assert not gate.gate.has_input()
    assert gate.gate.poll() is None
    gate.push(1, [1])
    assert gate.gate.has_input()
    assert gate.gate.queued() == 1


def test_an_empty_batch_is_a_batch():
    gate = Gate(1)
    gate.push(0, [])
    assert gate.drain() == [[]]


# --- watermarks -------------------------------------------------------------------------------


def test_the_watermark_is_the_lowest_of_the_channels():
    gate = Gate()
    gate.push(0, Watermark(10))
    assert gate.drain() == []
    gate.push(1, Watermark(5))
    assert gate.drain() == [Watermark(5)]
    gate.push(1, Watermark(20))
    assert gate.drain() == [Watermark(10)]


def test_a_watermark_never_goes_back():
    gate = Gate(1)
    gate.push(0, Watermark(10), Watermark(3), Watermark(10), Watermark(11))
    assert gate.drain() == [Watermark(10), Watermark(11)]


def test_a_channel_that_ended_holds_no_watermark_back():
    gate = Gate()
    gate.push(0, Watermark(10))
    gate.push(1, END)
    assert gate.drain() == [Watermark(10)]


def test_the_channel_that_holds_the_watermark_back_is_the_slowest_that_is_open_and_active():
    gate = Gate(4)
    gate.push(0, Watermark(10))
    gate.push(1, Watermark(20))
    gate.push(2, Watermark(5), WatermarkStatus(True))
    gate.push(3, Watermark(1), END)
    gate.drain()
    assert gate.gate.holding() is gate.channels[0]
    gate.push(0, END)
    gate.push(1, END)
    gate.drain()
    assert gate.gate.holding() is None


def test_the_end_comes_once_and_last_behind_the_last_watermark():
    gate = Gate()
    gate.push(0, [1], END)
    gate.push(1, END)
    assert gate.drain() == [[1], LAST, END]


# --- barriers ---------------------------------------------------------------------------------


def test_a_barrier_comes_out_when_all_channels_have_brought_it():
    gate = Gate()
    gate.push(0, ["before"], barrier(1), ["after"])
    gate.push(1, ["other before"])
    assert gate.drain() == [["before"], ["other before"]]
    assert not gate.gate.has_input(), "a channel behind its barrier is not read"
    gate.push(1, barrier(1), ["other after"])
    assert gate.drain() == [barrier(1), ["after"], ["other after"]]


def test_at_least_once_does_not_hold_anything_back():
    gate = Gate(exactly_once=False)
    gate.push(0, ["before"], barrier(1), ["after"])
    assert gate.drain() == [["before"], ["after"]]
    gate.push(1, barrier(1))
    assert gate.drain() == [barrier(1)]


def test_watermarks_behind_a_barrier_wait_too():
    gate = Gate()
    gate.push(0, barrier(1), Watermark(10))
    gate.push(1, Watermark(10))
    assert gate.drain() == []
    gate.push(1, barrier(1))
    assert gate.drain() == [barrier(1), Watermark(10)]


def test_the_end_of_a_channel_counts_as_every_later_barrier():
    gate = Gate()
    gate.push(0, END)
    gate.push(1, ["x"], barrier(1), ["y"], barrier(2))
    assert gate.drain() == [["x"], barrier(1), ["y"], barrier(2)]


def test_the_end_of_the_last_channel_completes_a_barrier():
    gate = Gate()
    gate.push(0, barrier(1), ["behind"])
    assert gate.drain() == []
    gate.push(1, END)
    assert gate.drain() == [barrier(1), ["behind"]]


def test_an_end_behind_a_barrier_waits_for_it():
    gate = Gate()
    gate.push(0, barrier(1), END)
    gate.push(1, END)
    assert gate.drain() == [barrier(1), LAST, END]


def test_a_newer_barrier_overtakes():
    gate = Gate()
    gate.push(0, barrier(1), ["between"], barrier(2), ["after"])
    assert gate.drain() == []
    gate.push(1, barrier(2))
    # Channel 1 never brings barrier 1: it is given up, and what waited behind it is read on.
    assert gate.drain() == [["between"], barrier(2), ["after"]]


def test_a_barrier_that_was_overtaken_is_ignored_when_it_comes_late():
    gate = Gate()
    gate.push(0, barrier(2))
    gate.push(1, barrier(1), ["x"], barrier(2))
    assert gate.drain() == [["x"], barrier(2)]


def test_aborting_lets_the_waiting_channels_go():
    gate = Gate()
    gate.push(0, barrier(1), ["held"])
    assert gate.drain() == []
    gate.gate.abort(1)
    assert gate.drain() == [["held"]]
    gate.push(1, barrier(1), ["read on"])
    assert gate.drain() == [["read on"]], "the barrier of an aborted checkpoint blocks nobody"


def test_barriers_of_a_checkpoint_that_was_aborted_before_they_came_block_nobody():
    gate = Gate()
    gate.gate.abort(1)
    gate.push(0, barrier(1), ["read on"])
    assert gate.drain() == [["read on"]], "the sibling may have dropped its barrier"


def test_aborting_an_older_checkpoint_changes_nothing():
    gate = Gate()
    gate.push(0, barrier(2), ["held"])
    gate.drain()
    gate.gate.abort(1)
    assert gate.drain() == []
    gate.push(1, barrier(2))
    assert gate.drain() == [barrier(2), ["held"]]


def test_the_checkpoint_after_an_abort_aligns_anew():
    gate = Gate()
    gate.push(0, barrier(1))
    gate.drain()
    gate.gate.abort(1)
    gate.push(1, barrier(1), barrier(2), ["held"])
    assert gate.drain() == []
    gate.push(0, barrier(2))
    assert gate.drain() == [barrier(2), ["held"]]


def test_the_time_of_the_alignment_is_measured():
    gate = Gate()
    gate.push(0, barrier(1))
    gate.drain()
    gate.clock.now += 25
    gate.push(1, barrier(1))
    gate.drain()
    assert gate.gate.alignment_ns == 25_000_000


# --- any interleaving -------------------------------------------------------------------------


def channel_streams(draw, channels, checkpoints):
    """What each channel brings: records and all barriers, and for some an early end."""
    streams = []
    for channel in range(channels):
        last = draw(st.integers(0, checkpoints))
        stream, number = [], itertools.count()
        for checkpoint in range(1, last + 1):
            stream += [
                [(channel, checkpoint, next(number))] for _ in range(draw(st.integers(0, 2)))
            ]
            stream.append(barrier(checkpoint))
        stream += [[(channel, last + 1, next(number))] for _ in range(draw(st.integers(0, 2)))]
        streams.append([*stream, END])
    return streams


@given(st.data(), st.integers(1, 3), st.booleans())
def test_whatever_the_interleaving_the_cut_is_consistent(data, channels, exactly_once):
    """No record behind a barrier comes out before it (exactly once), none before it after it."""
    streams = channel_streams(data.draw, channels, 3)
    gate, out = Gate(channels, exactly_once), []
    while any(streams):
        index = data.draw(st.sampled_from([i for i, stream in enumerate(streams) if stream]))
        gate.push(index, streams[index].pop(0))
        if data.draw(st.booleans()):
            out += gate.drain()
    out += gate.drain()
    assert isinstance(out[-1], EndOfInput)
    assert sum(isinstance(element, EndOfInput) for element in out) == 1
    seen = 0
    for element in out:
        if isinstance(element, Barrier):
            # At least once, a newer barrier may overtake one that no longer completes.
            assert element.checkpoint == seen + 1 or not exactly_once
            assert element.checkpoint > seen
            seen = element.checkpoint
        elif isinstance(element, list):
            [(_, epoch, _)] = element
            assert epoch > seen, "a record before the barrier came out behind it"
            if exactly_once:
                assert epoch == seen + 1 or gate_ended(out, seen)
    for channel in range(channels):
        numbers = [e[0][2] for e in out if isinstance(e, list) and e[0][0] == channel]
        assert numbers == sorted(numbers)


def gate_ended(out, seen):
    """Whether no channel lived to bring the next barrier, so that there is none to wait for."""
    return not any(isinstance(e, Barrier) and e.checkpoint == seen + 1 for e in out)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_barrier_needs_every_channel_in_any_order(order):
    gate = Gate(3)
    for position, channel in enumerate(order):
        assert gate.drain() == []
        gate.push(channel, barrier(1))
        assert position < 2 or gate.drain() == [barrier(1)]
