"""What was under way to a subtask at an unaligned checkpoint, put where it was."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.checkpoint.channel_state import OwnBatch, decode_in_flight
from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.store import SegmentStore
from penstock.graph.edge_names import edge_names
from penstock.graph.execution_graph import ChannelId, ExecutionGraph, SubtaskId
from penstock.runtime.gate import InputGate


def restore_channels(
    graph: ExecutionGraph,
    subtask: SubtaskId,
    gate: InputGate | None,
    handles: Iterable[SegmentHandle],
    store: SegmentStore,
) -> OwnBatch | None:
    """Give `gate` what its channels held; what the subtask itself had in its hands.

    `handles` names the segment of the subtask first, if it has one: what had arrived comes before
    what the senders had not sent.
    """
    names, uid = edge_names(graph.job), graph.job.vertex(subtask.vertex).uid
    inputs = {(names[c.edge], c.sender, c.receiver): c for c in graph.input_channels(subtask)}
    elements: dict[ChannelId, list[int | bytes]] = {}
    own: OwnBatch | None = None
    for handle in handles:
        data = store.read_segment(handle.path)
        handle.verify(data)
        segment = decode_in_flight(data)
        held = segment.own
        if held is not None and (held.uid, held.subtask) == (uid, subtask.index):
            own = held
        for state in segment.channels:
            channel = inputs.get((state.edge, state.sender, state.receiver))
            if channel is not None:
                elements.setdefault(channel, []).extend(state.elements)
    if gate is not None:
        gate.restore(elements)
    return own
