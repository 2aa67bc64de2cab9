"""State as DataFrames: one for each state of each operator, read where Spark's executors are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.common.typeinfo import TypeInformation, Types
from penstock.inspection.catalog import Catalog, OperatorInfo, StateInfo
from penstock.inspection.entries import StatePart, check_plain, parts_of
from penstock.inspection.inference import key_type as inferred_key_type
from penstock.inspection.shapes import shape_of
from penstock.spark.frames import current_session, frame_of
from penstock.state.broadcast import KIND as BROADCAST

if TYPE_CHECKING:
    from penstock.spark.frames import DataFrame


class SavepointReader:
    """A savepoint or a retained checkpoint, to look into.

    CheckpointError if there is none at `path`, a folder or the `_metadata` in it. To unpickle what
    is pickled runs whatever it says; with `trust=False` it is a StateError instead.
    """

    def __init__(self, path: str, *, trust: bool = True) -> None:
        self._catalog = Catalog.open(path)
        self._trust = trust

    @property
    def path(self) -> str:
        """Where it is."""
        return self._catalog.snapshot.path

    def operators(self) -> list[OperatorInfo]:
        """The operators, each with its states."""
        return list(self._catalog.operators.values())

    def state(
        self,
        uid: str,
        name: str,
        key_type: TypeInformation | None = None,
        value_type: TypeInformation | None = None,
    ) -> DataFrame:
        """One state of one operator.

        Keyed state has the columns key and value, broadcast state too; a list of operator state
        has subtask, position and value. The type of values is the one that they were saved with;
        `value_type` says it of values that nobody declared, which come pickled without it.
        `key_type` says that of keys, which is otherwise taken from the first key there is.

        The state is read when the DataFrame is used, by one Spark task for each subtask that
        wrote it. StateError if there is no such operator or state: it lists what there is.
        """
        info = self._catalog.operator(uid).state(name)
        if not self._trust:
            check_plain(info)
        shape = shape_of(info.kind, info.type_info, value_type)
        parts = parts_of(self._catalog, uid, info, self._trust)
        key = Types.LONG()
        if info.keyed or info.kind == BROADCAST:
            key = key_type or inferred_key_type(self._catalog, uid, info, self._trust)
        if info.keyed:
            columns = [("key", key), ("value", shape.type_info)]
        elif info.kind == BROADCAST:
            # Every subtask has the same.
            parts, columns = parts[:1], [("key", key), ("value", shape.type_info)]
        else:
            positions = [("subtask", Types.LONG()), ("position", Types.LONG())]
            columns = [*positions, ("value", shape.type_info)]
        tasks = [_Read(part, info, value_type) for part in parts]
        return frame_of(current_session(), tasks, columns)


@dataclass(frozen=True)
class _Read:
    """Reads one subtask's part as rows."""

    part: StatePart
    state: StateInfo
    value_type: TypeInformation | None

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        show = shape_of(self.state.kind, self.state.type_info, self.value_type).show
        if self.state.keyed:
            for key, value in self.part.entries():
                yield key, show(value)
            return
        for subtask, key, value in self.part.unkeyed():
            shown = (key, show(value))
            yield shown if self.state.kind == BROADCAST else (subtask, *shown)
