"""Lists, maps and arrays.

>>> from penstock.common.typeinfo import Types
>>> Types.LIST(Types.INT()).to_internal_type((1, None, True))
[1, None, 1]
>>> Types.MAP(Types.STRING(), Types.INT()).to_internal_type({"a": "x"})
Traceback (most recent call last):
    ...
penstock.errors.TypeMismatchError: ['a']: expected INT, got str: 'x'
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from penstock.common.type_variables import K, T, V
from penstock.common.typeinfo.base import Converter, TypeInformation, blame, mismatch, shorten
from penstock.common.typeinfo.basic import BasicTypeInfo
from penstock.errors import ProgramError, TypeMismatchError

_PRIMITIVE = frozenset({"BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "CHAR"})
_BASIC = _PRIMITIVE | {"STRING"}


@dataclass(frozen=True, repr=False)
class _SequenceTypeInfo(TypeInformation[list[T]], Generic[T]):
    """Elements of one type, in order; any iterable but a str, bytes or a mapping is taken."""

    element_type: TypeInformation[T]

    @property
    @abstractmethod
    def name(self) -> str:
        """What the type is called in Types."""

    def converter(self) -> Converter | None:
        return _sequence(str(self), self.element_type.converter(), nullable=True)

    def is_immutable(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.name}({self.element_type})"


class ListTypeInfo(_SequenceTypeInfo[T]):
    """A list. Elements may be None."""

    name = "LIST"


class ObjectArrayTypeInfo(_SequenceTypeInfo[T]):
    """An array of elements of any type, as a list. Elements may be None."""

    name = "OBJECT_ARRAY"


@dataclass(frozen=True, repr=False)
class BasicArrayTypeInfo(_SequenceTypeInfo[T]):
    """An array of strings, numbers or booleans, as a list. Elements may be None."""

    name = "BASIC_ARRAY"

    def __post_init__(self) -> None:
        _require(self, _BASIC, "OBJECT_ARRAY takes any type")


@dataclass(frozen=True, repr=False)
class PrimitiveArrayTypeInfo(_SequenceTypeInfo[T]):
    """An array of numbers or booleans, as a list, or of bytes, as `bytes`. None is no element."""

    name = "PRIMITIVE_ARRAY"

    def __post_init__(self) -> None:
        _require(self, _PRIMITIVE, "BASIC_ARRAY takes strings too, OBJECT_ARRAY any type")

    def converter(self) -> Converter | None:
        if self.is_immutable():
            return _bytes
        return _sequence(str(self), self.element_type.converter(), nullable=False)

    def is_immutable(self) -> bool:
        return self.element_type == BasicTypeInfo("BYTE")


@dataclass(frozen=True, repr=False)
class MapTypeInfo(TypeInformation[dict[K, V]], Generic[K, V]):
    """A dict. Values may be None, keys may not."""

    key_type: TypeInformation[K]
    value_type: TypeInformation[V]

    def converter(self) -> Converter | None:
        return _map(str(self), self.key_type.converter(), self.value_type.converter())

    def is_immutable(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"MAP({self.key_type}, {self.value_type})"


def _require(array: _SequenceTypeInfo, allowed: frozenset[str], hint: str) -> None:
    if str(array.element_type) not in allowed:
        raise ProgramError(f"{array} cannot be: its elements are one of {sorted(allowed)}; {hint}")


def _sequence(name: str, convert: Converter | None, *, nullable: bool) -> Converter:
    def convert_all(value: Any) -> list[Any]:
        if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
            raise mismatch(name, value)
        # Read once: an iterator that failed half way could not be read again to find the place.
        items = list(value)
        if convert is None:
            return items
        try:
            if nullable:
                return [None if item is None else convert(item) for item in items]
            return [convert(item) for item in items]
        except TypeMismatchError:
            steps = [f"[{index}]" for index in range(len(items))]
            raise blame([convert] * len(items), items, steps, nullable=nullable) from None

    return convert_all


def _map(name: str, convert_key: Converter | None, convert_value: Converter | None) -> Converter:
    def convert_all(value: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise mismatch(name, value)
        converted = {}
        for key, item in value.items():
            try:
                new_key = key if convert_key is None else convert_key(key)
            except TypeMismatchError as error:
                raise error.inside("[key]") from None
            try:
                converted[new_key] = (
                    item if item is None or convert_value is None else convert_value(item)
                )
            except TypeMismatchError as error:
                raise error.inside(f"[{shorten(key)}]") from None
        return converted

    return convert_all


def _bytes(value: Any) -> bytes:
    if value.__class__ is bytes:
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise mismatch("PRIMITIVE_ARRAY(BYTE) (bytes)", value)
