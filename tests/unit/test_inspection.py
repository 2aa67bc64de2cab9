"""Looking into savepoints: what is there, and what is stored for a key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from patience import PATIENCE

from penstock.checkpoint.handles import SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.checkpoint.store import CheckpointStore
from penstock.cli.main import penstock, run
from penstock.cli.state_text import text_of
from penstock.common import Time, Types, WatermarkStrategy
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
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import CheckpointError, PenstockError
from penstock.inspection.catalog import Catalog, StateInfo
from penstock.inspection.lookup import Lookup, candidates
from penstock.inspection.shapes import shape_of
from penstock.state_api import SavepointWriter
from penstock.testing import local_environment

KEPT = str(Path(__file__).parent / "kept" / "first" / "values-lists-and-maps" / "savepoint")
ANY = Types.PICKLED_BYTE_ARRAY()


def get(*words: str) -> list[str]:
    told = CliRunner().invoke(penstock, ["state", "get", *words], standalone_mode=False)
    assert told.return_value == 0, told
    return told.output.splitlines()


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(["state", "get", *words]) == 1
    [line] = capsys.readouterr().err.splitlines()
    return line


# --- a savepoint that is kept -----------------------------------------------------------------


def test_what_is_there() -> None:
    listed = CliRunner().invoke(penstock, ["state", "ls", KEPT]).output
    assert listed.startswith("savepoint 1 of job ") and "for any state backend" in listed
    assert "(uid remember): " in listed and "parallelism 2 of 128" in listed
    assert "  value state 'count': LONG, " in listed
    assert "  list state 'last': LIST(PICKLED_BYTE_ARRAY), " in listed
    assert "  map state 'by tens': MAP(LONG, LONG), " in listed
    assert "  timers state '__event_timers': " in listed
    assert "  source positions" in listed


def test_states_are_told_without_reading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(*_: object) -> bytes:
        raise AssertionError("read as a whole")

    monkeypatch.setattr(CheckpointStore, "read_segment", whole)
    operator = Catalog.open(KEPT).operator("remember")
    assert {state.name for state in operator.states} == {
        *("count", "last", "by tens"),
        *("__event_timers",),
    }
    assert all(state.size > 0 and state.keyed for state in operator.states)


@pytest.mark.parametrize("key", range(7))
def test_what_a_key_has(key: int) -> None:
    numbers = range(key, 1000, 7)
    at = [KEPT, "--trust", "--uid", "remember", "--key", str(key)]
    assert get(*at, "--state", "count") == [str(len(numbers))]
    assert get(*at, "--state", "last") == [str(number) for number in numbers[-3:]]
    tens = get(*at, "--state", "by tens")
    assert tens[0].split(": ")[0].isdigit() and sum(int(t.split(": ")[1]) for t in tens) == len(
        numbers
    )
    assert get(*at, "--state", "__event_timers") == [f"{2**63 - 1} (the end of time)"]


def test_without_a_key_the_first_entries() -> None:
    at = [KEPT, "--uid", "remember", "--state"]
    assert sorted(get(*at, "count")) == [f"{k}: {len(range(k, 1000, 7))}" for k in range(7)]
    assert len(get(*at, "count", "--limit", "3")) == 4
    assert get(*at, "count", "--limit", "3")[-1] == "... and 4 more"
    assert len(get("--trust", *at, "last")) == 4 * 7


def test_what_is_not_there_is_one_line_that_lists_what_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = refused(capsys, KEPT, "--uid", "other", "--state", "count", "--key", "1")
    assert "has no operator with uid 'other'; it has " in line and "'remember' (" in line
    line = refused(capsys, KEPT, "--uid", "remember", "--state", "other", "--key", "1")
    assert "operator 'remember' has no state 'other'; it has " in line
    assert "'by tens' (map)" in line and "'count' (value)" in line
    line = refused(capsys, KEPT, "--uid", "remember", "--state", "count", "--key", "seven")
    assert "state 'count' of 'remember' has no key seven; it has 7: " in line
    line = refused(capsys, KEPT + "x", "--uid", "remember", "--state", "count", "--key", "1")
    assert "there is no savepoint or checkpoint" in line


# --- keys of every type -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("42", 42),
        ("-1.5", -1.5),
        ("true", True),
        ("null", None),
        ('"42"', "42"),
        ("merchant", "merchant"),
        ('["a", [1, 2]]', ("a", (1, 2))),
        ("[1", "[1"),
        ('{"a": 1}', '{"a": 1}'),
    ],
)
def test_keys_are_json_or_text(text: str, first: Any) -> None:
    assert candidates(text)[0] == first
    assert candidates(text)[-1] == text


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("seen", Types.STRING())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.seen = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self.seen.update(repr(value))


class Keep(MapFunction, CheckpointedFunction):
    """Keeps the last record of every subtask, and a rule that all have."""

    last: Any = None

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.state = store.get_list_state(ListStateDescriptor("last", Types.LONG()))
        descriptor = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
        self.rules = store.get_broadcast_state(descriptor)
        self.rules.put("limit", 10)

    def snapshot_state(self, context: Any) -> None:
        self.state.update([] if self.last is None else [self.last])

    def map(self, value: Any) -> Any:
        self.last = value
        return value


KEYS: list[Any] = ["text", "7", 7, ("pair", 1), 2.5, b"raw", frozenset({1})]


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("savepoints")
    keys = KEYS
    with local_environment(seed=2) as env:
        env.set_parallelism(2)
        timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda number, _: number
        )
        source = NumberSequenceSource(0, 10**9)
        numbers = env.from_source(source, timed, "numbers").uid("numbers")
        kept = numbers.map(Keep(), Types.LONG()).uid("keep")
        kept.key_by(lambda n: keys[n % len(keys)]).process(Remember()).uid("remember").print()
        windows = kept.key_by(lambda n: n % 2).window(
            TumblingEventTimeWindows.of(Time.milliseconds(100))
        )
        windows.reduce(lambda a, b: a + b).uid("windows").filter(lambda _: False).print()
        job = env.execute_async("remembered")
        while sum(m.records_in for m in job.progress().metrics.values()) < 400:
            pass
        path = job.stop_with_savepoint(False, str(folder)).result(PATIENCE)
        yield path


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("text", "text"),
        ('"7"', "7"),
        ("7", 7),
        ('["pair", 1]', ("pair", 1)),
        ("('pair', 1)", ("pair", 1)),
        ("2.5", 2.5),
        ("b'raw'", b"raw"),
        ("frozenset({1})", frozenset({1})),
    ],
)
def test_a_key_is_found_whatever_it_is(savepoint: str, text: str, key: Any) -> None:
    catalog = Catalog.open(savepoint)
    state = catalog.operator("remember").state("seen")
    lookup = Lookup(catalog, "remember", state, trust=True)
    value, updated = lookup.find(text)
    assert KEYS[int(value) % len(KEYS)] == key
    [line] = get(savepoint, "--trust", "--uid", "remember", "--state", "seen", "--key", text)
    when = datetime.fromtimestamp(updated // 1000, timezone.utc)
    date = f"{when:%Y-%m-%d %H:%M:%S}.{updated % 1000:03d} UTC"
    assert line == f"{value!r}, updated {updated} ({date})"


def test_operator_state_and_windows_are_shown(savepoint: str) -> None:
    lines = get(savepoint, "--uid", "keep", "--state", "last")
    assert {line.split(": ")[0] for line in lines} <= {"(0, 0)", "(1, 0)"} and lines
    assert get(savepoint, "--uid", "keep", "--state", "rules") == ["'limit': 10"]
    assert get(savepoint, "--uid", "keep", "--state", "rules", "--key", "limit") == ["10"]
    lines = get(savepoint, "--trust", "--uid", "windows", "--state", "__windows", "--key", "0")
    assert all(line.startswith("from ") and "1970-01-01" in line for line in lines) and lines


def test_a_retained_checkpoint_says_its_backend(tmp_path: Path) -> None:
    for backend, files in (("hashmap", "0"), ("rocksdb", "8 mb"), ("rocksdb", "0")):
        place = tmp_path / f"{backend} {files}"
        with local_environment(seed=3) as env:
            below = "execution.checkpointing."
            for key, value in {
                below + "interval": "10 ms",
                below + "dir": str(place),
                below + "externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
                "state.backend.type": backend,
                "state.backend.rocksdb.checkpoint.files-from": files,
            }.items():
                env._configuration.set_string(key, value)
            source = NumberSequenceSource(0, 10**9)
            numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "n").uid("n")
            sums = numbers.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid("sums")
            sums.filter(lambda _: False).print()
            job = env.execute_async("sums")
            while job.progress().completed_checkpoints < 3:
                pass
            job.cancel().result(PATIENCE)
        [folder] = place.iterdir()
        store = CheckpointStore(str(place), folder.name)
        path = folder / f"chk-{store.whole()[-1]}"
        listed = CliRunner().invoke(penstock, ["state", "ls", str(path)]).output
        assert f"for state backend {backend}" in listed
        assert any(folder.glob("shared/*.sst")) == (backend == "rocksdb" and files == "0")
        at = [str(path), "--trust", "--uid", "sums", "--state", "__reduced"]
        assert {line.split(": ")[0] for line in get(*at)} == {"0", "1", "2"}
        assert get(*at, "--key", "1")[0].isdigit()

        job = tmp_path / "job.py"
        job.write_text(SUMS)
        for other in ("hashmap", "rocksdb"):
            dry_run = ["run", "--dry-run", "-s", str(path), "-D", f"state.backend.type={other}"]
            said = CliRunner().invoke(penstock, [*dry_run, str(job)])
            if other == backend:
                assert said.output.endswith("the job would start\n"), said.output
            else:
                assert "the job would not start: " in said.output
                assert f"was written on the state backend '{backend}' and the" in said.output


SUMS = """
from penstock.common import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.number_seq import NumberSequenceSource

env = StreamExecutionEnvironment.get_execution_environment()
source = NumberSequenceSource(0, 10**9)
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "n").uid("n")
sums = numbers.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid("sums")
sums.filter(lambda _: False).print()
env.execute("sums")
"""


@pytest.mark.timeout(120)
def test_a_start_from_nothing_is_not_tried_again(tmp_path: Path) -> None:
    with local_environment(seed=3) as env:
        for key, value in {
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "execution.state-recovery.path": str(tmp_path / "nothing" / "chk-1"),
        }.items():
            env._configuration.set_string(key, value)
        env.from_collection([1]).print()
        with pytest.raises(PenstockError, match="there is no savepoint or checkpoint"):
            env.execute("nothing")


# --- how values are shown ---------------------------------------------------------------------


def shown(kind: str, type_info: TypeInformation, stored: Any) -> list[str]:
    return text_of(StateInfo("s", kind, type_info, 1, True), stored).splitlines()


def test_lists_and_maps_and_times_by_line() -> None:
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    at = "updated 0 (1970-01-01 00:00:00.000 UTC)"
    assert shown("list", Types.LIST(Types.LONG()), [1, 2]) == ["1", "2"]
    assert shown("map", Types.MAP(Types.STRING(), Types.LONG()), {"a": 1}) == ["'a': 1"]
    assert shown("expiring value", pair, ("x", 0)) == [f"'x', {at}"]
    assert shown("expiring list", Types.LIST(pair), [("x", 0)]) == [f"'x', {at}"]
    assert shown("expiring map", Types.MAP(Types.LONG(), pair), {7: ("x", 0)}) == [f"7: 'x', {at}"]
    assert shown("timers", ANY, {2, 1}) == [
        "1 (1970-01-01 00:00:00.001 UTC)",
        "2 (1970-01-01 00:00:00.002 UTC)",
    ]
    assert shown("sessions", ANY, (0, 5, "c")) == [
        "from 0 to 5 (1970-01-01 00:00:00.000 UTC to 1970-01-01 00:00:00.005 UTC): 'c'"
    ]
    assert len(shown("sessions", ANY, [(0, 5, "c"), (9, 12, "d")])) == 2


@pytest.mark.parametrize(
    ("kind", "type_info", "stored"),
    [
        ("timers", ANY, 7),
        ("timers", ANY, {7, 8}),
        ("value", Types.LONG(), 7),
        ("expiring value", Types.TUPLE([Types.STRING(), Types.LONG()]), ("x", 1)),
        ("expiring list", Types.LIST(Types.TUPLE([Types.STRING(), Types.LONG()])), [("x", 1)]),
        (
            "expiring map",
            Types.MAP(Types.LONG(), Types.TUPLE([Types.STRING(), Types.LONG()])),
            {1: ("x", 1)},
        ),
    ],
)
def test_what_is_shown_can_be_stored_again(
    kind: str, type_info: TypeInformation, stored: Any
) -> None:
    shape = shape_of(kind, type_info)
    assert shape.store is not None
    assert shape.store(shape.type_info.to_internal_type(shape.show(stored))) == stored


def test_an_unaligned_checkpoint_is_no_beginning_of_a_savepoint(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path.as_uri(), "job").claim()
    handle = SegmentHandle.of(store.write_segment("1-1-0-channels", b"x"), b"x", range(-1, 0))
    subtask = SubtaskSnapshot(False, 0, {}, in_flight=(handle,))
    vertex = VertexSnapshot("V", 1, 128, (subtask,))
    store.complete(CheckpointMetadata("job", 1, 1, 0, {"u": vertex}, {}, {}))
    with pytest.raises(CheckpointError, match="unaligned checkpoint with records under way"):
        SavepointWriter.from_existing_savepoint(str(tmp_path / "job" / "chk-1"))
