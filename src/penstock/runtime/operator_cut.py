"""An operator's part of a checkpoint, cut and not yet stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle
from penstock.checkpoint.segment_names import SegmentName
from penstock.checkpoint.segment_writing import store_segment
from penstock.checkpoint.store import SegmentStore
from penstock.common.keys import NO_GROUP, UNION_GROUP
from penstock.common.plain import Plain
from penstock.common.spool import Spool
from penstock.errors import SinkError, StateError, StorageError
from penstock.runtime.function_state import located
from penstock.runtime.segment_writing import write_segment
from penstock.state.database_files import LASTING, LinkedFiles
from penstock.state.segments import GroupBlock, Origin


@dataclass(frozen=True)
class StoredCut:
    """An operator's part of a checkpoint, stored."""

    snapshot: OperatorSnapshot
    size: int
    """The bytes that were written."""
    copy: OperatorSnapshot
    """The same where copies were stored."""


@dataclass(frozen=True)
class OperatorCut:
    """An operator's state at a barrier, not yet durable."""

    uid: str
    checkpoint: int
    name: str = ""
    base: tuple[SegmentHandle, ...] = ()
    blocks: Iterable[GroupBlock] = ()
    """Keyed state: what changed upon `base`."""
    whole: Iterable[GroupBlock] | None = None
    """All of the keyed state, for a copy; None: that is what `blocks` are."""
    groups: range = range(0)
    own: tuple[GroupBlock, ...] = ()
    """Operator state."""
    files: LinkedFiles | None = None
    """Of a database that holds the rest of the keyed state."""
    stored_files: Mapping[str, SegmentHandle] = field(default_factory=dict)
    """Those that checkpoints have already, by their names."""
    origin: Origin | None = None
    splits: tuple[Plain, ...] = ()
    prepare: Callable[[], list[Plain]] | None = None

    def store(
        self,
        store: SegmentStore | None,
        name: SegmentName,
        copies: SegmentStore | None = None,
        compress: bool = False,
    ) -> StoredCut:
        """Make it durable, compressed or not, and release what it holds; once, off the loop.

        With `copies`, all of the state is stored there too: for any backend, upon nothing.
        """
        try:
            return self._store(store, name, copies, compress)
        finally:
            self.discard()

    def discard(self) -> None:
        """Release what it holds on the local disk; may be called more than once."""
        if self.files is not None:
            self.files.discard()

    def _store(
        self,
        store: SegmentStore | None,
        name: SegmentName,
        copies: SegmentStore | None,
        compress: bool,
    ) -> StoredCut:
        keyed = self._gone_through(self.blocks)
        segments, size = self.base, 0
        known = {handle.path for handle in self.stored_files.values()}
        # A job without checkpoints has copies alone.
        copied_only = store is None and copies is not None
        written: Iterable[SegmentHandle] = ()
        if not copied_only:
            written = self._written(store, name, keyed, self.origin, compress)
        for handle in written:
            handles: tuple[SegmentHandle, ...] = (handle,)
            if self.files is not None and handle.first_group >= 0:
                assert store is not None, "a database is linked for checkpoints only"
                handles = self._with_files(store, handle, name, self.files)
            segments += handles
            size += sum(handle.size for handle in handles if handle.path not in known)
        copied: tuple[SegmentHandle, ...] = ()
        if copies is not None:
            whole = keyed if self.whole is None else self._gone_through(self.whole)
            origin = replace(self.origin, backend="") if self.origin is not None else None
            copied = tuple(self._written(copies, name, whole, origin, compress))
            size += sum(handle.size for handle in copied)
        committables = self.committables()
        return StoredCut(
            OperatorSnapshot(segments, self.splits, committables),
            size,
            OperatorSnapshot(copied, self.splits, committables),
        )

    def _gone_through(self, blocks: Iterable[GroupBlock]) -> list[GroupBlock]:
        spool = Spool()
        try:
            return [block.kept_in(spool) for block in blocks]
        except StateError as error:
            raise located(self.name, error) from error

    def _written(
        self,
        store: SegmentStore | None,
        name: SegmentName,
        keyed: list[GroupBlock],
        origin: Origin | None,
        compress: bool,
    ) -> Iterator[SegmentHandle]:
        """Store keyed state and operator state, each if there is any."""
        parts = [(name, keyed, self.groups)]
        for group, own_name in ((NO_GROUP, name.own()), (UNION_GROUP, name.union())):
            blocks = [block for block in self.own if block.group == group]
            parts.append((own_name, blocks, range(group, group + 1)))
        for part_name, blocks, groups in parts:
            if blocks:
                assert store is not None, "state is cut for checkpoints only, and those have one"
                yield write_segment(store, str(part_name), blocks, groups, origin, compress)

    def _with_files(
        self, store: SegmentStore, described: SegmentHandle, name: SegmentName, files: LinkedFiles
    ) -> tuple[SegmentHandle, ...]:
        """A database: the segment that describes it, and its files, the new ones stored."""
        database = str(name)
        first = replace(described, database=database, entries_size=files.entries_size)

        def stored(file: str) -> SegmentHandle:
            handle = self.stored_files.get(file) if file.endswith(LASTING) else None
            if handle is None:
                states = files.spans.get(file, described.states)
                handle = store_segment(
                    store, str(name.file(file)), files.chunks(file), self.groups, states
                )
            return replace(handle, database=database, file=file)

        if files.threads == 1:
            return (first, *map(stored, files.names))
        with ThreadPoolExecutor(files.threads, thread_name_prefix="penstock-transfer") as threads:
            return (first, *threads.map(stored, files.names))

    def committables(self) -> tuple[Plain, ...]:
        """Finish what a sink prepared. Failing here fails the attempt: its output would be lost."""
        if self.prepare is None:
            return ()
        try:
            return tuple(self.prepare())
        except StorageError as error:
            raise SinkError(f"a sink cannot prepare its output: {error}") from error
