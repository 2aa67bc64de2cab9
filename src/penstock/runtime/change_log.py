"""The changelog: what changes goes to storage between checkpoints, which then write the tail only.

Every so often what changed since the last cut is cut off as a *piece*, stored as a segment, and
becomes part of the chain that the next checkpoint builds upon. It is the same cut that a checkpoint
makes, without a barrier: it must lie between two records, but it means nothing to other subtasks.

A piece that cannot be stored is no harm: what it held is in the next piece, or in the checkpoint.
A checkpoint that is cut while a piece is under way does not wait for it and writes what is in it;
the piece is let go then. So every piece in the chain is in the manifest of the next checkpoint,
which is the one that its name says: that is how it is known what may be swept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.checkpoint.segment_names import SegmentName
from penstock.checkpoint.store import SegmentStore
from penstock.errors import StateError
from penstock.runtime.environment import IoExecutor
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.runtime.operator_cut import OperatorCut, StoredCut
from penstock.state.marks import mark_of

log = logging.getLogger(__name__)


class ChangeLog:
    """The changelog of one operator in one subtask."""

    def __init__(
        self,
        operator: RuntimeKeyedFunction,
        store: SegmentStore,
        io: IoExecutor,
        epoch: Callable[[], int],
        name: Callable[[int], SegmentName],
        compress: bool = False,
    ) -> None:
        """`epoch` is the checkpoint to come, `name` names what is written for one."""
        self._operator = operator
        self._store = store
        self._io = io
        self._epoch = epoch
        self._name = name
        self._compress = compress
        self._pieces = 0
        self._under_way = False

    def write(self) -> None:
        """Cut off what changed, here and now between two records, and store it.

        Nothing is done while a piece is under way, and before there is a checkpoint to build upon.
        """
        operator, epoch = self._operator, self._epoch()
        base = operator.chain.base()
        if self._under_way or not base or not operator.state.moved():
            return
        self._pieces += 1
        mark = mark_of(epoch - 1, self._pieces)
        try:
            blocks = operator.state.cut(mark, full=False)
        except StateError as error:
            # A value that cannot be written: the checkpoint that needs it says so.
            log.debug("no piece of the changelog: %s", error)
            return
        cut = OperatorCut(
            operator.node.uid,
            epoch,
            name=operator.node.name,
            base=base,
            blocks=blocks,
            groups=operator.groups,
            origin=operator.origin,
        )
        name = self._name(epoch).logged(self._pieces)

        def done(result: StoredCut | None, error: Exception | None) -> None:
            self._under_way = False
            if operator.chain.closed:
                return
            if result is None:
                log.warning("a piece of the changelog was not stored, it comes again: %s", error)
                return
            if self._epoch() != epoch:
                return
            operator.chain.logged(mark, result.snapshot.segments[len(base) :])
            operator.state.confirm(mark)

        self._under_way = True
        self._io.submit(lambda: cut.store(self._store, name, None, self._compress), done)
