"""Commits: what complete checkpoints cover and nobody has confirmed yet.

Every committable of a complete checkpoint is committed, again if need be, until it is confirmed;
until then every later checkpoint carries it too, so that whoever recovers from any of them
commits it. Committing is idempotent, so doing it once too often is harmless.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from penstock.common import plain
from penstock.common.plain import Plain
from penstock.connectors.sink import Committer, CommitterContext
from penstock.errors import LostOutputError, PenstockError, ProgramError, SinkError, StorageError
from penstock.graph.job_graph import JobGraph
from penstock.graph.operators import SinkOperator

log = logging.getLogger(__name__)

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
        self._unconfirmed: dict[str, dict[str, Plain]] = {}

    def unconfirmed(self) -> Committables:
        return {uid: tuple(values.values()) for uid, values in self._unconfirmed.items()}

    def add(self, committables: Committables) -> None:
        """These are covered by a complete checkpoint."""
        for uid, values in committables.items():
            known = self._unconfirmed.setdefault(uid, {})
            for value in values:
                known[name_of(value)] = value

    def confirm(self, committables: Committables) -> None:
        """These are committed."""
        for uid, values in committables.items():
            known = self._unconfirmed.get(uid, {})
            for value in values:
                known.pop(name_of(value), None)

    def restored(self) -> None:
        """A new attempt starts, and all that its checkpoint covers is committed."""
        self._unconfirmed = {}

    def known(self, committables: Committables) -> dict[str, tuple[Plain, ...]]:
        """Those of sinks that are in the program: others have been let go."""
        return {uid: values for uid, values in committables.items() if uid in self._uids}

    def commit(self, committables: Committables) -> None:
        """Carry out; slow, and safe to call from another thread and more than once."""
        work = {uid: list(values) for uid, values in committables.items() if values}
        if len(work) > 1:
            # If one sink has lost something, best none has committed yet.
            for uid, values in work.items():
                with self._losing(uid, work):
                    self._committer(uid).check(values)
        for uid, values in work.items():
            with self._losing(uid, work):
                self._committer(uid).commit(values)

    @contextmanager
    def _losing(self, uid: str, work: Mapping[str, list[Plain]]) -> Iterator[None]:
        """What a committer raises within the block is complete.

        If its sink has lost something, the error also says what other sinks have made visible:
        just now, or when the same was committed before and that came to nothing.
        """
        try:
            with _named(uid):
                yield
        except LostOutputError as error:
            for other, values in work.items():
                if other != uid:
                    with _named(other):
                        error.visible += tuple(self._committer(other).visible(values))
            raise

    def abort_others(self, keep: Committables) -> None:
        """Nothing of earlier attempts may become visible except `keep`; as slow as `commit`."""
        for uid, committer in self._committers.items():
            committer.abort_others(list(keep.get(uid, ())))

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
                known[name_of(value)] = value
    return {uid: tuple(values.values()) for uid, values in merged.items() if values}


def note_commit(mark: Callable[[], None]) -> None:
    """Mark something as committed; without the mark whoever restores it asks again."""
    try:
        mark()
    except StorageError as error:
        log.warning("a commit could not be noted, a restore will ask for it again: %s", error)


@contextmanager
def _named(uid: str) -> Iterator[None]:
    """What a committer raises within the block says which sink it is."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        raise SinkError(f"the sink with uid {uid} cannot commit: {error}") from error


def name_of(value: Plain) -> str:
    """What tells a committable from others."""
    return json.dumps(plain.encode(value, "a committable"), sort_keys=True)
