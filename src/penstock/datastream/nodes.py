"""Adding an operator to the program of an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.program import Upstream
from penstock.graph.operators import Operator
from penstock.graph.stream_graph import StreamNode

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


def add_node(
    env: StreamExecutionEnvironment,
    name: str,
    operator: Operator,
    output_type: TypeInformation | None,
    upstreams: tuple[Upstream, ...],
) -> int:
    """Add an operator to the program of `env`; its number."""
    program = env._program
    # A group is inherited when all inputs agree on it, as in Flink.
    groups = {program.nodes[upstream.node].slot_sharing_group for upstream in upstreams}
    node = StreamNode(
        program.next_id(),
        name,
        operator,
        env.get_parallelism(),
        env.get_max_parallelism(),
        output_type=output_type,
    )
    node_id = program.add(node, upstreams)
    if len(groups) == 1:
        program.change(node_id, slot_sharing_group=groups.pop())
    return node_id
