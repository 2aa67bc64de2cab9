"""An operator's part of a checkpoint, cut and not yet stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle
from penstock.checkpoint.store import SegmentStore
from penstock.common.keys import NO_GROUP, UNION_GROUP
from penstock.common.plain import Plain
from penstock.errors import SinkError, StateError, StorageError
from penstock.runtime.function_state import located
from penstock.runtime.segment_writing import write_segment
from penstock.state.segments import GroupBlock, Origin


@dataclass(frozen=True)
class OperatorCut:
    """An operator's state at a barrier, not yet durable."""

    uid: str
    checkpoint: int
    name: str = ""
    base: tuple[SegmentHandle, ...] = ()
    blocks: Iterable[GroupBlock] = ()
    """Keyed state: what changed upon `base`."""
    groups: range = range(0)
    own: tuple[GroupBlock, ...] = ()
    """Operator state."""
    origin: Origin | None = None
    splits: tuple[Plain, ...] = ()
    prepare: Callable[[], list[Plain]] | None = None

    def store(self, store: SegmentStore | None, name: str) -> tuple[OperatorSnapshot, int]:
        """Make it durable; called once, off the loop. Also returns the bytes written."""
        try:
            keyed = list(self.blocks)
        except StateError as error:
            raise located(self.name, error) from error
        parts = [(name, keyed, self.groups)]
        for group, suffix in ((NO_GROUP, "own"), (UNION_GROUP, "union")):
            blocks = [block for block in self.own if block.group == group]
            parts.append((f"{name}-{suffix}", blocks, range(group, group + 1)))
        segments, size = self.base, 0
        for part_name, blocks, groups in parts:
            if blocks:
                assert store is not None, "state is cut for checkpoints only, and those have one"
                handle = write_segment(store, part_name, blocks, groups, self.origin)
                segments += (handle,)
                size += handle.size
        return OperatorSnapshot(segments, self.splits, self.committables()), size

    def committables(self) -> tuple[Plain, ...]:
        """Finish what a sink prepared. Failing here fails the attempt: its output would be lost."""
        if self.prepare is None:
            return ()
        try:
            return tuple(self.prepare())
        except StorageError as error:
            raise SinkError(f"a sink cannot prepare its output: {error}") from error
