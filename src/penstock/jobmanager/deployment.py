"""What each slot is told to run: its part of the program, its state, its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from penstock.checkpoint.handles import SubtaskSnapshot
from penstock.jobmanager.job import Job
from penstock.jobmanager.recovery import StartPoint
from penstock.network.messages import Deploy

Carried = Callable[[Iterable[SubtaskSnapshot]], Mapping[str, bytes]]
"""The state that snapshots refer to, where it lives in the memory of the JobMaster."""


def deployments(
    job: Job, attempt: int, start: StartPoint, addresses: Mapping[int, str], carried: Carried
) -> Iterator[tuple[int, Deploy]]:
    """(slot, its deployment) for every slot of an attempt that begins at `start`."""
    for slot in addresses:
        restored: dict[tuple[int, int], SubtaskSnapshot] = {
            subtask: start.restored[subtask]
            for subtask in job.graph.subtasks_of_slot(slot)
            if subtask in start.restored
        }
        peers = {peer: addresses[peer] for peer in job.graph.peers(slot)}
        segments = carried(restored.values())
        yield (
            slot,
            Deploy(attempt, job.settings, job.store, restored, segments, peers, start.checkpoint),
        )
