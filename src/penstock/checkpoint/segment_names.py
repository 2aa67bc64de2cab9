"""Names of segments: who wrote which part of what for which checkpoint.

    1-4-0-6c35493a2b937829               attempt, checkpoint, subtask, operator: keyed state
    1-4-0-6c35493a2b937829-own           its operator state; `-union`: what every subtask is given
    1-4-0-6c35493a2b937829-log-3         the third piece of its changelog, for checkpoint 4
    1-4-0-6c35493a2b937829-merged        what a compaction made of its segments
    1-4-0-6c35493a2b937829-000012.sst    a file of its database
    1-4-0-channels-of-2                  what was in the channels of a subtask of vertex 2
    1-1-from-1-4-0-6c35493a2b937829      a copy, made by the first driver for checkpoint 1

A name says all that must be known to delete a segment that no checkpoint refers to. So names are
written and parsed here and nowhere else. What does not parse is not ours, and is left alone.

>>> name = SegmentName.of(attempt=1, checkpoint=4, subtask=0, uid="count")
>>> str(name.logged(3)) == f"{name}-log-3"
True
>>> SegmentName.parse(str(name.merged())).is_merged
True
"""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass, replace

FOLDER = "shared/"
"""What the paths of segments in the directory of their job begin with."""

_UNFINISHED = r"(?:\.[0-9a-f]{32}\.tmp)?"
"""Behind the name of what a writer that died has left of a segment."""
_NAME = re.compile(
    r"(\d+)-(\d+)-(\d+)-(channels-of-\d+|[^-./]+)(?:-([^/]+?))?" + _UNFINISHED, re.ASCII
)
_COPY = re.compile(r"(\d+)-(\d+)-from-([^/]+?)" + _UNFINISHED, re.ASCII)
_PLAIN = re.compile(r"\w[\w.-]*", re.ASCII)
"""All names of segments are of these characters: none means anything to a file system."""
_DATABASE_FILE = re.compile(r"CURRENT|MANIFEST-\d+|\d+\.sst", re.ASCII)
_MERGED = "merged"
_LOGGED = "log-"


@dataclass(frozen=True)
class SegmentName:
    """The name of a segment that a subtask wrote. No two segments of a job have the same."""

    attempt: int
    checkpoint: int
    subtask: int
    owner: str
    """A digest of the operator's uid, or which channels."""
    part: str = ""
    """Which segment of its owner for this checkpoint; empty for keyed state."""

    @staticmethod
    def of(attempt: int, checkpoint: int, subtask: int, uid: str) -> SegmentName:
        """The keyed state of an operator; its other segments are made of this name."""
        return SegmentName(attempt, checkpoint, subtask, _digest(uid))

    @staticmethod
    def of_channels(attempt: int, checkpoint: int, subtask: int, vertex: int) -> SegmentName:
        """What was in the channels of a subtask of `vertex`."""
        return SegmentName(attempt, checkpoint, subtask, f"channels-of-{vertex}")

    @staticmethod
    def parse(text: str) -> SegmentName | CopyName | None:
        """What a file is called; None if it is no segment.

        Of what a writer that died has left of a segment: the segment's name.
        """
        if match := _COPY.fullmatch(text):
            return CopyName(int(match[1]), int(match[2]), match[3])
        if match := _NAME.fullmatch(text):
            attempt, checkpoint, subtask = map(int, match.group(1, 2, 3))
            return SegmentName(attempt, checkpoint, subtask, match[4], match[5] or "")
        return None

    def own(self) -> SegmentName:
        """Operator state."""
        return replace(self, part="own")

    def union(self) -> SegmentName:
        """Operator state that every subtask is given on restore."""
        return replace(self, part="union")

    def logged(self, piece: int) -> SegmentName:
        """A piece of a changelog."""
        return replace(self, part=f"{_LOGGED}{piece}")

    def merged(self) -> SegmentName:
        """The result of a compaction."""
        return replace(self, part=_MERGED)

    def file(self, file: str) -> SegmentName:
        """A file of a database, called `file` there."""
        return replace(self, part=file)

    @property
    def is_logged(self) -> bool:
        return self.part.startswith(_LOGGED)

    @property
    def is_merged(self) -> bool:
        return self.part == _MERGED

    def __str__(self) -> str:
        name = f"{self.attempt}-{self.checkpoint}-{self.subtask}-{self.owner}"
        return f"{name}-{self.part}" if self.part else name


@dataclass(frozen=True)
class CopyName:
    """The name of a copy of another job's segment, or of a savepoint's."""

    generation: int
    """Of the driver that copied it."""
    checkpoint: int
    original: str

    def __str__(self) -> str:
        return f"{self.generation}-{self.checkpoint}-from-{self.original}"


def written_for(uid: str, subtask: int) -> str:
    """A name in a savepoint that no subtask wrote: never the same twice."""
    return f"{subtask}-{_digest(uid)}-{uuid.uuid4().hex[:12]}"


def is_segment_name(text: str) -> bool:
    """Whether a segment can be called that, by this version or by an earlier one.

    Looser than `parse`: a checkpoint that is refused for the name of a file is a checkpoint lost,
    and a plain name leads nowhere else.
    """
    return _PLAIN.fullmatch(text) is not None


def is_database_file(text: str) -> bool:
    """Whether a file of a database can be called that in the database's folder."""
    return _DATABASE_FILE.fullmatch(text) is not None


def path_of(name: str | SegmentName | CopyName) -> str:
    """The path of a segment, relative to its job's directory."""
    return f"{FOLDER}{name}"


def name_in(path: str) -> str:
    """The name of the segment at `path`."""
    return path.rsplit("/", 1)[-1]


def _digest(uid: str) -> str:
    """A uid may hold what a file's name may not."""
    return hashlib.sha256(uid.encode()).hexdigest()[:16]
