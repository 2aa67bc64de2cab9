"""What a file format must say: how a file is cut into splits, and how a split is read."""

from __future__ import annotations

from abc import ABC, abstractmethod

from penstock.common.plain import Plain
from penstock.connectors.source import SourceReader
from penstock.errors import RecordError

_SHOWN = 200


class FileFormat(ABC):
    """How files become records; it is pickled into the job."""

    @abstractmethod
    def splits(self, file: str, split_bytes: int | None) -> list[Plain]:
        """The splits of `file`, of about `split_bytes` each; None: the file is one split.

        A format whose files cannot be cut anywhere cuts where it can.
        """

    @abstractmethod
    def create_reader(self) -> SourceReader:
        """A reader for splits of any number of files."""


def bad_record(file: str, place: str, what: str, value: object) -> RecordError:
    """A record that cannot be read: where it is, what is wrong, and as much of it as is useful."""
    text = repr(value)
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]}... ({len(text)} characters)"
    return RecordError(f"{file}, {place}: {what}: {text}", f"{file}, {place}")
