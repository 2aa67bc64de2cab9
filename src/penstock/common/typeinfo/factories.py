"""Types: makes type informations.

>>> Types.TUPLE([Types.STRING(), Types.LONG()]).is_immutable()
True
>>> Types.LIST(Types.LONG()).is_immutable()
False
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.common.time import Instant
from penstock.common.type_variables import K, T, V
from penstock.common.typeinfo.base import TypeInformation
from penstock.common.typeinfo.basic import BasicTypeInfo, PickledBytesTypeInfo
from penstock.common.typeinfo.containers import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from penstock.common.typeinfo.records import RowTypeInfo, TupleTypeInfo
from penstock.common.typeinfo.temporal import InstantTypeInfo, SqlTimeTypeInfo


class Types:
    """Makes type informations."""

    @staticmethod
    def STRING() -> TypeInformation[str]:
        """A str."""
        return BasicTypeInfo("STRING")

    @staticmethod
    def BYTE() -> TypeInformation[int]:
        """An int of 8 bits."""
        return BasicTypeInfo("BYTE")

    @staticmethod
    def BOOLEAN() -> TypeInformation[bool]:
        """A bool; whole numbers are taken too."""
        return BasicTypeInfo("BOOLEAN")

    @staticmethod
    def SHORT() -> TypeInformation[int]:
        """An int of 16 bits."""
        return BasicTypeInfo("SHORT")

    @staticmethod
    def INT() -> TypeInformation[int]:
        """An int of 32 bits."""
        return BasicTypeInfo("INT")

    @staticmethod
    def LONG() -> TypeInformation[int]:
        """An int of 64 bits."""
        return BasicTypeInfo("LONG")

    @staticmethod
    def FLOAT() -> TypeInformation[float]:
        """A float, rounded to 32 bits."""
        return BasicTypeInfo("FLOAT")

    @staticmethod
    def DOUBLE() -> TypeInformation[float]:
        """A float."""
        return BasicTypeInfo("DOUBLE")

    @staticmethod
    def CHAR() -> TypeInformation[str]:
        """A str of length 1."""
        return BasicTypeInfo("CHAR")

    @staticmethod
    def BIG_INT() -> TypeInformation[int]:
        """An int without bounds."""
        return BasicTypeInfo("BIG_INT")

    @staticmethod
    def BIG_DEC() -> TypeInformation[decimal.Decimal]:
        """A decimal.Decimal."""
        return BasicTypeInfo("BIG_DEC")

    @staticmethod
    def INSTANT() -> TypeInformation[Instant]:
        """A `penstock.common.Instant`."""
        return InstantTypeInfo()

    @staticmethod
    def SQL_DATE() -> TypeInformation[datetime.date]:
        """A datetime.date."""
        return SqlTimeTypeInfo("DATE")

    @staticmethod
    def SQL_TIME() -> TypeInformation[datetime.time]:
        """A datetime.time, to the millisecond, without a zone."""
        return SqlTimeTypeInfo("TIME")

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation[datetime.datetime]:
        """A datetime.datetime, to the millisecond, without a zone."""
        return SqlTimeTypeInfo("TIMESTAMP")

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation[Any]:
        """Any Python object."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """A Row whose fields are called f0, f1, ..."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(
        field_names: Sequence[str],
        field_types: Sequence[TypeInformation],
        defaults: Mapping[str, Any] | None = None,
    ) -> RowTypeInfo:
        """A Row with these fields.

        `defaults`, by the names of fields, are for state: what a row that was saved before a
        field was added has in it. Without one that is None.
        """
        return RowTypeInfo(field_types, field_names, defaults)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """A tuple."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation[Any]:
        """A list of numbers or booleans, none of them None; of BYTE: bytes."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A list of strings, numbers or booleans."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A list of elements of any type."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(
        key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]
    ) -> TypeInformation[dict[K, V]]:
        """A dict."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A list."""
        return ListTypeInfo(element_type_info)
