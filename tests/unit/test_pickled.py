"""What is pickled is not unpickled for whoever only looks, nor where it does not belong."""

from __future__ import annotations

import collections
import contextlib
import datetime
import decimal
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.cli.main import penstock, run
from penstock.common import Row
from penstock.common.typeinfo import TypeInformation, Types
from penstock.errors import CorruptCheckpointError, StateError
from penstock.inspection.catalog import Catalog
from penstock.inspection.lookup import Lookup
from penstock.state.broadcast import BroadcastBackend
from penstock.state.columns import write_column
from penstock.state.compaction import Merge, Merging
from penstock.state.entries import begin_entries, decode_entries
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.pickled import Pickled, described
from penstock.state.schema import PICKLED, schema_of
from penstock.state.segments import GroupBlock, encode_segment
from penstock.state_api import SavepointReader

RAN: list[str] = []
"""What was run by unpickling."""


def ran(what: str) -> str:
    RAN.append(what)
    return what


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return ran, ("boom",)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def block(
    declared: TypeInformation,
    values: list[Any],
    written: TypeInformation = PICKLED,
    keys: list[Any] | None = None,
) -> GroupBlock:
    """Values that were declared as one type and are written as another."""
    keys = [f"k{n}" for n in range(len(values))] if keys is None else keys
    parts = begin_entries([], len(values))
    write_column(parts, Types.STRING() if type(keys[0]) is str else PICKLED, keys)
    write_column(parts, written, values)
    return GroupBlock("s", "value", 0, [b"".join(parts)], schema_of(declared))


def savepoint(folder: Path, *blocks: GroupBlock) -> str:
    data = encode_segment(blocks)
    location = SavepointLocation(str(folder), "savepoint-job-1-0123456789ab")
    path = location.store().write_segment("1-4-0-a", data)
    handle = SegmentHandle.of(path, data, range(128), [("s", "value")])
    subtask = SubtaskSnapshot(False, 0, {"u": OperatorSnapshot((handle,))})
    vertex = VertexSnapshot("V", 1, 128, (subtask,), {"u": "V"})
    assert location.complete(CheckpointMetadata("job-1", 4, 1, 0, {"u": vertex}, {}, {}))
    return location.path


def get(path: str, *options: str) -> str:
    words = ["state", "get", path, "--uid", "u", "--state", "s", *options]
    told = CliRunner().invoke(penstock, words, standalone_mode=False)
    assert told.return_value == 0, told
    return told.output


PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
PLAIN: list[tuple[TypeInformation, TypeInformation, Any]] = [
    (Types.LONG(), PICKLED, Bomb()),
    (Types.STRING(), PICKLED, Bomb()),
    (PAIR, PICKLED, Bomb()),
    (PAIR, Types.TUPLE([PICKLED, Types.LONG()]), (Bomb(), 1)),
    (Types.LIST(Types.LONG()), Types.LIST(PICKLED), [Bomb()]),
    (Types.MAP(Types.LONG(), Types.LONG()), Types.MAP(Types.LONG(), PICKLED), {1: Bomb()}),
    (Types.ROW_NAMED(["a"], [Types.LONG()]), PICKLED, Bomb()),
]


@pytest.mark.parametrize(("declared", "written", "value"), PLAIN)
def test_a_pickled_column_under_a_plain_type_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    declared: TypeInformation,
    written: TypeInformation,
    value: Any,
) -> None:
    altered = block(declared, [value], written)
    with pytest.raises(CorruptCheckpointError, match=r"are pickled, which Penstock never does"):
        HashMapBackend(KeyContext(), 128).restore([altered])
    with pytest.raises(CorruptCheckpointError, match="are pickled"):
        Merge([[altered, altered]], Merging.WHOLE).step(1 << 30)
    path = savepoint(tmp_path, altered)
    for trust in ([], ["--trust"]):
        assert run(["state", "get", path, "--uid", "u", "--state", "s", *trust]) == 1
        assert "the state was altered, and is not unpickled" in capsys.readouterr().err
    assert RAN == []


def test_broadcast_state_of_a_plain_type_is_not_unpickled_either() -> None:
    backend = BroadcastBackend(())
    with pytest.raises(CorruptCheckpointError, match="are pickled"):
        backend.restore(block(Types.LONG(), [Bomb()]))
    assert RAN == []


def test_values_of_a_state_are_shown_when_somebody_trusts_them(tmp_path: Path) -> None:
    path = savepoint(tmp_path, block(PICKLED, [Bomb(), {"a": 1}]))
    lines = get(path).splitlines()
    assert lines[0].startswith(f"'k0': <pickled {__name__}.ran, ")
    assert lines[1].startswith("'k1': <pickled dict, ")
    assert all(line.endswith(" bytes: --trust shows it>") for line in lines)
    assert "<pickled dict, " in get(path, "--key", "k1")
    assert RAN == []
    assert get(path, "--trust") == "'k0': 'boom'\n'k1': {'a': 1}\n"
    assert RAN == ["boom"]


def test_what_is_plain_is_shown_though_something_beside_it_is_pickled(tmp_path: Path) -> None:
    kind = Types.TUPLE([Types.LONG(), PICKLED])
    path = savepoint(tmp_path, block(kind, [(7, Bomb())], kind))
    assert get(path).startswith(f"'k0': (7, <pickled {__name__}.ran, ")
    assert RAN == []


def test_pickled_keys_are_not_read_without_trust(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = savepoint(tmp_path, block(Types.LONG(), [1], Types.LONG(), keys=[("a", Bomb())]))
    for key in ([], ["--key", "a"]):
        assert run(["state", "get", path, "--uid", "u", "--state", "s", *key]) == 1
        said = capsys.readouterr().err
        assert "state 's' has pickled keys (tuple, " in said and "--trust" in said
    assert RAN == []
    assert get(path, "--trust") == "('a', 'boom'): 1\n"


def test_a_reader_that_does_not_trust_refuses_what_is_pickled(tmp_path: Path) -> None:
    path = savepoint(tmp_path, block(PICKLED, [Bomb()]))
    with pytest.raises(StateError, match=r"state 's' has pickled values: .*trust=True"):
        SavepointReader(path, trust=False).state("u", "s")
    folder = tmp_path / "keys"
    path = savepoint(folder, block(Types.LONG(), [1], Types.LONG(), keys=[("a", Bomb())]))
    with pytest.raises(StateError, match=r"state 's' has pickled keys .*trust=True"):
        SavepointReader(path, trust=False).state("u", "s")
    assert RAN == []


def test_listing_unpickles_nothing(tmp_path: Path) -> None:
    path = savepoint(tmp_path, block(PICKLED, [Bomb()]))
    listed = CliRunner().invoke(penstock, ["state", "ls", path]).output
    assert "value state 's': PICKLED_BYTE_ARRAY" in listed
    assert RAN == []


def test_keys_of_a_type_of_their_own_need_no_trust(tmp_path: Path) -> None:
    path = savepoint(tmp_path, block(Types.LONG(), [1, 2], Types.LONG()))
    catalog = Catalog.open(path)
    lookup = Lookup(catalog, "u", catalog.operator("u").state("s"))
    assert dict(lookup.entries()) == {"k0": 1, "k1": 2}


# --- pickles, told without unpickling ---------------------------------------------------------

NAMED = [
    (1, "int"),
    (10**40, "int"),
    (None, "NoneType"),
    (True, "bool"),
    (2.5, "float"),
    ("text", "str"),
    ((), "tuple"),
    ((1, 2, 3, 4), "tuple"),
    ([[1], 2], "list"),
    ({"a": [1]}, "dict"),
    ({1, 2}, "set"),
    (Row(1, 2), "penstock.kept.Row"),
    (datetime.date(2026, 5, 4), "datetime.date"),
    (decimal.Decimal("1.5"), "decimal.Decimal"),
    (collections.OrderedDict(a=1), "collections.OrderedDict"),
    (collections.deque([1]), "collections.deque"),
    (Bomb(), f"{__name__}.ran"),
]


def test_types_are_told_by_their_names() -> None:
    found = described(pickle.dumps([value for value, _ in NAMED], protocol=5))
    assert [each.type_name for each in found] == [name for _, name in NAMED]
    assert all(each.size > 0 for each in found)
    assert RAN == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(inner).map(tuple),
    max_leaves=20,
)


@given(st.lists(VALUES, max_size=5), st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_every_element_is_told(values: list[Any], protocol: int) -> None:
    found = described(pickle.dumps(values, protocol=protocol))
    assert len(found) == len(values)
    if protocol >= 4:
        assert [each.type_name for each in found] == [type(value).__name__ for value in values]


@given(st.lists(VALUES, max_size=4), st.binary(max_size=10), st.integers(0, 100))
def test_what_is_no_pickle_is_damage(values: list[Any], junk: bytes, place: int) -> None:
    data = pickle.dumps(values, protocol=5)
    altered = data[:place] + junk + data[place + len(junk) :]
    with contextlib.suppress(CorruptCheckpointError):
        assert all(isinstance(each, Pickled) for each in described(altered))


def test_entries_of_a_type_that_is_pickled_are_restored() -> None:
    """The job whose state it is trusts its files, where it has declared no type."""
    made = block(PICKLED, [Bomb()])
    assert decode_entries(made.payload, made.schema)[1] == ["boom"]
    again = replace(made, schema=schema_of(Types.LIST(PICKLED)))
    assert decode_entries(again.payload, again.schema)[1] == ["boom"]


def test_no_shell_command_is_run_by_state_get(tmp_path: Path) -> None:
    class Shell:
        def __reduce__(self) -> Any:
            return os.system, (f"{sys.executable} -c \"open('{tmp_path}/ran', 'w')\"",)

    for number, declared in enumerate((Types.LONG(), PICKLED)):
        path = savepoint(tmp_path / str(number), block(declared, [Shell()]))
        run(["state", "get", path, "--uid", "u", "--state", "s"])
    assert not (tmp_path / "ran").exists()
