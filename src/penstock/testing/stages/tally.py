"""A tally: the same numbers in state of any kind."""

from __future__ import annotations

from collections import Counter
from typing import Any

from penstock.common.typeinfo import Types
from penstock.datastream import AggregateFunction, RuntimeContext
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.testing.stages.base import ANY, add


class Counts(AggregateFunction):
    """How many, and the largest."""

    def create_accumulator(self) -> list[int]:
        return [0, -1]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        # In place, as users do.
        accumulator[0] += 1
        accumulator[1] = max(accumulator[1], value)
        return accumulator

    def get_result(self, accumulator: list[int]) -> tuple[int, int]:
        return accumulator[0], accumulator[1]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0], max(acc_a[1], acc_b[1])]


class Tally:
    """Numbers gathered per key, in state of a given kind, so that every kind can be asked."""

    KINDS = ("value", "boxed", "list", "map", "reducing", "aggregating")

    def __init__(self, kind: str, context: RuntimeContext) -> None:
        self._kind = kind
        if kind in ("value", "boxed"):
            self._value = context.get_state(ValueStateDescriptor("tally", ANY))
        elif kind == "list":
            self._list = context.get_list_state(ListStateDescriptor("tally", Types.LONG()))
        elif kind == "map":
            descriptor = MapStateDescriptor("tally", Types.LONG(), Types.LONG())
            self._map = context.get_map_state(descriptor)
        elif kind == "reducing":
            reducing = ReducingStateDescriptor("tally", add, Types.LONG())
            self._reducing = context.get_reducing_state(reducing)
        else:
            aggregating = AggregatingStateDescriptor("tally", Counts(), ANY)
            self._aggregating = context.get_aggregating_state(aggregating)

    def add(self, n: int) -> int:
        """Take one more in; how many there are."""
        if self._kind == "value":
            count = (self._value.value() or 0) + 1
            self._value.update(count)
            return int(count)
        if self._kind == "boxed":
            box = self._value.value()
            if box is None:
                box = [0]
                self._value.update(box)
            box[0] += 1  # in place, without an update
            return int(box[0])
        if self._kind == "list":
            self._list.add(n)
            return len(list(self._list.get() or ()))
        if self._kind == "map":
            self._map.put(n % 3, (self._map.get(n % 3) or 0) + 1)
            return int(sum(self._map.values()))
        if self._kind == "reducing":
            self._reducing.add(1)
            return int(self._reducing.get() or 0)
        self._aggregating.add(n)
        result = self._aggregating.get()
        assert result is not None
        return int(result[0])

    def result(self) -> Any:
        """What the numbers amount to; `expected` says what that is."""
        if self._kind == "value":
            return self._value.value()
        if self._kind == "boxed":
            boxed: Any = self._value.value()
            return boxed[0]
        if self._kind == "list":
            return tuple(sorted(self._list.get() or ()))
        if self._kind == "map":
            return tuple(sorted(self._map.items()))
        if self._kind == "reducing":
            return self._reducing.get()
        return self._aggregating.get()

    def clear(self) -> None:
        if self._kind in ("value", "boxed"):
            self._value.clear()
        elif self._kind == "list":
            self._list.clear()
        elif self._kind == "map":
            for key in list(self._map.keys()):
                self._map.remove(key)
        elif self._kind == "reducing":
            self._reducing.clear()
        else:
            self._aggregating.clear()

    @staticmethod
    def expected(kind: str, numbers: list[int]) -> Any:
        if kind == "list":
            return tuple(sorted(numbers))
        if kind == "map":
            return tuple(sorted(Counter(n % 3 for n in numbers).items()))
        if kind == "aggregating":
            return len(numbers), max(numbers)
        return len(numbers)
