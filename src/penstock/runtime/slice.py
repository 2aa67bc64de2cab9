"""A slice of records that a loop runs over, and that any thread can end at any moment.

>>> part = Slice(["a", "b", "c"])
>>> for record in part.cursor:
...     print(record)
...     part.end()      # its time is over
a
>>> part.back
['b', 'c']

The loop pays nothing for it: it runs over the iterator of a list. To end the slice is to take from
the same iterator what is left in it, by one call into the interpreter's C code. No other thread
runs in the middle of such a call, so each record is either the loop's or in `back`, and those in
`back` are the last ones, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Slice:
    """Records that were handed to a loop."""

    __slots__ = ("back", "cursor")

    def __init__(self, values: list[Any]) -> None:
        self.cursor: Iterator[Any] = iter(values)
        """What the loop runs over."""
        self.back: list[Any] = []
        """What it did not come to. Nothing is added once the loop or the slice has ended."""

    def end(self) -> None:
        """Let the loop end behind the record that it is at. Any thread may call this."""
        # Exactly this call, see above: not `self.back = list(self.cursor)`, which is two steps.
        self.back.extend(self.cursor)
