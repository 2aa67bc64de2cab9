"""Keys of a declared type: what a key selector gives is converted, as records are.

A compiled chain spares itself the call for a key whose class says that it fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.typeinfo import BasicTypeInfo, Converter, TypeInformation

_CLASSES = {"STRING": "str", "DOUBLE": "float", "BOOLEAN": "bool", "BIG_INT": "int"}
"""The classes whose values are of the type just as they are."""
_BITS = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}


class TypedKeySelector:
    """A key selector whose keys are of a declared type."""

    def __init__(
        self, select: Callable[[Any], Any], key_type: TypeInformation, convert: Converter
    ) -> None:
        self.select = select
        self.convert = convert
        self._key_type = key_type

    @staticmethod
    def of(select: Callable[[Any], Any], key_type: TypeInformation) -> Callable[[Any], Any]:
        """The selector, or `select` itself if keys of the type can be anything."""
        convert = key_type.converter()
        return select if convert is None else TypedKeySelector(select, key_type, convert)

    def doubt(self, key: str) -> str:
        """An expression: whether the variable `key` holds what may have to be converted.

        >>> from penstock.common.typeinfo import Types
        >>> TypedKeySelector(len, Types.INT(), int).doubt("k")
        'k.__class__ is not int or not -2147483648 <= k <= 2147483647'
        """
        name = self._key_type.name if isinstance(self._key_type, BasicTypeInfo) else ""
        if name in _BITS:
            most = (1 << (_BITS[name] - 1)) - 1
            return f"{key}.__class__ is not int or not {-most - 1} <= {key} <= {most}"
        return f"{key}.__class__ is not {_CLASSES[name]}" if name in _CLASSES else "True"

    def __call__(self, record: Any) -> Any:
        return self.convert(self.select(record))

    def __reduce__(self) -> tuple[Any, ...]:
        return TypedKeySelector.of, (self.select, self._key_type)
