"""A subtask's part in checkpoints: cut between two records, stored off the loop, acknowledged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.checkpoint.handles import OperatorSnapshot, SubtaskSnapshot
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.checkpoint.store import CarriedSegments, SegmentStore
from penstock.errors import StateError, StorageError
from penstock.graph.execution_graph import SubtaskId
from penstock.network.elements import SavepointTarget
from penstock.network.messages import Acknowledge, Decline
from penstock.runtime.compaction import Compaction
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.operators import OperatorCut, RuntimeKeyedFunction, RuntimeOperator


@dataclass(frozen=True)
class _Stored:
    """The cuts of a subtask, stored."""

    operators: dict[str, OperatorSnapshot]
    size: int
    segments: dict[str, bytes]


class Snapshots:
    """Takes the snapshots of one subtask."""

    def __init__(
        self,
        subtask: SubtaskId,
        attempt: int,
        operators: list[RuntimeOperator],
        store: SegmentStore | None,
        environment: SlotEnvironment,
        fail: Callable[[Any], None],
    ) -> None:
        self._subtask = subtask
        self._attempt = attempt
        self._operators = operators
        self._store = store
        self._environment = environment
        self._fail = fail
        self.epoch = 1
        """Which checkpoint will cover what is written now: this one or a later."""

    def take(
        self,
        checkpoint: int,
        confirmed: int,
        operators: list[RuntimeOperator],
        snapshot: SubtaskSnapshot,
        savepoint: SavepointTarget | None = None,
    ) -> None:
        """Cut `operators` here and now; `snapshot` says what else is known of the subtask.

        For a savepoint all state is written, to its own place, and nothing is built upon it.
        """
        clock = self._environment.clock
        started = clock.monotonic_ns()
        self.epoch = checkpoint + 1
        if confirmed:
            self.confirm(confirmed)
        cuts: list[OperatorCut] = []
        refused: StateError | StorageError | None = None
        for operator in operators:
            # All of them, whichever refuses: each has its part of what the next one carries on.
            try:
                if savepoint is not None and isinstance(operator, RuntimeKeyedFunction):
                    cuts.append(operator.cut(checkpoint, full=True))
                else:
                    cuts.append(operator.cut(checkpoint))
            except (StateError, StorageError) as error:
                refused = refused or error
        if refused is not None:
            self._decline(checkpoint, refused)
            return
        cut_at = clock.monotonic_ns()
        store = self._store
        if savepoint is not None:
            store = SavepointLocation(savepoint.directory, savepoint.name).store()

        def done(result: _Stored | None, error: Exception | None) -> None:
            if isinstance(error, (StorageError, StateError)):
                self._decline(checkpoint, error)
            elif result is None:
                self._fail(error)
            else:
                sync_ns, async_ns = cut_at - started, clock.monotonic_ns() - cut_at
                timed = replace(snapshot, sync_ns=sync_ns, async_ns=async_ns)
                if savepoint is None:
                    self._stored(checkpoint, result)
                self._acknowledge(checkpoint, result, timed)

        self._environment.io.submit(lambda: self._write(checkpoint, cuts, store), done)

    def _decline(self, checkpoint: int, reason: Exception) -> None:
        """This checkpoint cannot be; the job goes on and keeps the ones it has."""
        self._environment.tell(Decline(self._attempt, self._subtask, checkpoint, str(reason)))

    def _write(
        self, checkpoint: int, cuts: list[OperatorCut], store: SegmentStore | None
    ) -> _Stored:
        """Make the cuts durable."""
        stored: dict[str, OperatorSnapshot] = {}
        size = 0
        for cut in cuts:
            stored[cut.uid], written = cut.store(store, self._name(checkpoint, cut.uid))
            size += written
        carried = store.take() if isinstance(store, CarriedSegments) else {}
        return _Stored(stored, size, carried)

    def _stored(self, checkpoint: int, result: _Stored) -> None:
        for operator in self._operators:
            if operator.node.uid in result.operators:
                operator.stored(checkpoint, result.operators[operator.node.uid])

    def _acknowledge(self, checkpoint: int, result: _Stored, snapshot: SubtaskSnapshot) -> None:
        whole = replace(snapshot, operators=result.operators, size=result.size)
        self._environment.tell(
            Acknowledge(self._attempt, self._subtask, checkpoint, whole, result.segments)
        )

    def _name(self, checkpoint: int, uid: str) -> str:
        """What a segment is called: no other has the same name, whatever attempt wrote it."""
        # A digest: a uid may hold what a file's name may not.
        operator = hashlib.sha256(uid.encode()).hexdigest()[:16]
        return f"{self._attempt}-{checkpoint}-{self._subtask.index}-{operator}"

    def confirm(self, checkpoint: int) -> None:
        """`checkpoint` is complete."""
        for operator in self._operators:
            operator.confirm(checkpoint)
            if isinstance(operator, RuntimeKeyedFunction) and operator.chain.confirm(checkpoint):
                self._compact(operator, checkpoint)

    def _compact(self, operator: RuntimeKeyedFunction, checkpoint: int) -> None:
        assert self._store is not None, "what is confirmed was stored"
        chain, io = operator.chain, self._environment.io
        compaction = Compaction(chain, self._store, io, operator.groups, operator.origin)
        compaction.start(f"{self._name(checkpoint, operator.node.uid)}-merged")

    def abort(self, checkpoint: int) -> None:
        """`checkpoint` will never be complete."""
        for operator in self._operators:
            operator.abort(checkpoint)
