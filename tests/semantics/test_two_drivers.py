"""Two drivers of one job id and one storage: every order of their calls, not a sample of them.

A driver does what a JobMaster does with its `CheckpointStore`, in the same order: it claims the
job, looks for the newest checkpoint, notes where it begins, commits what that covers, and takes
checkpoints of its own, of one record each, which it commits. Each may stop for ever at any point:
whatever the two have left then, a third driver goes on from there.

docs/adr/0010-generations-keep-drivers-apart.md has the rules that are tried here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from all_schedules import Call, Ended, Explorer, Files, run_alone
from planted_bugs import Bug

from penstock.checkpoint.generations import Generations
from penstock.checkpoint.metadata import CheckpointMetadata, encode_metadata
from penstock.checkpoint.store import CheckpointStore
from penstock.common.filesystem import filesystem_for
from penstock.errors import CorruptCheckpointError, SupersededError

JOB = "job"
ROOT = f"/checkpoints/{JOB}"


class Driver:
    """Takes `checkpoints` checkpoints, keeps `retained` of them, and may end the job.

    Whoever finds nothing begins at the beginning; with `new_runs` that is a new run of the job.
    """

    def __init__(
        self, checkpoints: int, retained: int = 1, ends: bool = False, new_runs: bool = False
    ) -> None:
        self._new_runs = new_runs or ends
        self._checkpoints = checkpoints
        self._retained = retained
        self._ends = ends

    def __call__(self, storage: str) -> tuple[str, int]:
        """Which run of the job it was part of, and how many records are covered in the end."""
        store = CheckpointStore(f"{storage}/checkpoints", JOB).claim()
        first = store.first_id()
        newest, damaged = store.newest()
        store.note_start(newest.checkpoint if newest is not None else 0)
        if newest is None and damaged:
            raise CorruptCheckpointError("; ".join(damaged))
        # Where nobody ends the job there is one run of it, whoever has to begin at the beginning.
        run, covered, kept = f"run-{store.generation if self._new_runs else 0}", 0, list[int]()
        if newest is not None:
            run, covered, kept = str(newest.enumerators["run"]), newest.attempt, [newest.checkpoint]
            commit(storage, newest)
        for checkpoint in range(first, first + self._checkpoints):
            manifest = covering(covered + 1, checkpoint, run, store.generation)
            if not store.complete(manifest) and store.abandon(checkpoint):
                continue
            covered += 1
            commit(storage, manifest)
            kept.append(checkpoint)
            while len(kept) > self._retained:
                store.discard(kept.pop(0), frozenset())
        if self._ends:
            store.discard_all()
        return run, covered


def covering(record: int, checkpoint: int, run: str, generation: int) -> CheckpointMetadata:
    """A manifest; how many records it covers stands where an attempt has its number."""
    output = {"sink": (f"{run}/{record}-of-{generation}",)}
    return CheckpointMetadata(JOB, checkpoint, record, 0, {}, {"run": run}, output)


def commit(storage: str, manifest: CheckpointMetadata) -> None:
    for name in manifest.committables["sink"]:
        fs, path = filesystem_for(f"{storage}/out/{name}")
        fs.create(path, b"")


def visible(files: Files, run: str) -> Counter[int]:
    """How often each record of a run is out."""
    prefix = f"/out/{run}/"
    names = (path.removeprefix(prefix) for path in files if path.startswith(prefix))
    return Counter(int(name.split("-")[0]) for name in names)


def runs(files: Files) -> set[str]:
    return {path.split("/")[2] for path in files if path.startswith("/out/")}


def every_record_is_out_once(files: Files) -> None:
    """None is out twice; and if both drivers die now, a third has every record out once."""
    for run in runs(files):
        out = visible(files, run)
        assert set(out.values()) == {1}, f"records are out more than once: {out}"
    third, after = run_alone(Driver(1, new_runs="run-0" not in runs(files)), files)
    assert third.error is None, f"a third driver fails: {third.error}"
    run, covered = third.result
    assert visible(after, run) == Counter(range(1, covered + 1)), f"the third driver finds {run}"


def one_is_superseded(files: Files, due: list[Call | Ended]) -> None:
    """Of two that have come to their end the older one has found out, or had ended the job."""
    errors = [each.error for each in due if isinstance(each, Ended)]
    assert all(isinstance(error, SupersededError | None) for error in errors), errors
    if len(errors) == 2 and len(runs(files)) > 1:
        assert errors == [None, None], f"a new run began, and the first has not ended: {errors}"


BEGUN = run_alone(Driver(1), {})[1]
"""What is stored when a driver has taken a checkpoint and died."""


@pytest.mark.parametrize(
    ("drivers", "files"),
    [
        pytest.param([Driver(1), Driver(1)], {}, id="both-begin"),
        pytest.param([Driver(2), Driver(1)], BEGUN, id="both-go-on", marks=pytest.mark.full),
        pytest.param(
            [Driver(1, ends=True), Driver(1, new_runs=True)],
            {},
            id="one-ends",
            marks=pytest.mark.full,
        ),
        pytest.param(
            [Driver(1, ends=True), Driver(1, ends=True)], {}, id="both-end", marks=pytest.mark.full
        ),
    ],
)
def test_every_order_of_calls_counts_every_record_once(drivers: list[Driver], files: Files) -> None:
    explorer = Explorer(drivers, every_record_is_out_once, one_is_superseded, files)
    explorer.explore()
    assert explorer.states > 1000, "too few schedules"
    assert explorer.ends > 10


# --- one checkpoint is damaged ----------------------------------------------------------------


def damages(files: Files) -> Iterator[tuple[str, Files]]:
    """The newest of several checkpoints cannot be read any more."""
    manifests = sorted(path for path in files if path.endswith("/_metadata"))
    if len(manifests) > 1:
        yield f"damage {manifests[-1]}", {**files, manifests[-1]: b"damaged"}


@pytest.mark.parametrize("retained", [1, pytest.param(2, marks=pytest.mark.full)])
def test_damage_never_makes_a_driver_begin_anew(retained: int) -> None:
    """It falls back to an older checkpoint, or refuses to start where that is gone."""
    refused: list[str] = []

    def check(files: Files, due: list[Call | Ended]) -> None:
        for each in due:
            if isinstance(each, Ended) and isinstance(each.error, CorruptCheckpointError):
                refused.append(str(each.error))
            elif isinstance(each, Ended):
                assert isinstance(each.error, SupersededError | None), each.error
        assert len(runs(files)) <= 1, "a driver has begun anew"

    before = run_alone(Driver(retained, retained), {})[1]
    drivers = [Driver(1, retained), Driver(1, retained)]
    Explorer(drivers, lambda files: None, check, before, damages).explore()
    # The gap of ADR 10: the only older checkpoint was deleted by a driver that had been paused.
    assert bool(refused) == (retained == 1)


# --- are bugs found? --------------------------------------------------------------------------


def looks_before_it_writes(patch: pytest.MonkeyPatch) -> None:
    def complete(self: CheckpointStore, metadata: CheckpointMetadata) -> bool:
        self.check_current()
        fs, path = self._metadata_path(metadata.checkpoint)
        return fs.create(path, encode_metadata(metadata))

    patch.setattr(CheckpointStore, "complete", complete)


def does_not_look_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Generations, "check", lambda self, mine: None)


def ends_without_a_mark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Generations, "end", lambda self, mine: self.check(mine))


@pytest.mark.parametrize(
    ("bug", "ends"),
    [
        (looks_before_it_writes, False),
        (does_not_look_again, False),
        (ends_without_a_mark, True),
    ],
)
def test_a_schedule_shows_the_bug(bug: Bug, ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    drivers = [Driver(1, ends=ends), Driver(1, new_runs=ends)]
    explorer = Explorer(drivers, every_record_is_out_once, one_is_superseded)
    with pytest.raises(AssertionError, match=r"(?s)(out more than once|third driver|new run).*1: "):
        explorer.explore()
