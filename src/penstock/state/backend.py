"""What an operator needs from a backend of keyed state, whichever it is.

A backend holds the keyed state of one operator in one subtask. It is used from the loop's thread
only, with one exception: what `cut` returns is gone through off the loop.

A checkpoint is `cut` on the loop, stored off it, and later either confirmed or simply never spoken
of again. A delta holds everything that changed since the last confirmed checkpoint, removals
included, so that a checkpoint that came to nothing takes nothing with it. Blocks of segments are
the common form between backends: `entries.encode_entries` by state and key group, with the schema
of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from penstock.state.database_files import LinkedFiles, SavedDatabase
from penstock.state.descriptors import StateDescriptor
from penstock.state.segments import GroupBlock
from penstock.state.table import StateTable


class KeyedStateBackend(Protocol):
    """The keyed state of one operator in one subtask."""

    def get_state(self, descriptor: StateDescriptor) -> Any:
        """The state object for `descriptor`, for the key of the operator's KeyContext.

        The same object for the same descriptor; StateError if the name stands for something else,
        now or in what was restored.
        """
        ...

    def bound(self) -> dict[str, tuple[str, Any]]:
        """Kind and state object of every state that was declared, by name."""
        ...

    def table(self, name: str, kind: str) -> StateTable:
        """A table for the engine's own use: timers, and running reductions."""
        ...

    def cut(self, checkpoint: int, full: bool, files: bool = False) -> Captured:
        """The state at this moment, or what of it changed since the last confirmed checkpoint.

        The call itself takes time for what can change under the reader's hands, and no more. The
        result is gone through once, off the loop, while the state changes again. StateError, from
        either, names the state and the key that cannot be written; the changes stay noted.

        With `files` a full one may leave entries to the files of a database.
        """
        ...

    def whole(self) -> Captured:
        """All of the state at this moment, as a full cut has it, for whoever wants a copy.

        It is no cut: what changed counts as before.
        """
        ...

    def confirm(self, checkpoint: int) -> None:
        """`checkpoint` is complete: deltas build on it from now on."""
        ...

    def moved(self) -> bool:
        """Whether anything changed since the last cut."""
        ...

    def restore(self, blocks: Iterable[GroupBlock]) -> None:
        """Apply blocks, oldest first, before any state is declared. They count as settled."""
        ...

    def restore_database(self, saved: SavedDatabase, groups: range) -> bool:
        """Apply what the files of a database hold of `groups`, as `restore` does with blocks.

        True if this backend goes on with the very files.
        """
        ...

    def ships_files(self) -> bool:
        """Whether a full cut would leave entries to files, if it were let."""
        ...

    def has_migrated(self) -> bool:
        """Whether restored values were brought to another type: what was read is out of date."""
        ...

    def gauges(self) -> dict[str, Callable[[], float]]:
        """What can be told of the backend at any time, by the names of metrics."""
        ...

    def close(self) -> None:
        """Release everything that is held outside of this process's memory."""
        ...

    def forget(self) -> None:
        """After `close`: let go of all values, which may take long; other threads run meanwhile."""
        ...


class Captured:
    """Blocks that are ready or are made when they are gone through, part after part."""

    def __init__(
        self,
        parts: Iterable[Callable[[], Iterable[GroupBlock]]],
        files: LinkedFiles | None = None,
    ) -> None:
        """`files` hold what the blocks do not; whoever gets them discards them."""
        self._parts = parts
        self.files = files

    def __iter__(self) -> Any:
        for part in self._parts:
            yield from part()
