"""A subtask's part in checkpoints: cut between two records, stored off the loop, acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.checkpoint.channel_state import IN_FLIGHT, in_flight_parts
from penstock.checkpoint.handles import OperatorSnapshot, SegmentHandle, SubtaskSnapshot
from penstock.checkpoint.savepoints import SavepointLocation
from penstock.checkpoint.segment_names import SegmentName
from penstock.checkpoint.segment_writing import store_segment
from penstock.checkpoint.store import CarriedSegments, SegmentStore
from penstock.common.clock import has_come
from penstock.common.keys import NO_GROUP
from penstock.errors import StateError, StorageError
from penstock.graph.execution_graph import SubtaskId
from penstock.network.elements import SavepointTarget
from penstock.network.messages import Acknowledge, Decline, SubtaskReport
from penstock.runtime.change_log import ChangeLog
from penstock.runtime.compaction import Compaction
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.in_flight import InFlight
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.runtime.operator_cut import OperatorCut
from penstock.runtime.operators import RuntimeOperator
from penstock.state.marks import mark_of


@dataclass(frozen=True)
class _Stored:
    """The cuts of a subtask, stored."""

    operators: dict[str, OperatorSnapshot]
    size: int
    segments: dict[str, bytes]
    copies: dict[str, OperatorSnapshot] | None = None
    """The same as a savepoint has it."""


@dataclass
class _Gathering:
    """A snapshot of which the channel state is still gathered."""

    snapshot: SubtaskSnapshot
    stored: _Stored | None = None
    in_flight: InFlight | None = None


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
        edges: Mapping[int, str],
        restored: int = 0,
        changelog_ms: int | None = None,
        compresses: bool = False,
    ) -> None:
        """`restored` is the checkpoint that the attempt goes on from.

        With `changelog_ms`, what changes is written between checkpoints, that often. State is
        compressed or not.
        """
        self._compresses = compresses
        self._edges = edges
        self._gathering: dict[int, _Gathering] = {}
        self._subtask = subtask
        self._attempt = attempt
        self._operators = operators
        self._store = store
        self._environment = environment
        self._fail = fail
        self.epoch = restored + 1
        """Which checkpoint will cover what is written now: this one or a later."""
        self._logs: list[ChangeLog] = []
        self._log_every_ms = changelog_ms or 0
        self._log_at_ms: int | None = None
        if changelog_ms is not None and store is not None:
            self._logs = [self._log(o) for o in operators if isinstance(o, RuntimeKeyedFunction)]
        if self._logs:
            self._log_at_ms = environment.clock.now_ms() + self._log_every_ms

    def _log(self, operator: RuntimeKeyedFunction) -> ChangeLog:
        assert self._store is not None
        uid = operator.node.uid
        return ChangeLog(
            operator,
            self._store,
            self._environment.io,
            lambda: self.epoch,
            lambda checkpoint: self._name(checkpoint, uid),
            self._compresses,
        )

    def log_changes(self, now_ms: int) -> None:
        """Write what changed into the changelog if that is due; call between two records."""
        if has_come(self._log_at_ms, self._log_every_ms, now_ms):
            self._log_at_ms = now_ms + self._log_every_ms
            for log in self._logs:
                log.write()

    def take(
        self,
        checkpoint: int,
        confirmed: int,
        operators: list[RuntimeOperator],
        snapshot: SubtaskSnapshot,
        savepoint: SavepointTarget | None = None,
        gathers: bool = False,
        report: SubtaskReport | None = None,
    ) -> None:
        """Cut `operators` here and now; `snapshot` says what else is known of the subtask.

        For a savepoint all state is also written to its own place. If it `gathers`, it is whole
        only with the channel state that `gathered` brings. A `report` goes with the
        acknowledgement.
        """
        clock = self._environment.clock
        started = clock.monotonic_ns()
        self.epoch = checkpoint + 1
        # There is one unaligned checkpoint at a time: the one before was given up.
        self._gathering.clear()
        if confirmed:
            self.confirm(confirmed)
        cuts: list[OperatorCut] = []
        refused: StateError | StorageError | None = None
        for operator in operators:
            # All of them, whichever refuses: each has its part of what the next one carries on.
            try:
                if savepoint is not None and isinstance(operator, RuntimeKeyedFunction):
                    stored = self._store is not None
                    cuts.append(operator.cut(checkpoint, copied=True, stored=stored))
                else:
                    cuts.append(operator.cut(checkpoint))
            except (StateError, StorageError) as error:
                refused = refused or error
        if refused is not None:
            for cut in cuts:
                cut.discard()
            self._decline(checkpoint, refused)
            return
        cut_at = clock.monotonic_ns()
        if gathers:
            self._gathering[checkpoint] = _Gathering(snapshot)
        copies: SegmentStore | None = None
        if savepoint is not None:
            copies = SavepointLocation(savepoint.directory, savepoint.name).store()

        def done(result: _Stored | None, error: Exception | None) -> None:
            if isinstance(error, (StorageError, StateError)):
                self._decline(checkpoint, error)
            elif result is None:
                self._fail(error)
            else:
                sync_ns, async_ns = cut_at - started, clock.monotonic_ns() - cut_at
                timed = replace(snapshot, sync_ns=sync_ns, async_ns=async_ns)
                self._stored(checkpoint, result)
                if not gathers:
                    self._acknowledge(checkpoint, result, timed, report)
                elif checkpoint in self._gathering:
                    gathering = self._gathering[checkpoint]
                    gathering.snapshot, gathering.stored = timed, result
                    self._store_in_flight(checkpoint, gathering)

        self._environment.io.submit(lambda: self._write(checkpoint, cuts, copies), done)

    def gathered(self, in_flight: InFlight) -> None:
        """The channel state of a checkpoint is whole."""
        gathering = self._gathering.get(in_flight.checkpoint)
        if gathering is not None:
            gathering.in_flight = in_flight
            self._store_in_flight(in_flight.checkpoint, gathering)

    def _store_in_flight(self, checkpoint: int, gathering: _Gathering) -> None:
        """Store the channel state once all is known, and acknowledge."""
        snapshot, stored, in_flight = gathering.snapshot, gathering.stored, gathering.in_flight
        if stored is None or in_flight is None:
            return
        del self._gathering[checkpoint]
        if in_flight.problem is not None:
            self._decline(checkpoint, in_flight.problem)
            return
        snapshot = replace(snapshot, alignment_ns=in_flight.alignment_ns)
        data, store = in_flight.data(self._edges), self._store
        if not data:
            self._acknowledge(checkpoint, stored, snapshot)
            return
        assert store is not None, "there are no checkpoints without a store"
        vertex, index = self._subtask
        name = SegmentName.of_channels(self._attempt, checkpoint, index, vertex)

        def write() -> tuple[SegmentHandle, dict[str, bytes]]:
            names = {(channel.edge, IN_FLIGHT) for channel in data.channels}
            groups = range(NO_GROUP, NO_GROUP + 1)
            handle = store_segment(store, str(name), in_flight_parts(data), groups, names)
            carried = store.take() if isinstance(store, CarriedSegments) else {}
            return handle, carried

        def done(
            result: tuple[SegmentHandle, dict[str, bytes]] | None, error: Exception | None
        ) -> None:
            if isinstance(error, (StorageError, StateError)):
                self._decline(checkpoint, error)
            elif result is None:
                self._fail(error)
            else:
                handle, carried = result
                size, segments = stored.size + handle.size, {**stored.segments, **carried}
                whole = replace(stored, size=size, segments=segments)
                self._acknowledge(checkpoint, whole, replace(snapshot, in_flight=(handle,)))

        self._environment.io.submit(write, done)

    def _decline(self, checkpoint: int, reason: Exception) -> None:
        """This checkpoint cannot be; the job goes on and keeps the ones it has."""
        self._environment.tell(Decline(self._attempt, self._subtask, checkpoint, str(reason)))

    def _write(
        self, checkpoint: int, cuts: list[OperatorCut], copies: SegmentStore | None
    ) -> _Stored:
        """Make the cuts durable; those of a job without checkpoints only as copies."""
        store = self._store
        stored = {
            cut.uid: cut.store(store, self._name(checkpoint, cut.uid), copies, self._compresses)
            for cut in cuts
        }
        return _Stored(
            {uid: cut.snapshot for uid, cut in stored.items()},
            sum(cut.size for cut in stored.values()),
            store.take() if isinstance(store, CarriedSegments) else {},
            {uid: cut.copy for uid, cut in stored.items()} if copies is not None else None,
        )

    def _stored(self, checkpoint: int, result: _Stored) -> None:
        for operator in self._operators:
            if operator.node.uid in result.operators:
                operator.stored(checkpoint, result.operators[operator.node.uid])

    def _acknowledge(
        self,
        checkpoint: int,
        result: _Stored,
        snapshot: SubtaskSnapshot,
        report: SubtaskReport | None = None,
    ) -> None:
        whole = replace(snapshot, operators=result.operators, size=result.size)
        copy = None if result.copies is None else replace(whole, operators=result.copies)
        self._environment.tell(
            Acknowledge(
                self._attempt, self._subtask, checkpoint, whole, result.segments, report, copy
            )
        )

    def _name(self, checkpoint: int, uid: str) -> SegmentName:
        return SegmentName.of(self._attempt, checkpoint, self._subtask.index, uid)

    def confirm(self, checkpoint: int) -> None:
        """`checkpoint` is complete."""
        for operator in self._operators:
            operator.confirm(checkpoint)
            if isinstance(operator, RuntimeKeyedFunction) and operator.chain.confirm(
                mark_of(checkpoint)
            ):
                self._compact(operator, checkpoint)

    def _compact(self, operator: RuntimeKeyedFunction, checkpoint: int) -> None:
        assert self._store is not None, "what is confirmed was stored"
        chain, io = operator.chain, self._environment.io
        compaction = Compaction(
            chain, self._store, io, operator.groups, operator.origin, self._compresses
        )
        name = self._name(checkpoint, operator.node.uid).merged()
        compaction.start(str(name), operator.state.ships_files())

    def abort(self, checkpoint: int) -> None:
        """`checkpoint` will never be complete."""
        self._gathering = {c: kept for c, kept in self._gathering.items() if c > checkpoint}
        for operator in self._operators:
            operator.abort(checkpoint)
