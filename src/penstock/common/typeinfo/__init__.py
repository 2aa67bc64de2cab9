"""Declared types of records, keys and state, by PyFlink's names.

A declared type tells Penstock two things: what a value must be turned into (`converter`), and
whether values of the type are *immutable* (`is_immutable`): those travel by reference inside a
slot, others are copied, so that a result never depends on which subtask happens to be local.
"""

from penstock.common.typeinfo.base import Converter, TypeInformation
from penstock.common.typeinfo.basic import BasicTypeInfo, PickledBytesTypeInfo
from penstock.common.typeinfo.containers import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from penstock.common.typeinfo.factories import Types
from penstock.common.typeinfo.records import RowTypeInfo, TupleTypeInfo
from penstock.common.typeinfo.temporal import InstantTypeInfo, SqlTimeTypeInfo

__all__ = [
    "BasicArrayTypeInfo",
    "BasicTypeInfo",
    "Converter",
    "InstantTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
]
