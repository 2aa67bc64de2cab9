"""What a checkpoint has for a program: operators by uid, and who is left without the other.

A pure function of the program and the manifest, so the same answer is given before anything is
started (`penstock run --dry-run`) and when a job begins.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.checkpoint.handles import OperatorSnapshot
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.errors import ProgramError
from penstock.graph.job_graph import JobGraph
from penstock.graph.stream_graph import StreamNode
from penstock.jobmanager.in_flight import in_flight_problem

State = tuple[str, str]
"""(name, kind)."""


class Verdict(enum.Enum):
    """What becomes of an operator."""

    MATCHED = "matched"
    NEW = "new"
    DROPPED = "dropped"
    INCOMPATIBLE = "incompatible"


@dataclass(frozen=True)
class SavedOperator:
    """An operator as a checkpoint has it."""

    uid: str
    name: str
    vertex: VertexSnapshot
    positions: bool = False
    """Whether an enumerator of it has state."""
    committables: bool = False
    """Whether there is output of it to be committed."""

    @property
    def parts(self) -> list[OperatorSnapshot]:
        """What each subtask had; nothing for one that had finished."""
        empty = OperatorSnapshot()
        return [subtask.operators.get(self.uid, empty) for subtask in self.vertex.subtasks]

    @property
    def states(self) -> list[State]:
        return sorted({s for part in self.parts for h in part.segments for s in h.states})

    @property
    def keyed_states(self) -> list[State]:
        handles = (handle for part in self.parts for handle in part.segments)
        return sorted({state for h in handles if h.first_group >= 0 for state in h.states})

    @property
    def size(self) -> int:
        """Bytes of its segments."""
        return sum(handle.size for part in self.parts for handle in part.segments)

    def holdings(self) -> list[str]:
        """All that would be lost without it, in words."""
        return [f"{kind} state {name!r}" for name, kind in self.states] + self.other_holdings()

    def other_holdings(self) -> list[str]:
        """What it has beside state."""
        held = []
        # Those of a reader that has ended are only to be told to somebody.
        read = (
            s.operators[self.uid]
            for s in self.vertex.subtasks
            if not s.finished and self.uid in s.operators
        )
        if self.positions or any(part.splits for part in read):
            held.append("source positions")
        if self.committables:
            held.append("output that is not committed")
        return held


@dataclass(frozen=True)
class Match:
    """One operator, of the program or of the checkpoint or of both."""

    uid: str
    name: str
    verdict: Verdict
    saved: SavedOperator | None = None
    problem: str | None = None
    """Why it cannot be restored."""


def saved_operators(metadata: CheckpointMetadata) -> dict[str, SavedOperator]:
    """The operators of a checkpoint, by uid."""
    return {
        uid: SavedOperator(
            uid,
            name,
            vertex,
            uid in metadata.enumerators and not vertex.finished(),
            bool(metadata.committables.get(uid)),
        )
        for vertex in metadata.vertices.values()
        for uid, name in vertex.operators.items()
    }


def match(job: JobGraph, metadata: CheckpointMetadata) -> list[Match]:
    """Every operator of the program, in its order, and then those that only the checkpoint has."""
    saved = saved_operators(metadata)
    nodes = {node.uid: node for vertex in job.vertices for node in vertex.nodes}
    matches = []
    for uid, node in nodes.items():
        if uid not in saved:
            matches.append(Match(uid, node.name, Verdict.NEW))
            continue
        problem = _problem(node, saved[uid])
        verdict = Verdict.MATCHED if problem is None else Verdict.INCOMPATIBLE
        matches.append(Match(uid, node.name, verdict, saved[uid], problem))
    matches += [
        Match(uid, operator.name, Verdict.DROPPED, operator)
        for uid, operator in saved.items()
        if uid not in nodes
    ]
    return matches


def check_fits(job: JobGraph, metadata: CheckpointMetadata, ignore_unclaimed: bool) -> list[str]:
    """ProgramError unless all that the checkpoint holds finds its place; a line for what is left.

    `ignore_unclaimed` lets state go that no operator of the program claims.
    """
    where = f"checkpoint {metadata.checkpoint} does not fit the program"
    under_way = in_flight_problem(job, metadata)
    if under_way is not None:
        raise ProgramError(f"{where}: {under_way}")
    notes = []
    for problem in _unclaimed(match(job, metadata)):
        if not ignore_unclaimed:
            raise ProgramError(
                f"{where}: {problem}; give the operator its uid back, or let its state go with "
                "-n (execution.state-recovery.ignore-unclaimed-state)"
            )
        notes.append(f"not restored: {problem}")
    for each in match(job, metadata):
        if each.problem is not None:
            raise ProgramError(f"{where}: {each.name} (uid {each.uid}) {each.problem}")
    return notes


def _unclaimed(matches: list[Match]) -> Iterator[str]:
    for each in matches:
        if each.verdict is Verdict.DROPPED and each.saved is not None and each.saved.holdings():
            held = ", ".join(each.saved.holdings())
            yield f"the program has no operator with uid {each.uid} ({each.name}), which has {held}"


def _problem(node: StreamNode, saved: SavedOperator) -> str | None:
    """Why the operator cannot take its state over."""
    keyed = ", ".join(name for name, _ in saved.keyed_states)
    if not keyed:
        return None
    if not getattr(node.operator, "keyed", False):
        return f"has keyed state ({keyed}) in the checkpoint and is not keyed in the program"
    if saved.vertex.max_parallelism != node.max_parallelism:
        return (
            f"had max parallelism {saved.vertex.max_parallelism} and has {node.max_parallelism} "
            f"now: keyed state ({keyed}) is cut into that many key groups, so it must stay"
        )
    return None
