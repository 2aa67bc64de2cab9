"""Copies of records, as cheap as their shape allows.

A record that leaves an operator must not change afterwards, whatever its author still does with
it: otherwise the result would depend on where buffers are cut and which subtask is local. Records
of an immutable type are safe as they are; flat dicts, lists and tuples are copied directly; the
rest goes through pickle, as it would on its way to another slot.

>>> record = {"merchant": "a", "amounts": [1, 2]}
>>> copy = isolate(record); record["amounts"].append(3); copy
{'merchant': 'a', 'amounts': [1, 2]}
"""

from __future__ import annotations

import datetime
import decimal
import pickle
import uuid
from collections.abc import Callable
from typing import Any

from penstock.common.unpicklable import why
from penstock.errors import RecordError

_ATOMIC = frozenset(
    {str, int, float, bool, bytes, type(None), complex}
    | {datetime.datetime, datetime.date, datetime.time, datetime.timedelta}
    | {decimal.Decimal, uuid.UUID}
)
all_atomic = _ATOMIC.issuperset


def isolator(deep: Callable[[], None]) -> Callable[[Any], Any]:
    """A function that gives values nobody else can change; it calls `deep` for one not flat."""

    def isolate(value: Any) -> Any:
        kind = value.__class__
        if kind in _ATOMIC:
            return value
        if kind is dict:
            # Keys are hashable, and what is hashable is taken for immutable here as by dicts.
            if all_atomic(map(type, value.values())):
                return value.copy()
        elif kind is tuple:
            if all_atomic(map(type, value)):
                return value
        elif kind is list and all_atomic(map(type, value)):
            return value.copy()
        deep()
        return _through_pickle(value)

    return isolate


isolate = isolator(lambda: None)


def _through_pickle(value: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(value, protocol=5))
    except Exception as error:
        raise RecordError(
            f"a record of type {type(value).__name__} cannot be pickled: {why(error)}",
            lasting=True,
        ) from error
