"""Which segments the checkpoints of a job refer to, and so what may be deleted."""

from __future__ import annotations

from penstock.checkpoint.coordinator import unreferenced
from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.jobmanager.recovery import StartPoint


class Retained:
    """The complete checkpoints of a job that have not been deleted."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._references: dict[int, frozenset[str]] = {}
        self._doubtful: dict[int, frozenset[str]] = {}

    def restored(self, start: StartPoint) -> None:
        """A new attempt begins at `start`; what is newer leads nowhere."""
        self._doubtful.clear()
        self._references = {c: p for c, p in self._references.items() if c < start.checkpoint}
        if start.checkpoint:
            self._references[start.checkpoint] = start.references

    def completed(self, metadata: CheckpointMetadata) -> None:
        self._references[metadata.checkpoint] = metadata.segment_paths()

    def doubt(self, metadata: CheckpointMetadata) -> None:
        """Nobody knows whether this one exists."""
        self._doubtful[metadata.checkpoint] = metadata.segment_paths()

    def ids(self) -> frozenset[int]:
        """The checkpoints that are known to exist and are to be kept for now."""
        return frozenset(self._references)

    def take_superfluous(self, settled: int, needed: int | None) -> dict[int, frozenset[str]]:
        """Checkpoints to be deleted, each with its segments, when all that `settled` covers is
        committed.

        All newer ones stay, and all from `needed` on, whatever their number.
        """
        stays = settled if needed is None else min(settled, needed)
        gone = unreferenced(self._references, self._most, stays)
        for checkpoint in gone:
            del self._references[checkpoint]
        gone |= {c: segments for c, segments in self._doubtful.items() if c < settled}
        self._doubtful = {c: s for c, s in self._doubtful.items() if c > settled}
        in_use = frozenset().union(*self._references.values(), *self._doubtful.values())
        return {checkpoint: segments - in_use for checkpoint, segments in gone.items()}
