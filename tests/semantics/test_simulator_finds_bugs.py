"""Does the simulator find bugs? Each test plants one, and some seed must fail because of it.

The bugs are the ones that a stream processor is likely to have: each breaks one rule of barriers,
checkpoints, commits, channels or state. A bug that no seed finds would mean that the simulator
looks away.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import planted_bugs
import pytest
from planted_bugs import GONE, HANGS, LEFT_OVER, LOST, TWICE, WRONG, Bugs, finds, problem_of

import penstock.runtime.chain as chain
import penstock.runtime.keyed_operator as keyed_operator
import penstock.runtime.output as output
import penstock.state.compaction as compaction
import penstock.state.operator_state as operator_state
from penstock.checkpoint.store import CheckpointStore
from penstock.connectors.file_sink import _FileCommitter
from penstock.connectors.generator import _GeneratorReader
from penstock.jobmanager.checkpoints import Checkpoints
from penstock.jobmanager.results import ResultGate
from penstock.jobmanager.retained import Retained
from penstock.network.frames import FrameKind
from penstock.runtime import ends
from penstock.runtime.ends import RuntimeSink
from penstock.runtime.gate import InputGate
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.runtime.operator_cut import OperatorCut
from penstock.runtime.output import OutputChannel
from penstock.runtime.segment_chain import SegmentChain
from penstock.runtime.slot import Slot
from penstock.runtime.subtask import Subtask
from penstock.state.entries import decode_entries
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import HashMapListState, HashMapValueState
from penstock.state.marks import mark_of
from penstock.state.operator_state import OperatorStateBackend
from penstock.state.timers import TimerQueue
from penstock.testing import simulator
from penstock.testing.faults import FaultRates
from penstock.testing.scenarios import Scenario

MOST_SEEDS = 400

BUGS = Bugs()


# --- barriers ---------------------------------------------------------------------------------


@BUGS.shown_by(WRONG)
def barriers_are_not_aligned(patch: pytest.MonkeyPatch) -> None:
    original = InputGate.__init__

    def init(self: InputGate, channels: Any, exactly_once: bool, clock: Any) -> None:
        original(self, channels, False, clock)

    patch.setattr(InputGate, "__init__", init)


@BUGS.shown_by(HANGS)
def the_end_of_input_is_no_barrier(patch: pytest.MonkeyPatch) -> None:
    original = InputGate._check_aligned

    def check(self: InputGate) -> None:
        if self._aligning is None or len(self._arrived) == len(self.channels):
            original(self)

    patch.setattr(InputGate, "_check_aligned", check)


@BUGS.shown_by(HANGS)
def an_abort_is_forgotten_until_the_barrier_comes(patch: pytest.MonkeyPatch) -> None:
    def abort(self: InputGate, checkpoint: int) -> None:
        if self._aligning is not None and self._aligning.checkpoint == checkpoint:
            self._last_barrier = checkpoint
            self._stop_aligning()

    patch.setattr(InputGate, "abort", abort)


# --- channels ---------------------------------------------------------------------------------


@BUGS.shown_by("its credits are")
def credits_count_twice(patch: pytest.MonkeyPatch) -> None:
    original = OutputChannel.grant
    patch.setattr(OutputChannel, "grant", lambda self, credits: original(self, 2 * credits))


@BUGS.shown_by(LOST)
def a_gap_in_a_channel_is_not_seen(patch: pytest.MonkeyPatch) -> None:
    original = Slot._frame

    def frame(self: Slot, frame: Any) -> None:
        if frame.kind != FrameKind.CREDIT and frame.attempt == self.attempt:
            self._built.receivers[frame[2:5]][1].sequence = frame.sequence - 1
        original(self, frame)

    patch.setattr(Slot, "_frame", frame)


@BUGS.shown_by(HANGS)
def nobody_counts_what_went_into_a_link(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Slot, "_count", lambda self: None)


@BUGS.shown_by(WRONG)
def records_are_not_isolated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chain, "isolate", lambda value: value)
    patch.setattr(output, "isolator", lambda deep: lambda value: value)


# --- sources ----------------------------------------------------------------------------------


@BUGS.shown_by(WRONG)
def enumerators_are_asked_late(patch: pytest.MonkeyPatch) -> None:
    original = Checkpoints.acknowledged

    def acknowledged(self: Checkpoints, message: Any) -> None:
        if message.checkpoint in self._enumerator_states:
            self._enumerator_states[message.checkpoint] = self._attempt.enumerator_states()
        original(self, message)

    patch.setattr(Checkpoints, "acknowledged", acknowledged)


@BUGS.shown_by(WRONG)
def splits_reach_the_reader_before_the_checkpoint(patch: pytest.MonkeyPatch) -> None:
    def assign(
        self: Subtask, splits: Any, ask_again_ms: int | None, waited_for: bool = False
    ) -> None:
        assert self._reading is not None
        self._reading.assign(splits, ask_again_ms, waited_for)

    patch.setattr(Subtask, "assign", assign)


@BUGS.shown_by(WRONG)
def a_reader_is_one_record_ahead(patch: pytest.MonkeyPatch) -> None:
    def snapshot(self: _GeneratorReader) -> list[Any]:
        return [{**split, "next": split["next"] + split["step"]} for split in self._splits]

    patch.setattr(_GeneratorReader, "snapshot", snapshot)


# --- state ------------------------------------------------------------------------------------


@BUGS.shown_by(WRONG)
def changes_count_as_safe_at_the_cut(patch: pytest.MonkeyPatch) -> None:
    original = RuntimeKeyedFunction.cut

    def cut(self: RuntimeKeyedFunction, checkpoint: int) -> OperatorCut:
        made = original(self, checkpoint)
        self.state.confirm(mark_of(checkpoint))
        return made

    patch.setattr(RuntimeKeyedFunction, "cut", cut)


@BUGS.shown_by(WRONG)
def deletions_are_not_restored(patch: pytest.MonkeyPatch) -> None:
    def restore(self: HashMapBackend, blocks: Any) -> None:
        for block in blocks:
            keys, values, _ = decode_entries(block.payload, block.schema)
            entries = self.table(block.state, block.kind).entries
            entries.update(zip(keys, values, strict=True))

    patch.setattr(HashMapBackend, "restore", restore)


@BUGS.shown_by(WRONG)
def a_value_changed_in_place_is_not_a_change(patch: pytest.MonkeyPatch) -> None:
    def value(self: Any) -> Any:
        return self._entries.get(self._key_context.key)

    patch.setattr(HashMapValueState, "value", value)
    patch.setattr(HashMapListState, "_read", value)


@BUGS.shown_by(LOST)
def timers_are_not_restored(patch: pytest.MonkeyPatch) -> None:
    original = TimerQueue.__init__

    def init(self: TimerQueue, table: Any) -> None:
        original(self, table)
        self._heap.clear()

    patch.setattr(TimerQueue, "__init__", init)


@BUGS.shown_by(GONE)
def shared_segments_are_deleted(patch: pytest.MonkeyPatch) -> None:
    original = Retained.take_superfluous

    def take(self: Retained, settled: int, needed: int | None) -> Any:
        known = dict(self._references)
        gone = original(self, settled, needed)
        return {checkpoint: known.get(checkpoint, gone[checkpoint]) for checkpoint in gone}

    patch.setattr(Retained, "take_superfluous", take)


@BUGS.shown_by(WRONG)
def segments_are_restored_newest_first(patch: pytest.MonkeyPatch) -> None:
    original = RuntimeKeyedFunction.restore

    def restore(self: RuntimeKeyedFunction, snapshot: Any, store: Any) -> None:
        original(self, replace(snapshot, segments=snapshot.segments[::-1]), store)

    patch.setattr(RuntimeKeyedFunction, "restore", restore)


@BUGS.shown_by(WRONG)
def files_of_a_database_are_restored_over_deltas(patch: pytest.MonkeyPatch) -> None:
    original = keyed_operator.keyed_parts
    last = lambda files: sorted(original(files), key=lambda part: part.database is not None)  # noqa: E731
    patch.setattr(keyed_operator, "keyed_parts", last)


@BUGS.shown_by(WRONG)
def compaction_prefers_what_is_older(patch: pytest.MonkeyPatch) -> None:
    original = compaction.merge_entries
    reverse = lambda kind, payloads, **how: original(kind, payloads[::-1], **how)  # noqa: E731
    patch.setattr(compaction, "merge_entries", reverse)


@BUGS.shown_by(WRONG)
def a_merged_segment_hides_what_came_meanwhile(patch: pytest.MonkeyPatch) -> None:
    def current(self: SegmentChain) -> Any:
        return self._settled if self._replaced is None else (self._replaced[1],)

    patch.setattr(SegmentChain, "_current", current)


@BUGS.shown_by(LOST)
def operator_state_is_not_restored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OperatorStateBackend, "restore", lambda self, segments, place: None)


@BUGS.shown_by(TWICE)
def union_state_is_given_out_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(operator_state, "union", lambda parts: [e for p in parts for e in (*p, *p)])


# --- output -----------------------------------------------------------------------------------


@BUGS.shown_by(LOST)
def output_of_aborted_checkpoints_is_dropped(patch: pytest.MonkeyPatch) -> None:
    def cut(self: RuntimeSink, checkpoint: int) -> OperatorCut:
        prepared = ends._Prepared(self.writer.prepare_commit())
        return OperatorCut(self.node.uid, checkpoint, prepare=prepared.finish)

    patch.setattr(RuntimeSink, "cut", cut)


@BUGS.shown_by(WRONG)
def checkpoints_are_abandoned_without_a_tombstone(patch: pytest.MonkeyPatch) -> None:
    def abandon(self: CheckpointStore, checkpoint: int) -> bool:
        fs, path = self._metadata_path(checkpoint)
        return not fs.exists(path)

    patch.setattr(CheckpointStore, "abandon", abandon)


@BUGS.shown_by(LEFT_OVER)
def old_output_is_not_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_FileCommitter, "abort_others", lambda self, keep: None)


BUGS.shown_by(LOST)(planted_bugs.recovery_does_not_commit_again)


@BUGS.shown_by(TWICE)
def results_of_a_failed_attempt_are_let_through(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ResultGate, "forget", lambda self: None)


LOSSY = FaultRates(lost_frame=0.003, budget=3)
RESTORES = FaultRates(crash_soon=0.1, crash=0.001, expiry=0.003, budget=12)
UNDECIDED = FaultRates(manifest_error=0.3, crash=0.005, budget=40)
GIVEN_UP = FaultRates(expiry=0.01, budget=30)
RATES = {
    "a_gap_in_a_channel_is_not_seen": LOSSY,
    "nobody_counts_what_went_into_a_link": LOSSY,
    "changes_count_as_safe_at_the_cut": RESTORES,
    "deletions_are_not_restored": RESTORES,
    "a_value_changed_in_place_is_not_a_change": RESTORES,
    "timers_are_not_restored": RESTORES,
    "shared_segments_are_deleted": RESTORES,
    "segments_are_restored_newest_first": RESTORES,
    "compaction_prefers_what_is_older": RESTORES,
    "files_of_a_database_are_restored_over_deltas": RESTORES,
    "a_merged_segment_hides_what_came_meanwhile": RESTORES,
    "operator_state_is_not_restored": RESTORES,
    "union_state_is_given_out_twice": RESTORES,
    "results_of_a_failed_attempt_are_let_through": RESTORES,
    "splits_reach_the_reader_before_the_checkpoint": RESTORES,
    "recovery_does_not_commit_again": FaultRates(storage_error=0.05, budget=20),
    "output_of_aborted_checkpoints_is_dropped": GIVEN_UP,
    "checkpoints_are_abandoned_without_a_tombstone": UNDECIDED,
    "an_abort_is_forgotten_until_the_barrier_comes": GIVEN_UP,
}
"""Where a bug needs a certain kind of fault, more of that kind: the suite has less time here."""


class Unswept(Scenario):
    """A scenario in which nobody deletes what leads nowhere before it can do harm."""

    def grace_ms(self, rng: random.Random) -> int:
        return 3_600_000


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "MAX_TICKS", 20_000)
    # Unaligned checkpoints and the changelog have planted bugs of their own.
    rates = RATES.get(name)
    look = problem_of(lambda seed: Unswept(seed, rates, unaligned=False, changelog=False))
    finds(*BUGS[name], look, range(MOST_SEEDS))
