"""The ExecutionGraph: every vertex times its parallelism, laid out on slots.

Subtask j of every vertex of a slot sharing group lives in slot j of that group, so a group needs
as many slots as its widest vertex, and a job as many as its groups together. A *channel* is one
sender's share of an exchange with one receiver; it is named (edge, sender, receiver) everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.graph.job_graph import JobEdge, JobGraph


class SubtaskId(NamedTuple):
    """Subtask `index` of vertex `vertex`."""

    vertex: int
    index: int  # type: ignore[assignment]


class ChannelId(NamedTuple):
    """The stream of elements on `edge` from subtask `sender` to subtask `receiver`."""

    edge: int
    sender: int
    receiver: int


@dataclass(frozen=True)
class ExecutionGraph:
    """A job graph laid out on `slots` slots."""

    job: JobGraph
    slots: int
    group_offsets: tuple[tuple[str, int], ...]

    def slot_of(self, subtask: SubtaskId) -> int:
        group = self.job.vertex(subtask.vertex).slot_sharing_group
        return dict(self.group_offsets)[group] + subtask.index

    def subtasks(self) -> list[SubtaskId]:
        return [
            SubtaskId(vertex.id, index)
            for vertex in self.job.vertices
            for index in range(vertex.parallelism)
        ]

    def subtasks_of_slot(self, slot: int) -> list[SubtaskId]:
        return [subtask for subtask in self.subtasks() if self.slot_of(subtask) == slot]

    def input_channels(self, subtask: SubtaskId) -> list[ChannelId]:
        """What feeds a subtask, in a fixed order."""
        return [
            ChannelId(edge.id, sender, subtask.index)
            for edge in self.job.inputs(subtask.vertex)
            for sender in range(self.job.vertex(edge.source).parallelism)
            if subtask.index in self._receivers(edge, sender)
        ]

    def output_channels(self, edge: JobEdge, sender: int) -> list[ChannelId]:
        """The channels of one sender on one edge, in the order partitioning counts them."""
        receivers = self._receivers(edge, sender)
        return [ChannelId(edge.id, sender, receiver) for receiver in receivers]

    def _receivers(self, edge: JobEdge, sender: int) -> Sequence[int]:
        senders = self.job.vertex(edge.source).parallelism
        receivers = self.job.vertex(edge.target).parallelism
        return edge.partitioning.receivers(sender, senders, receivers)

    def sender_of(self, channel: ChannelId) -> SubtaskId:
        return SubtaskId(self.job.edges[channel.edge].source, channel.sender)

    def receiver_of(self, channel: ChannelId) -> SubtaskId:
        return SubtaskId(self.job.edges[channel.edge].target, channel.receiver)

    def peers(self, slot: int) -> set[int]:
        """The other slots that a slot exchanges buffers with, in either direction."""
        met: set[int] = set()
        for subtask in self.subtasks_of_slot(slot):
            for channel in self.input_channels(subtask):
                met.add(self.slot_of(self.sender_of(channel)))
            for edge in self.job.outputs(subtask.vertex):
                for channel in self.output_channels(edge, subtask.index):
                    met.add(self.slot_of(self.receiver_of(channel)))
        return met - {slot}


def build_execution_graph(job: JobGraph) -> ExecutionGraph:
    """Lay `job` out on slots."""
    widest: dict[str, int] = {}
    for vertex in job.vertices:
        group = vertex.slot_sharing_group
        widest[group] = max(widest.get(group, 0), vertex.parallelism)
    offsets, total = [], 0
    for group, width in widest.items():
        offsets.append((group, total))
        total += width
    return ExecutionGraph(job, total, tuple(offsets))
