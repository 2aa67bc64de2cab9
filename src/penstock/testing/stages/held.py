"""A stage with operator state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.checkpoint.handles import MAX_WATERMARK
from penstock.common.typeinfo import Types
from penstock.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    RuntimeContext,
)
from penstock.datastream.state import ListState, ListStateDescriptor, MapStateDescriptor
from penstock.testing.stages.base import ANY, Key, Records
from penstock.testing.stages.keyed import KeyedStage


class HoldBack(KeyedStage, CheckpointedFunction, CheckpointListener):
    """Every record, unchanged: they are held back in a list of the subtask's, then emitted.

    Between two checkpoints the list is a plain one; operator state of some kind carries it over.
    """

    KINDS = ("list", "union", "broadcast")

    def __init__(self, key: Key, kind: str, size: int) -> None:
        super().__init__(key)
        self.kind = kind
        self.size = size

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self._saved: list[Any]
        if self.kind == "broadcast":
            self._map = store.get_broadcast_state(MapStateDescriptor("held", Types.LONG(), ANY))
            self._saved = [self._map.get(i) for i in range(len(list(self._map.keys())))]
            return
        descriptor = ListStateDescriptor("held", Types.TUPLE([Types.INT(), ANY]))
        self._list: ListState[Any] = (
            store.get_list_state(descriptor)
            if self.kind == "list"
            else store.get_union_list_state(descriptor)
        )
        self._saved = list(self._list.get() or ())

    def open(self, runtime_context: RuntimeContext) -> None:
        self._index = runtime_context.get_index_of_this_subtask()
        self._snapshots: list[int] = []
        own = [value for index, value in self._saved if index == self._index]
        assert self.kind != "list" or len(own) == len(self._saved), "elements of another subtask"
        self._held = own

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self._snapshots.append(context.get_checkpoint_id())
        saved = [(self._index, value) for value in self._held]
        if self.kind == "broadcast":
            self._map.clear()
            self._map.put_all(dict(enumerate(saved)))
        else:
            self._list.update(saved)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        # Once each, and of those only that this function is a part of.
        assert checkpoint_id in self._snapshots, f"{checkpoint_id} among {self._snapshots}"
        self._snapshots = [c for c in self._snapshots if c > checkpoint_id]

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._snapshots.remove(checkpoint_id)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self._held.append(value)
        ctx.timer_service().register_event_time_timer(MAX_WATERMARK)
        if len(self._held) >= self.size:
            yield from self._release()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield from self._release()

    def _release(self) -> Iterator[Any]:
        while self._held:
            yield self._held.pop()

    def model(self, records: Records) -> Records:
        return list(records)
