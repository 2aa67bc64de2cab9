"""Types that are pickled into state have names that do not depend on where they live."""

from __future__ import annotations

import copyreg
import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kept_programs import PROGRAMS, restored
from kept_programs.program import snapshot_in

from penstock import kept
from penstock.checkpoint.channel_state import decode_in_flight
from penstock.checkpoint.parts import keyed_files
from penstock.checkpoint.savepoints import Snapshot, open_snapshot
from penstock.common import Duration, Instant, Row, RowKind, Time
from penstock.connectors.bad_records import BadRecord
from penstock.connectors.kafka.records import ConsumerRecord
from penstock.datastream.window import CountWindow, GlobalWindow, TimestampedValue, TimeWindow
from penstock.runtime.windowing.operator import PURGED
from penstock.state.entries import decode_entries
from penstock.state.keyed_parts import keyed_parts
from penstock.state.segments import decode_segment

KEPT = Path(__file__).parent / "kept"
GROUPS = range(128)
MESSAGE = ConsumerRecord("topic", 0, 1, 2, b"key", b"value", (("header", None),))

OBJECTS: dict[str, Any] = {
    "BadRecord": BadRecord("not JSON", MESSAGE),
    "ConsumerRecord": MESSAGE,
    "CountWindow": CountWindow(7),
    "Duration": Duration(5),
    "GlobalWindow": GlobalWindow(),
    "Instant": Instant(1, 2),
    "Purged": PURGED,
    "Row": Row.of_kind(RowKind.DELETE, n=1),
    "RowKind": RowKind.UPDATE_AFTER,
    "Time": Time.seconds(3),
    "TimeWindow": TimeWindow(0, 10),
    "TimestampedValue": TimestampedValue("a", 4),
}
"""One of each type that has a name."""


class Globals(pickle.Unpickler):
    """Notes the globals that a pickle refers to."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.found: set[tuple[str, str]] = set()
        self.load()

    def find_class(self, module: str, name: str) -> Any:
        self.found.add((module, name))
        return super().find_class(module, name)


def read_everything(snapshot: Snapshot) -> None:
    """Unpickle all that a snapshot holds."""
    store = snapshot.store
    for vertex in snapshot.metadata.vertices.values():
        for subtask in vertex.subtasks:
            for handle in subtask.in_flight:
                data = decode_in_flight(store.read_whole(handle))
                batches = [e for channel in data.channels for e in channel.elements]
                for batch in [*batches, *([data.own.batch] if data.own else [])]:
                    if isinstance(batch, bytes):
                        kept.loads(batch)
            for operator in subtask.operators.values():
                for handle in operator.segments:
                    if not handle.file:
                        for block in decode_segment(store.read_whole(handle), GROUPS):
                            decode_entries(block.payload, block.schema)
                for part in keyed_parts(keyed_files(operator.segments, store, GROUPS)):
                    if part.database is not None:
                        assert list(part.database.blocks(GROUPS))


@pytest.fixture(scope="module")
def pickles() -> list[bytes]:
    """Every pickle in the kept files."""
    found: list[bytes] = []

    def noted(data: bytes) -> Any:
        found.append(data)
        return pickle.loads(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "loads", noted)
        for version in KEPT.iterdir():
            for folder in version.iterdir():
                read_everything(open_snapshot(str(snapshot_in(folder))))
    return found


def test_every_global_in_kept_files_is_known_by_name(pickles: list[bytes]) -> None:
    found = set().union(*(Globals(data).found for data in pickles))
    ours = {(module, name) for module, name in found if module.startswith("penstock.")}
    assert ours >= set(kept.FORMER), "a former name that is in no file proves nothing"
    assert ours <= {*kept.FORMER, *((kept.__name__, name) for name in kept.HOMES)}
    others = {module.partition(".")[0] for module, _ in found - ours}
    assert others <= {*sys.stdlib_module_names, "kept_programs"}


@pytest.mark.parametrize("gone", ["module", "name"])
def test_kept_files_are_read_when_their_types_have_moved(
    pickles: list[bytes], monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    before = [repr(pickle.loads(data)) for data in pickles]
    for module, name in kept.FORMER:
        if gone == "name":
            monkeypatch.delattr(sys.modules[module], name)
        else:
            # An import of the module fails from here on.
            monkeypatch.setitem(sys.modules, module, None)
    assert [repr(kept.loads(data)) for data in pickles] == before


class Moved(pickle.Unpickler):
    """Does not find types by their former names."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in kept.FORMER:
            raise ModuleNotFoundError(module)
        return super().find_class(module, name)


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickle by itself does not find types by their former names."""
    monkeypatch.setattr(pickle, "loads", lambda data: Moved(io.BytesIO(data)).load())


def test_files_of_rocksdb_are_looked_into_when_their_types_have_moved(moved: None) -> None:
    read_everything(open_snapshot(str(snapshot_in(KEPT / "9d0f5f6" / "rocksdb-files"))))


@pytest.mark.parametrize(
    ("name", "parallelism"),
    [("types", 1), ("rocksdb-files", 2), ("rocksdb-files-of-windows", 3), ("in-flight", 2)],
)
def test_a_job_goes_on_when_the_types_in_its_state_have_moved(
    moved: None, name: str, parallelism: int
) -> None:
    program = PROGRAMS[name]
    assert restored(program, KEPT / "9d0f5f6" / name, parallelism) == program.right_results()


def test_every_name_has_an_object_here_and_every_former_name_leads_to_one() -> None:
    assert set(OBJECTS) == set(kept.HOMES) == set(kept.FORMER.values())


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_object_is_pickled_by_the_name_of_its_type(name: str, protocol: int) -> None:
    data = pickle.dumps(OBJECTS[name], protocol)
    ours = {found for found in Globals(data).found if found[0].startswith("penstock")}
    assert ("penstock.kept", name) in ours
    assert {module for module, _ in ours} == {"penstock.kept"}
    again = pickle.loads(data)
    assert again == OBJECTS[name]
    assert type(again) is type(OBJECTS[name])


def test_a_name_is_found_in_a_process_that_has_imported_nothing() -> None:
    data = pickle.dumps(list(OBJECTS.values()))
    program = f"import pickle; print(pickle.loads({data!r}))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == repr(list(OBJECTS.values())), ran.stderr


class Shift(TimeWindow):
    """A window of the user's own."""

    __slots__ = ()


class Message(ConsumerRecord):
    """A record of the user's own."""


@pytest.mark.parametrize("own", [Shift(0, 10), Message("topic", 0, 1, 2, None, None)])
def test_an_object_of_a_subclass_stays_one(own: Any) -> None:
    again = pickle.loads(pickle.dumps(own))
    assert type(again) is type(own)
    assert again == own


def test_what_is_unknown_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        kept.Nothing  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        kept.loads(b"\x80\x05\x8c\x07nowhere\x8c\x01X\x93.")


def test_each_name_is_given_where_the_table_says() -> None:
    for name, home in kept.HOMES.items():
        made = getattr(kept, name).func
        assert made.__module__ == home
        if isinstance(made, type):
            assert made in copyreg.dispatch_table
