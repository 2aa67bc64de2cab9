"""The sink of a database."""

from __future__ import annotations

from penstock.connectors.delivery import DeliveryGuarantee
from penstock.connectors.jdbc.committer import PostgresCommitter, owner_of, session_of
from penstock.connectors.jdbc.database import Database
from penstock.connectors.jdbc.statement import Statement
from penstock.connectors.jdbc.writers import Batching, DatabaseWriter, TwoPhaseWriter
from penstock.connectors.sink import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from penstock.errors import ProgramError


class DatabaseSink(Sink):
    """Executes a statement for every record.

    `prefix` names the transactions of an exactly-once sink; the job's id unless it is given.
    """

    def __init__(
        self,
        database: Database,
        statement: Statement,
        batching: Batching,
        guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE,
        prefix: str | None = None,
    ) -> None:
        self._two_phase = guarantee is DeliveryGuarantee.EXACTLY_ONCE
        if self._two_phase and not database.is_postgres():
            raise ProgramError(
                "delivery exactly once needs PostgreSQL; elsewhere an upsert, at least once, ends "
                "in the same state"
            )
        self._database = database
        self._statement = statement
        self._batching = batching
        self._prefix = prefix

    def create_writer(self, context: WriterContext) -> SinkWriter:
        parts = (self._database, self._statement, self._batching, context.clock, context.wake)
        if not self._two_phase:
            return DatabaseWriter(*parts)
        owner = self._owner(context.job_id, context.uid)
        return TwoPhaseWriter(*parts, owner=owner, session=session_of(owner))

    def create_committer(self, context: CommitterContext) -> Committer | None:
        if not self._two_phase:
            return None
        return PostgresCommitter(self._database, self._owner(context.job_id, context.uid))

    def _owner(self, job: str, uid: str) -> str:
        return owner_of(self._prefix or job, uid)
