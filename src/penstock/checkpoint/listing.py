"""Whether the segments of a checkpoint are there, without reading one of them.

One listing of a folder tells the sizes of all files in it. What is missing or cut short is found by
that; what was altered is found by whoever reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.checkpoint.handles import SegmentHandle
from penstock.common.filesystem import FileSystem

Place = Callable[[str], tuple[FileSystem, str]]
"""Where the segment with a path is."""


class Listing:
    """The sizes of the files in folders, each of which is listed once, when it is first needed."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._sizes: dict[str, dict[str, int]] = {}

    def lack(self, handles: Iterable[SegmentHandle]) -> str | None:
        """What is missing or has another size; None if nothing is. StorageError if nobody knows."""
        for handle in handles:
            size = self._size(handle.path)
            if size is None:
                return f"{handle.path} is missing"
            if size != handle.size:
                return handle.cut_short(size)
        return None

    def _size(self, path: str) -> int | None:
        fs, whole_path = self._place(path)
        folder, _, name = whole_path.rpartition("/")
        if folder not in self._sizes:
            self._sizes[folder] = fs.sizes(folder)
        return self._sizes[folder].get(name)
