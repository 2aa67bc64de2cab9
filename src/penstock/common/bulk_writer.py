"""What writes the inside of a file: a whole format, with a header and a footer if it has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

Write = Callable[[bytes], None]


class BulkWriter(ABC):
    """Writes one file, from its first byte to its last."""

    buffer_bytes = 64 * 1024
    """How much a writer may hold back; the sink lowers it where files are to be small."""

    @abstractmethod
    def add_element(self, value: Any) -> None:
        """Take one record: keep a copy, not the record itself."""

    def flush(self) -> None:
        """Write what can be written before the end."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is left, footers included; nothing is added after this."""


class BulkWriterFactory(ABC):
    """Makes the writer of each new file; it is pickled into the job."""

    @abstractmethod
    def create(self, write: Write) -> BulkWriter:
        """A writer that appends to a new file with `write`."""
