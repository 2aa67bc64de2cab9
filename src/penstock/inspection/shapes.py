"""How stored values are shown: as what a reader expects of their kind, not as they are stored.

| kind | stored | shown |
|---|---|---|
| expiring ... | a pair of value and time, also in lists and maps | a row of value and updated |
| timers | one timestamp, or a set | a list of timestamps |
| windows | by layout | a list of rows: start, end, contents |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import (
    ListTypeInfo,
    MapTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from penstock.common.types import Row
from penstock.state.timers import KIND as TIMERS

EVENT_TIMERS, PROCESSING_TIMERS = "__event_timers", "__processing_timers"
REDUCED = "__reduced"

Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Shape:
    """The type that values are shown in, and the way there and back."""

    type_info: TypeInformation
    show: Change
    store: Change | None
    """None where values can be looked at only."""


def shape_of(kind: str, stored: TypeInformation, contents: TypeInformation | None = None) -> Shape:
    """How values of this kind and stored type are shown; `contents` is for undeclared ones."""
    if kind == TIMERS:
        return Shape(Types.LIST(Types.LONG()), _timestamps, _stored_timestamps)
    if kind in WINDOW_KINDS:
        held = contents or Types.PICKLED_BYTE_ARRAY()
        names, types = ["start", "end", "contents"], [Types.LONG(), Types.LONG(), held]
        listed = WINDOW_KINDS[kind]
        return Shape(
            Types.LIST(Types.ROW_NAMED(names, types)),
            lambda value: [_named(names, window) for window in listed(value)],
            None,
        )
    if kind.startswith("expiring "):
        return _expiring(kind.removeprefix("expiring "), stored)
    return Shape(contents or stored, _same, _same)


def _same(value: Any) -> Any:
    return value


def _named(names: list[str], values: tuple[Any, ...]) -> Row:
    row = Row(*values)
    row.set_field_names(names)
    return row


# --- entries that expire ----------------------------------------------------------------------

_TIMED = ["value", "updated"]


def _expiring(kind: str, stored: TypeInformation) -> Shape:
    if kind == "list":
        assert isinstance(stored, ListTypeInfo)
        return Shape(
            Types.LIST(_timed(stored.element_type)),
            lambda values: [_named(_TIMED, pair) for pair in values],
            lambda values: [tuple(row) for row in values],
        )
    if kind == "map":
        assert isinstance(stored, MapTypeInfo)
        return Shape(
            Types.MAP(stored.key_type, _timed(stored.value_type)),
            lambda entries: {key: _named(_TIMED, pair) for key, pair in entries.items()},
            lambda entries: {key: tuple(row) for key, row in entries.items()},
        )
    return Shape(_timed(stored), lambda pair: _named(_TIMED, pair), tuple)


def _timed(pair: TypeInformation) -> TypeInformation:
    assert isinstance(pair, TupleTypeInfo)
    return Types.ROW_NAMED(_TIMED, pair.get_field_types())


# --- timers and windows -----------------------------------------------------------------------


def _timestamps(stored: Any) -> list[int]:
    return sorted(stored) if isinstance(stored, set) else [stored]


def _stored_timestamps(shown: list[int]) -> Any:
    return shown[0] if len(shown) == 1 else set(shown)


def _by_start(stored: Any) -> Iterator[tuple[Any, ...]]:
    for start, contents in sorted(stored.items()):
        yield start, None, contents


def _sessions(stored: Any) -> Iterator[tuple[Any, ...]]:
    yield from stored if isinstance(stored, list) else [stored]


def _any_windows(stored: Any) -> Iterator[tuple[Any, ...]]:
    for window, contents in stored.items():
        start = getattr(window, "start", getattr(window, "id", None))
        yield start, getattr(window, "end", None), contents


WINDOW_KINDS: dict[str, Callable[[Any], Iterator[tuple[Any, ...]]]] = {
    "tumbling windows": _by_start,
    "slices": _by_start,
    "sessions": _sessions,
    "windows": _any_windows,
}
"""By layout: start, end and contents of the windows of one key."""
