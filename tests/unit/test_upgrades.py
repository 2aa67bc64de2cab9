"""A program that changes the types of its state goes on from what its older version saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from patience import PATIENCE

from penstock.checkpoint.store import CheckpointStore
from penstock.cli.main import penstock
from penstock.common import Configuration, Row, Types, WatermarkStrategy
from penstock.common.typeinfo import TypeInformation
from penstock.datastream import (
    CheckpointedFunction,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
)
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from penstock.errors import IncompatibleStateError, JobFailedError
from penstock.inspection.catalog import Catalog
from penstock.inspection.lookup import Lookup
from penstock.testing import local_environment
from penstock.testing.local_environment import LocalEnvironment

BELOW = "execution.checkpointing."
OLD = Types.ROW_NAMED(["note", "n"], [Types.STRING(), Types.INT()])
NEW = Types.ROW_NAMED(["n", "unit"], [Types.LONG(), Types.STRING()], {"unit": "kg"})


class Tally(KeyedProcessFunction):
    """Counts in a row, of whatever version, and by parity in a map."""

    def __init__(self, kind: TypeInformation, first: Row) -> None:
        self.kind = kind
        self.first = first

    def open(self, runtime_context: RuntimeContext) -> None:
        self.row = runtime_context.get_state(ValueStateDescriptor("row", self.kind))
        descriptor = MapStateDescriptor("by parity", Types.LONG(), self.kind)
        self.by_parity = runtime_context.get_map_state(descriptor)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        self.row.update(self._next(self.row.value()))
        self.by_parity.put(value % 2, self._next(self.by_parity.get(value % 2)))
        yield ctx.get_current_key(), self.row.value(), dict(self.by_parity.items())

    def _next(self, row: Row | None) -> Row:
        found = (row or self.first).as_dict()
        return Row(**{**found, "n": found["n"] + 1})


class Keep(MapFunction, CheckpointedFunction):
    def __init__(self, kind: TypeInformation, kept: Any) -> None:
        self.kind = kind
        self.kept = kept

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.state = store.get_list_state(ListStateDescriptor("kept", self.kind))
        self.found = list(self.state.get() or ())
        self.state.update([self.kept])

    def snapshot_state(self, context: Any) -> None:
        pass

    def map(self, value: Any) -> Any:
        return value, self.found


def environment(backend: str, restore: str | None = None, **more: str) -> Any:
    values = {
        BELOW + "interval": "10 ms",
        "state.backend.type": backend,
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    if restore is not None:
        values["execution.state-recovery.path"] = restore
    return local_environment(seed=5, configuration=Configuration.from_dict(values))


def tallied(
    env: LocalEnvironment, kind: TypeInformation, first: Row, last: int, parallelism: int
) -> Any:
    env.set_parallelism(parallelism)
    source = NumberSequenceSource(0, last)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    return numbers.key_by(lambda n: n % 5).process(Tally(kind, first)).uid("tally")


def stopped(
    folder: Path, backend: str, kind: TypeInformation = OLD, first: Row | None = None
) -> str:
    """A savepoint of the old version."""
    with environment(backend) as env:
        first = first or Row(note="old", n=0)
        tallied(env, kind, first, 10**9, 2).filter(lambda _: False).print()
        job = env.execute_async("old")
        while job.progress().completed_checkpoints < 2:
            pass
        path: str = job.stop_with_savepoint(False, str(folder)).result(PATIENCE)
        return path


@pytest.mark.parametrize("parallelism", [2, 3])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_savepoint_is_migrated(tmp_path: Path, backend: str, parallelism: int) -> None:
    path = stopped(tmp_path / "savepoints", "hashmap" if backend == "rocksdb" else "rocksdb")
    catalog = Catalog.open(path)
    state = catalog.operator("tally").state("row")
    before = {key: row["n"] for key, row in Lookup(catalog, "tally", state, trust=True).entries()}
    done = sum(before.values())
    assert len(before) == 5
    with environment(backend, path) as env:
        results = list(
            tallied(env, NEW, Row(n=0, unit="g"), 5 * done - 1, parallelism).execute_and_collect()
        )
    assert len(results) == 4 * done, "the rest of the numbers"
    last = {key: (row, parts) for key, row, parts in sorted(results, key=lambda r: r[1]["n"])}
    assert set(last) == set(before)
    for row, parts in last.values():
        assert row == Row(n=done, unit="kg"), "each number was counted once, before or after"
        assert sum(part["n"] for part in parts.values()) == row["n"]
        assert {part["unit"] for part in parts.values()} == {"kg"}


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_after_a_migration_checkpoints_hold_the_new_type_only(tmp_path: Path, backend: str) -> None:
    path = stopped(tmp_path / "savepoints", backend)
    more = {
        BELOW + "dir": str(tmp_path / "checkpoints"),
        BELOW + "externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        # An attempt that fails goes on from a checkpoint of the new version.
        "restart-strategy.type": "fixed-delay",
    }
    with environment(backend, path, **more) as env:
        tallied(env, NEW, Row(n=0, unit="g"), 10**9, 2).filter(lambda _: False).print()
        job = env.execute_async("new")
        while job.progress().completed_checkpoints < 3:
            pass
        job.cancel().result(PATIENCE)
    [folder] = (tmp_path / "checkpoints").iterdir()
    store = CheckpointStore(str(tmp_path / "checkpoints"), folder.name)
    checkpoint = folder / f"chk-{store.whole()[-1]}"
    catalog = Catalog.open(str(checkpoint))
    state = catalog.operator("tally").state("row")
    assert state.type_info == NEW
    rows = dict(Lookup(catalog, "tally", state, trust=True).entries())
    assert len(rows) == 5 and {row["unit"] for row in rows.values()} == {"kg"}
    # The checkpoint goes on too, with a further change.
    newest = Types.ROW_NAMED(["n"], [Types.BIG_INT()])
    done = sum(row["n"] for row in rows.values())
    with environment(backend, str(checkpoint)) as env:
        results = list(tallied(env, newest, Row(n=0), 5 * done - 1, 2).execute_and_collect())
    last = {key: row for key, row, _ in sorted(results, key=lambda result: result[1]["n"])}
    assert last == dict.fromkeys(range(5), Row(n=done))


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_another_type_fails_the_job_at_once_and_names_both(tmp_path: Path, backend: str) -> None:
    path = stopped(tmp_path / "savepoints", backend)
    narrow = Types.ROW_NAMED(["n"], [Types.SHORT()])
    with environment(backend, path) as env:
        results = tallied(env, narrow, Row(n=0), 10**9, 2).execute_and_collect()
        with pytest.raises(JobFailedError) as failed:
            list(results)
    cause = failed.value.__cause__
    assert isinstance(cause, IncompatibleStateError)
    assert str(cause) == (
        "operator 'KeyedProcess' (uid tally): state 'row' was saved with the type "
        "ROW(note: STRING, n: INT) and is now declared with ROW(n: SHORT): field 'n': INT cannot "
        "become SHORT; give it a new name or declare it as it was"
    )


def test_operator_state_is_migrated_in_a_job(tmp_path: Path) -> None:
    def kept(env: LocalEnvironment, function: Keep, last: int) -> Any:
        source = NumberSequenceSource(0, last)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "n").uid("numbers")
        return numbers.map(function).uid("keep")

    with environment("hashmap") as env:
        kept(env, Keep(OLD, Row(note="old", n=7)), 10**9).filter(lambda _: False).print()
        job = env.execute_async("old")
        while job.progress().completed_checkpoints < 2:
            pass
        path = job.stop_with_savepoint(False, str(tmp_path)).result(PATIENCE)
    with environment("hashmap", path) as env:
        _, found = next(kept(env, Keep(NEW, Row(n=1, unit="g")), 10**9).execute_and_collect())
    assert found == [Row(n=7, unit="kg")]


# --- a dry run --------------------------------------------------------------------------------

PROGRAM = """
from penstock.common import Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor


class Tally(KeyedProcessFunction):
    def open(self, runtime_context):
        STATES

    def process_element(self, value, ctx):
        pass


env = StreamExecutionEnvironment.get_execution_environment()
source = NumberSequenceSource(0, 10**12)
stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
stream.key_by(lambda n: n % 5).process(Tally()).name("Tally").uid("tally").print()
env.execute()
"""


def dry_run(tmp_path: Path, savepoint: str, *states: str) -> tuple[int, list[str]]:
    job = tmp_path / "job.py"
    job.write_text(PROGRAM.replace("STATES", "\n        ".join(states)))
    command = ["run", "--dry-run", "-s", savepoint, str(job)]
    told = CliRunner().invoke(penstock, command, standalone_mode=False)
    return told.return_value, told.output.splitlines()


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return stopped(tmp_path_factory.mktemp("savepoints"), "hashmap")


def test_a_dry_run_tells_of_every_state(tmp_path: Path, savepoint: str) -> None:
    code, lines = dry_run(
        tmp_path,
        savepoint,
        'row = Types.ROW_NAMED(["n", "unit"], [Types.LONG(), Types.STRING()])',
        'runtime_context.get_state(ValueStateDescriptor("row", row))',
        'runtime_context.get_state(ValueStateDescriptor("more", Types.STRING()))',
    )
    assert code == 0 and lines[-1] == "the job would start"
    told = [line.split(maxsplit=1) for line in lines if "state '" in line]
    assert told == [
        ["dropped", "map state 'by parity': its function does not ask for it when it is opened"],
        [
            "migrated",
            "value state 'row': ROW(note: STRING, n: INT) becomes ROW(n: LONG, unit: STRING)",
        ],
        ["new", "value state 'more': STRING"],
    ]


def test_a_dry_run_tells_what_is_incompatible(tmp_path: Path, savepoint: str) -> None:
    code, lines = dry_run(
        tmp_path,
        savepoint,
        'runtime_context.get_state(ValueStateDescriptor("row", Types.STRING()))',
        'runtime_context.get_state(ValueStateDescriptor("by parity", Types.STRING()))',
    )
    assert code == 1
    [first, second] = [line.split(maxsplit=1) for line in lines if "incompatible" in line]
    assert first == ["incompatible", "map state 'by parity'"]
    assert second == ["incompatible", "value state 'row'"]
    assert any(
        "'row' was saved with the type ROW(note: STRING, n: INT) and is now declared with STRING"
        in line
        for line in lines
    )
    assert lines[-1].startswith(
        "the job would not start: Tally (uid tally): state 'by parity' was saved as map state"
    )


def test_a_dry_run_says_what_it_cannot_know(tmp_path: Path, savepoint: str) -> None:
    code, lines = dry_run(tmp_path, savepoint, "raise OSError('no server here')")
    assert code == 0
    assert any("unknown      value state 'row': which states it declares" in x for x in lines)
