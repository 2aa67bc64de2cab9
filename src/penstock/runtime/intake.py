"""The batch that a subtask has in its hands, taken from by slices.

A slice is processed by a loop that may be suspended in the middle. The records that it has not
begun can be taken back, so that the loop ends with the record it is at; see `slice`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.common.plain import Plain
from penstock.runtime.input_channel import InputChannel
from penstock.runtime.slice import Slice


class Intake:
    """What has been read and not processed yet."""

    def __init__(self) -> None:
        self._batch: list[Any] = []
        self._position = 0
        self._slice: list[Any] = []
        self.under_way = Slice([])
        """The slice that was taken last."""
        self.taken = 0
        """How many records were taken and not taken back."""
        self.input = 0
        """Which input of the operator the batch belongs to."""
        self.channel: InputChannel | None = None
        """In which it came, unless it was read from a source or restored."""
        self.split: Plain = None
        """Which it was read from."""

    def __bool__(self) -> bool:
        return self._position < len(self._batch)

    def put(
        self, batch: list[Any], channel: InputChannel | None = None, split: Plain = None
    ) -> None:
        """The next batch, which is the intake's from now on. Only when all was taken."""
        self._batch, self._position = batch, 0
        self.channel, self.split = channel, split
        self.input = 0 if channel is None else channel.input

    def take(self, most: int) -> tuple[Iterator[Any], int]:
        """The next slice, and how many records it has."""
        batch, start = self._batch, self._position
        values = batch if start == 0 and len(batch) <= most else batch[start : start + most]
        self._position = start + len(values)
        if self._position >= len(batch):
            self._batch, self._position = [], 0
        self._slice, self.under_way = values, Slice(values)
        self.taken += len(values)
        return self.under_way.cursor, len(values)

    def rest(self) -> list[Any]:
        """The records that nobody has begun with; a loop under way ends with the one it is at."""
        self.under_way.end()
        return self.under_way.back + self._batch[self._position :]

    def take_back(self) -> int:
        """Take back what of the slice was not begun; how many records."""
        self.under_way.end()
        back = self.under_way.back
        if back:
            del self._slice[-len(back) :]
            self._batch, self._position = back + self._batch[self._position :], 0
            self.taken -= len(back)
            self.under_way = Slice([])
        return len(back)
