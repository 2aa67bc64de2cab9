"""States that refuse what is not of the type that was declared: see `fitting`.

Each is a subclass of a state of `kinds` or of `ttl`, made when a state is declared, with the check
as an attribute of the class. States of an undeclared type stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.state.descriptors import MapStateDescriptor, StateDescriptor
from penstock.state.fitting import NAMES, checker, judge, quick_test
from penstock.state.kinds import HashMapValueState


def checked(base: type, descriptor: StateDescriptor) -> type:
    """`base`, a class of states, for values of the descriptor's type only."""
    name, kind = descriptor.name, descriptor.type_info
    check = checker(kind, name)
    members: dict[str, Any] = {"_check": None if check is None else staticmethod(check)}
    mixin = _MIXINS[descriptor.kind]
    if isinstance(descriptor, MapStateDescriptor):
        of_key = checker(descriptor.key_type_info, name, "key: ")
        if check is None and of_key is None:
            return base
        members = {
            "_check": staticmethod(check or _any),
            "_check_key": staticmethod(of_key or _any),
        }
    elif check is None:
        return base
    if descriptor.kind in ("reducing", "aggregating") and descriptor.ttl is not None:
        mixin = _CheckedTimed
    if base is HashMapValueState:
        return type(base.__name__, (base,), {"__slots__": (), "update": _update(descriptor)})
    return type(base.__name__, (mixin, base), {"__slots__": (), **members})


def _any(value: Any) -> Any:
    return value


_UPDATE = """
def update(self, value):
    if not ({test}):
        if value is None:
            self.clear()
            return
        judge(value)
    key = self._key_context.key
    self._entries[key] = value
    self._changed.add(key)
"""


def _update(descriptor: StateDescriptor) -> Callable[[Any, Any], None]:
    """`HashMapValueState.update` with the test in it: this is the hottest call that writes."""
    kind = descriptor.type_info
    names: dict[str, Any] = {**NAMES, "judge": judge(kind, descriptor.name)}
    exec(_UPDATE.format(test=quick_test(kind, "value")), names)
    update: Callable[[Any, Any], None] = names["update"]
    return update


class _CheckedValue:
    """For state that expires."""

    __slots__ = ()
    _check: Callable[[Any], Any]

    def update(self, value: Any) -> None:
        super().update(value if value is None else self._check(value))  # type: ignore[misc]


class _CheckedList:
    __slots__ = ()
    _check: Callable[[Any], Any]

    def add(self, value: Any) -> None:
        super().add(self._check(value))  # type: ignore[misc]

    def add_all(self, values: list[Any]) -> None:
        super().add_all([self._check(value) for value in values])  # type: ignore[misc]

    def update(self, values: list[Any]) -> None:
        super().update([self._check(value) for value in values])  # type: ignore[misc]


class _CheckedMap:
    __slots__ = ()
    _check: Callable[[Any], Any]
    _check_key: Callable[[Any], Any]

    def put(self, key: Any, value: Any) -> None:
        super().put(self._check_key(key), self._check(value))  # type: ignore[misc]

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        for key, value in dict_value.items():
            self._check_key(key)
            self._check(value)
        super().put_all(dict_value)  # type: ignore[misc]


class _CheckedStored:
    """For state that a function makes: what it gives is checked, whatever it was given."""

    __slots__ = ()
    _check: Callable[[Any], Any]

    def _put(self, stored: Any) -> None:
        super()._put(self._check(stored))  # type: ignore[misc]


class _CheckedTimed:
    """The same for state that expires: it is stored with its time."""

    __slots__ = ()
    _check: Callable[[Any], Any]

    def _put(self, stored: tuple[Any, int]) -> None:
        self._check(stored[0])
        super()._put(stored)  # type: ignore[misc]


_MIXINS: dict[str, type] = {
    "value": _CheckedValue,
    "list": _CheckedList,
    "map": _CheckedMap,
    "reducing": _CheckedStored,
    "aggregating": _CheckedStored,
}
