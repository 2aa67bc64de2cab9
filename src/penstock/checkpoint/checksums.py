"""Checksums of a segment that is read or written part after part.

Every piece of a megabyte has one of its own, wherever the parts begin and end.

>>> both, one = Checksums(), Checksums()
>>> both.add(b"seg"); both.add(b"ment"); one.add(b"segment")
>>> both.size, both.pieces() == one.pieces()
(7, True)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

PIECE = 1 << 20
"""Of a segment that is larger every so many bytes have a checksum: parts of it can be read."""


class Checksums:
    """The checksum of every piece of what was added."""

    def __init__(self) -> None:
        self.size = 0
        self._whole: list[str] = []
        self._digest, self._left = hashlib.sha256(), PIECE

    def add(self, *parts: bytes) -> None:
        for part in parts:
            self.size += len(part)
            view = memoryview(part)
            while view:
                self._digest.update(view[: self._left])
                taken = min(self._left, len(view))
                view, self._left = view[taken:], self._left - taken
                if not self._left:
                    self._whole.append(self._digest.hexdigest())
                    self._digest, self._left = hashlib.sha256(), PIECE

    def pieces(self) -> tuple[str, ...]:
        """The checksums so far; the last piece may be shorter."""
        rest = [self._digest.hexdigest()] if self._left < PIECE else []
        return (*self._whole, *rest)


def checksums_of(parts: Iterable[bytes]) -> Checksums:
    """Those of what the parts are one after another."""
    checksums = Checksums()
    for part in parts:
        checksums.add(part)
    return checksums
