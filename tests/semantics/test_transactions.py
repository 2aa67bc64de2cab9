"""Jobs that write to a broker in transactions, which time out, are fenced and are forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from planted_bugs import LOST, TWICE, Bugs, finds, problem_of
from seed_frame import chunks, verify

from penstock.checkpoint import commit_marks
from penstock.connectors.kafka.committer import KafkaCommitter
from penstock.connectors.kafka.coordinator import Transaction
from penstock.connectors.kafka.transactional_writer import TransactionalKafkaWriter
from penstock.connectors.kafka.transactions import Committable
from penstock.errors import LostOutputError
from penstock.jobmanager import recovery
from penstock.jobmanager.committing import Commits
from penstock.jobmanager.completion import Completion
from penstock.testing import takeovers
from penstock.testing.transactions.scenarios import SinkScenario


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seeds", chunks(20, 60))
def test_every_record_is_visible_once_or_the_job_was_right_to_stop(seeds: range) -> None:
    verify("transactions", seeds)


@pytest.mark.parametrize("seed", [5, 14])
def test_the_same_seed_gives_the_same_run(seed: int) -> None:
    first, second = SinkScenario(seed).run(), SinkScenario(seed).run()
    assert first.simulation.trace == second.simulation.trace
    assert first.simulation.faults == second.simulation.faults
    assert first.broker.committed == second.broker.committed


# --- does it find bugs? -----------------------------------------------------------------------

BUGS = Bugs()


@BUGS.shown_by(LOST)
def a_job_goes_on_without_what_was_lost(patch: pytest.MonkeyPatch) -> None:
    original = KafkaCommitter.commit

    def commit(self: KafkaCommitter, committables: list[Any]) -> None:
        try:
            original(self, committables)
        except LostOutputError as error:
            original(self, [each for each in committables if each not in error.lost])

    patch.setattr(KafkaCommitter, "check", lambda *_: None)
    patch.setattr(KafkaCommitter, "commit", commit)


@BUGS.shown_by("which had timed out before")
def prepared_output_is_not_asked_for_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionalKafkaWriter, "check_prepared", lambda *_: None)


@BUGS.shown_by(LOST)
def a_commit_is_marked_before_it_is_carried_out(patch: pytest.MonkeyPatch) -> None:
    original = Completion.commit

    def commit(
        self: Completion, settled: Callable[[], None], mark: Callable[[], None] = lambda: None
    ) -> None:
        mark()
        original(self, settled, mark)

    patch.setattr(Completion, "commit", commit)


@BUGS.shown_by("committed and called lost")
def nobody_looks_for_marks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit_marks, "is_marked", lambda folder: False)


@BUGS.shown_by("holds readers back")
def what_a_checkpoint_covers_is_spared_and_not_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "_commit", lambda *_: [])


@BUGS.shown_by(TWICE)
def what_was_forgotten_is_taken_for_never_committed(patch: pytest.MonkeyPatch) -> None:
    def visible(prepared: list[Committable], known: dict[str, Transaction]) -> list[Committable]:
        return [one for one in prepared if one.id in known and one.is_committed(known[one.id])]

    patch.setattr("penstock.connectors.kafka.committer._visible", visible)


@BUGS.shown_by(TWICE)
def a_loss_tells_nothing_of_other_sinks(patch: pytest.MonkeyPatch) -> None:
    original = Commits.commit

    def commit(self: Commits, committables: Any) -> None:
        try:
            original(self, committables)
        except LostOutputError as error:
            error.visible = ()
            raise

    patch.setattr(Commits, "commit", commit)


@BUGS.shown_by("and was fenced")
def a_driver_fences_the_writers_of_its_successor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KafkaCommitter, "_is_later", lambda self, name: False)


@BUGS.shown_by("committed and called lost")
def a_repeated_commit_is_taken_for_a_loss(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Committable,
        "is_committed",
        lambda self, now: self.is_this(now) and now.state == "PrepareCommit",
    )


@pytest.mark.parametrize("name", BUGS)
def test_some_seed_finds_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeovers, "_MOST_TICKS", 60_000)
    finds(*BUGS[name], problem_of(SinkScenario), range(400))
