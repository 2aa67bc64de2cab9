"""The StreamGraph: the program as its author wrote it, one node per operator.

It is made of plain frozen nodes, so it can be printed, compared and tested without running. The
API adds nodes one after another; `StreamGraph.build` checks the whole and gives every node a uid.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.common.keys import MAX_PARALLELISM_LIMIT
from penstock.common.typeinfo import TypeInformation
from penstock.errors import DuplicateNameError, InvalidParallelismError, ProgramError
from penstock.graph.operators import Operator, SinkOperator, SourceOperator
from penstock.graph.partitioning import ForwardPartitioning, Partitioning, RebalancePartitioning

DEFAULT_SHARING_GROUP = "default"


class Chaining(enum.Enum):
    """Whether an operator may be fused with its neighbours."""

    ALWAYS = "always"
    HEAD = "head"
    NEVER = "never"


@dataclass(frozen=True)
class StreamNode:
    """One operator of the program."""

    id: int
    name: str
    operator: Operator
    parallelism: int
    max_parallelism: int
    uid: str = ""
    chaining: Chaining = Chaining.ALWAYS
    slot_sharing_group: str = DEFAULT_SHARING_GROUP
    output_type: TypeInformation | None = None
    description: str = ""
    buffer_timeout_ms: int | None = None
    """How long its buffers may gather; None: as long as the job's."""
    side_types: tuple[tuple[str, TypeInformation], ...] = ()
    """The types of its side outputs, as far as those who read them declared one."""
    generated_uid: bool = False
    """Whether the uid was not given by the program's author."""
    own_parallelism: bool = False
    """Whether the parallelism is the operator's own, and not the job's."""


@dataclass(frozen=True)
class StreamEdge:
    """Records go from `source` to `target`, spread by `partitioning`."""

    source: int
    target: int
    partitioning: Partitioning
    input: int = 0
    """Which input of `target` it feeds, where that has two."""
    tag: str | None = None
    """The side output of `source` that it carries; None: the main output."""
    implied: bool = False
    """Whether nobody chose the partitioning: it follows from the parallelisms of the two ends."""

    @property
    def identity(self) -> str:
        """What tells it from other edges between operators, as part of a generated uid."""
        side = "" if self.tag is None else f":{self.tag}"
        partitioning = self.partitioning
        # Which of the two it is follows from the parallelism, and uids outlive that.
        if isinstance(partitioning, RebalancePartitioning):
            partitioning = ForwardPartitioning()
        return partitioning.name + side + (f":{self.input}" if self.input else "")


@dataclass(frozen=True)
class StreamGraph:
    """A checked program: nodes in an order in which every input comes first."""

    nodes: tuple[StreamNode, ...]
    edges: tuple[StreamEdge, ...]

    @staticmethod
    def build(nodes: Sequence[StreamNode], edges: Sequence[StreamEdge]) -> StreamGraph:
        """Check `nodes` and `edges` and fill in the uids the author did not give."""
        if not nodes:
            raise ProgramError("the program has no operators: nothing to execute")
        if not any(isinstance(node.operator, SinkOperator) for node in nodes):
            raise ProgramError("the program has no sink: add one, for example .print()")
        for node in nodes:
            check_parallelism(node)
        ordered = sorted(nodes, key=lambda node: node.id)
        checked = tuple(check_edge(edge, ordered) for edge in edges)
        return StreamGraph(_with_uids(ordered, checked), checked)

    def node(self, node_id: int) -> StreamNode:
        return next(node for node in self.nodes if node.id == node_id)

    def inputs(self, node_id: int) -> list[StreamEdge]:
        return [edge for edge in self.edges if edge.target == node_id]

    def outputs(self, node_id: int) -> list[StreamEdge]:
        return [edge for edge in self.edges if edge.source == node_id]


def check_parallelism(node: StreamNode) -> None:
    """InvalidParallelismError unless it is between 1 and the largest possible."""
    if not 1 <= node.max_parallelism <= MAX_PARALLELISM_LIMIT:
        raise InvalidParallelismError(
            f"operator {node.name!r}: max parallelism {node.max_parallelism} is not between 1 "
            f"and {MAX_PARALLELISM_LIMIT}"
        )
    if not 1 <= node.parallelism <= node.max_parallelism:
        raise InvalidParallelismError(
            f"operator {node.name!r}: parallelism {node.parallelism} is not between 1 and its max "
            f"parallelism {node.max_parallelism}; raise pipeline.max-parallelism or lower it"
        )


def implied_partitioning(source: StreamNode, target: StreamNode) -> Partitioning:
    """How records go from one operator to the next if nobody says how."""
    same = source.parallelism == target.parallelism
    return ForwardPartitioning() if same else RebalancePartitioning()


def check_edge(edge: StreamEdge, nodes: Sequence[StreamNode]) -> StreamEdge:
    """The edge; ProgramError for a forward between operators of different parallelism."""
    by_id = {node.id: node for node in nodes}
    source, target = by_id[edge.source], by_id[edge.target]
    forward = isinstance(edge.partitioning, ForwardPartitioning)
    if forward and source.parallelism != target.parallelism:
        raise ProgramError(
            f"forward from {source.name!r} (parallelism {source.parallelism}) to {target.name!r} "
            f"(parallelism {target.parallelism}): both need the same parallelism; use rebalance()"
        )
    return edge


def _with_uids(nodes: Sequence[StreamNode], edges: Sequence[StreamEdge]) -> tuple[StreamNode, ...]:
    """Give nodes without a uid one that depends only on what the node is and what feeds it."""
    uids: dict[int, str] = {}
    used: dict[str, str] = {}
    result = []
    for node in nodes:
        uid = node.uid or _generated_uid(node, edges, uids, used)
        if uid in used:
            raise DuplicateNameError(
                f"uid {uid!r} is used by operator {used[uid]!r} and by operator {node.name!r}; "
                "every uid must be unique, because state is found by it"
            )
        used[uid] = node.name
        uids[node.id] = uid
        result.append(replace(node, uid=uid, generated_uid=not node.uid))
    return tuple(result)


def _generated_uid(
    node: StreamNode, edges: Sequence[StreamEdge], uids: dict[int, str], used: dict[str, str]
) -> str:
    inputs = sorted(
        f"{uids[edge.source]}:{edge.identity}" for edge in edges if edge.target == node.id
    )
    twin = 0
    while True:
        text = "\x00".join([node.operator.kind, node.name, str(twin), *inputs])
        uid = hashlib.sha256(text.encode()).hexdigest()[:32]
        if uid not in used:
            return uid
        twin += 1


def is_source(node: StreamNode) -> bool:
    return isinstance(node.operator, SourceOperator)
