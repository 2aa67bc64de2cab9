"""Long work on many values, some of them at a time.

A single call into C (a list made of an array, a dict updated) keeps all other threads waiting for
as long as it takes, and with millions of values that is long: no heartbeat is sent. Between two
slices the interpreter lets them run.

>>> [part for part in in_slices("abcde", 2)]
[['a', 'b'], ['c', 'd'], ['e']]
>>> listed(map(int, "123"))
[1, 2, 3]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

_SLICE = 1 << 14
"""So many values are worked on in a few milliseconds."""


def in_slices(values: Iterable[T], size: int = _SLICE) -> Iterator[list[T]]:
    """The values, up to `size` of them at a time."""
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part


def listed(values: Iterable[T]) -> list[T]:
    """`list(values)`, and other threads run meanwhile."""
    whole: list[T] = []
    for part in in_slices(values):
        whole.extend(part)
    return whole
