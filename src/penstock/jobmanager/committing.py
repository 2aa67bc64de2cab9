"""Commits: what complete checkpoints cover and nobody has confirmed yet.

Every committable of a complete checkpoint is committed, again if need be, until it is confirmed;
until then every later checkpoint carries it too, so that whoever recovers from any of them
commits it. Committing is idempotent, so doing it once too often is harmless.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping

from penstock.common import plain
from penstock.common.plain import Plain
from penstock.connectors.sink import Committer, CommitterContext
from penstock.errors import PenstockError, ProgramError, SinkError
from penstock.graph.job_graph import JobGraph
from penstock.graph.operators import SinkOperator

Committables = Mapping[str, tuple[Plain, ...]]


class Commits:
    """The committers of a job and what they have yet to commit."""

    def __init__(
        self,
        job: JobGraph,
        job_id: str,
        last_attempt: int = sys.maxsize,
        interval_ms: int | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        self._committers: dict[str, Committer] = {}
        self._uids = {node.uid for vertex in job.vertices for node in vertex.nodes}
        for vertex in job.vertices:
            for node in vertex.nodes:
                if isinstance(node.operator, SinkOperator):
                    context = CommitterContext(
                        job_id, node.uid, last_attempt, interval_ms, timeout_ms
                    )
                    committer = node.operator.sink.create_committer(context)
                    if committer is not None:
                        self._committers[node.uid] = committer
        self._kept: dict[str, tuple[Plain, ...]] = {}
        self._unconfirmed: dict[str, dict[str, Plain]] = {}

    def unconfirmed(self) -> Committables:
        return {uid: tuple(values.values()) for uid, values in self._unconfirmed.items()}

    def add(self, committables: Committables) -> None:
        """These are covered by a complete checkpoint."""
        for uid, values in committables.items():
            known = self._unconfirmed.setdefault(uid, {})
            for value in values:
                known[_name(value)] = value

    def confirm(self, committables: Committables) -> None:
        """These are committed."""
        for uid, values in committables.items():
            known = self._unconfirmed.get(uid, {})
            for value in values:
                known.pop(_name(value), None)

    def restored(self) -> None:
        """A new attempt starts, and all that its checkpoint covers is committed."""
        self._unconfirmed = {}

    def known(self, committables: Committables) -> dict[str, tuple[Plain, ...]]:
        """Those of sinks that are in the program: others have been let go."""
        return {uid: values for uid, values in committables.items() if uid in self._uids}

    def commit(self, committables: Committables) -> None:
        """Carry out; slow, and safe to call from another thread and more than once."""
        for uid, values in committables.items():
            if not values:
                continue
            try:
                self._committer(uid).commit(list(values))
            except PenstockError:
                raise
            except Exception as error:
                raise SinkError(f"the sink with uid {uid} cannot commit: {error}") from error

    def keep(self, committables: Committables) -> None:
        """A savepoint covers these: whoever restores it commits them, whatever becomes of us."""
        self._kept = merge([self._kept, committables])

    def abort_others(self, keep: Committables) -> None:
        """Nothing of earlier attempts may become visible except `keep`; as slow as `commit`.

        What a savepoint covers is not aborted either.
        """
        kept = merge([keep, self._kept])
        for uid, committer in self._committers.items():
            committer.abort_others(list(kept.get(uid, ())))

    def close(self) -> None:
        """The job is over."""
        for committer in self._committers.values():
            committer.close()

    def _committer(self, uid: str) -> Committer:
        if uid not in self._committers:
            raise ProgramError(f"the sink with uid {uid} prepared output but has no committer")
        return self._committers[uid]


def merge(parts: Iterable[Committables]) -> dict[str, tuple[Plain, ...]]:
    """All committables of `parts`, each once."""
    merged: dict[str, dict[str, Plain]] = {}
    for part in parts:
        for uid, values in part.items():
            known = merged.setdefault(uid, {})
            for value in values:
                known[_name(value)] = value
    return {uid: tuple(values.values()) for uid, values in merged.items() if values}


def _name(value: Plain) -> str:
    return json.dumps(plain.encode(value, "a committable"), sort_keys=True)
