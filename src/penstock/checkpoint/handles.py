"""What a subtask reports for a checkpoint: handles of what it stored, positions, committables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.checkpoint.checked import flag, listed, number, text
from penstock.checkpoint.checksums import Checksums, checksums_of
from penstock.checkpoint.references import checked_path
from penstock.checkpoint.segment_names import FOLDER, is_database_file, is_segment_name
from penstock.common import plain
from penstock.common.plain import Plain
from penstock.errors import CorruptCheckpointError

MIN_WATERMARK = -(1 << 63)
MAX_WATERMARK = (1 << 63) - 1


@dataclass(frozen=True)
class SegmentHandle:
    """Where a segment is, and how to know that it is whole."""

    path: str
    size: int
    sha256: str
    """Of its bytes; of the checksums of its pieces if it has several."""
    first_group: int
    last_group: int
    states: tuple[tuple[str, str], ...] = ()
    """(name, kind) of every state in it, for whoever looks without reading it."""
    pieces: tuple[str, ...] = ()
    """The checksum of each of its pieces; empty if it is one, or was written before there were."""
    database: str = ""
    """Of a file of a database, and of the segment that says what is in it: which database."""
    file: str = ""
    """What the file is called in its database's folder; empty for a segment."""
    entries_size: int = 0
    """Of the segment that describes a database: the bytes of entries in its files, which are
    compressed."""

    @staticmethod
    def of(
        path: str,
        data: bytes | Iterable[bytes],
        groups: range,
        states: Iterable[tuple[str, str]] = (),
    ) -> SegmentHandle:
        """The handle of a segment that was written, given whole or in parts."""
        parts = (data,) if isinstance(data, bytes) else data
        return SegmentHandle.known(path, checksums_of(parts), groups, states)

    @staticmethod
    def known(
        path: str, checksums: Checksums, groups: range, states: Iterable[tuple[str, str]] = ()
    ) -> SegmentHandle:
        """The handle of a segment that was written, by its checksums."""
        pieces = checksums.pieces()
        digest = pieces[0] if len(pieces) == 1 else _digest("".join(pieces).encode())
        return SegmentHandle(
            path,
            checksums.size,
            digest,
            groups.start,
            groups.stop - 1,
            tuple(sorted(set(states))),
            pieces if len(pieces) > 1 else (),
        )

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> SegmentHandle:
        """ValueError, or TypeError, for what no manifest of ours can have."""
        database, file = text(value.get("database", "")), text(value.get("file", ""))
        if database and not is_segment_name(database):
            raise ValueError(f"it refers to {database!r}, which is no database")
        if file and not is_database_file(file):
            raise ValueError(f"it refers to {file!r}, which is no file of a database")
        return SegmentHandle(
            checked_path(text(value["path"])),
            number(value["size"], least=0),
            text(value["sha256"]),
            number(value["first_group"]),
            number(value["last_group"]),
            tuple((text(name), text(kind)) for name, kind in listed(value["states"])),
            tuple(map(text, listed(value.get("pieces", [])))),
            database,
            file,
            number(value.get("entries_size", 0), least=0),
        )

    @property
    def foreign(self) -> bool:
        """Whether it lies outside of the job's directory: read, but not built upon or deleted."""
        return not self.path.startswith(FOLDER)

    def verify(self, data: bytes) -> None:
        """CorruptCheckpointError unless `data` is what was written."""
        if len(data) != self.size:
            raise CorruptCheckpointError(self.cut_short(len(data)))
        if self.pieces:
            self.verify_pieces(0, data)
        elif _digest(data) != self.sha256:
            raise self._altered()

    def cut_short(self, size: int) -> str:
        """What is wrong with a file of another size."""
        return f"{self.path} has {size} bytes, {self.size} were written: it is cut short"

    def verify_pieces(self, first: int, data: bytes) -> None:
        """CorruptCheckpointError unless `data` are whole pieces from `first` on, as written."""
        digests = checksums_of([data]).pieces()
        if not digests or digests != self.pieces[first : first + len(digests)]:
            raise self._altered()

    def _altered(self) -> CorruptCheckpointError:
        return CorruptCheckpointError(f"{self.path} was altered: its checksum does not match")

    def overlaps(self, groups: range) -> bool:
        return self.first_group < groups.stop and groups.start <= self.last_group


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class OperatorSnapshot:
    """One operator of one subtask in a checkpoint."""

    segments: tuple[SegmentHandle, ...] = ()
    splits: tuple[Plain, ...] = ()
    committables: tuple[Plain, ...] = ()

    def to_json(self, what: str) -> dict[str, Any]:
        return {
            "segments": [dict(vars(handle)) for handle in self.segments],
            "splits": plain.encode(self.splits, f"a split of {what}"),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> OperatorSnapshot:
        segments = tuple(SegmentHandle.from_json(handle) for handle in listed(value["segments"]))
        return OperatorSnapshot(segments, tuple(plain.decode(listed(value["splits"]))))


@dataclass(frozen=True)
class SubtaskSnapshot:
    """One subtask in a checkpoint.

    A finished one has nothing but its last committables, and splits whose ends somebody has yet to
    hear of.
    """

    finished: bool
    watermark: int = MIN_WATERMARK
    operators: Mapping[str, OperatorSnapshot] = field(default_factory=dict)
    sync_ns: int = 0
    async_ns: int = 0
    alignment_ns: int = 0
    size: int = 0
    clocks: tuple[Plain, ...] = ()
    """Of a subtask that makes watermarks: the newest timestamp of every split it reads."""
    in_flight: tuple[SegmentHandle, ...] = ()
    """Channel state, of an unaligned checkpoint; see `penstock.checkpoint.channel_state`."""

    def segments(self) -> list[SegmentHandle]:
        """Everything that it refers to."""
        operators = (h for operator in self.operators.values() for h in operator.segments)
        return [*operators, *self.in_flight]

    def state_size(self) -> int:
        """Bytes of the segments that a restore reads."""
        return sum(
            handle.size for operator in self.operators.values() for handle in operator.segments
        )

    def to_json(self) -> dict[str, Any]:
        content = {
            "finished": self.finished,
            "watermark": self.watermark,
            "clocks": plain.encode(self.clocks, "a split"),
            "operators": {uid: op.to_json(uid) for uid, op in self.operators.items()},
        }
        if self.in_flight:
            content["in_flight"] = [dict(vars(handle)) for handle in self.in_flight]
        return content

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> SubtaskSnapshot:
        operators = {
            uid: OperatorSnapshot.from_json(operator)
            for uid, operator in value["operators"].items()
        }
        clocks = tuple(plain.decode(listed(value["clocks"])))
        in_flight = tuple(SegmentHandle.from_json(h) for h in listed(value.get("in_flight", [])))
        finished, watermark = flag(value["finished"]), number(value["watermark"])
        return SubtaskSnapshot(finished, watermark, operators, clocks=clocks, in_flight=in_flight)
