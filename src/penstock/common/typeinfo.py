"""Declared types of records and state, by PyFlink's names.

A declared type tells Penstock what it may take for granted. What counts in the runtime is whether
values of the type are *immutable*: those travel by reference inside a slot, others are copied, so
that a result never depends on which subtask happens to be local.

>>> Types.TUPLE([Types.STRING(), Types.LONG()]).is_immutable()
True
>>> Types.LIST(Types.LONG()).is_immutable()
False
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TypeInformation:
    """The type of a record, a key or a state's value."""

    name: str
    parameters: tuple[TypeInformation, ...] = ()

    def is_immutable(self) -> bool:
        """Whether no value of this type can change after it was made."""
        if self.name == "TUPLE":
            return all(parameter.is_immutable() for parameter in self.parameters)
        return self.name in _IMMUTABLE_BASICS

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


_IMMUTABLE_BASICS = frozenset({"STRING", "BOOLEAN", "INT", "LONG", "FLOAT", "DOUBLE"})


class Types:
    """Makes type informations."""

    @staticmethod
    def STRING() -> TypeInformation:
        return TypeInformation("STRING")

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        return TypeInformation("BOOLEAN")

    @staticmethod
    def INT() -> TypeInformation:
        return TypeInformation("INT")

    @staticmethod
    def LONG() -> TypeInformation:
        return TypeInformation("LONG")

    @staticmethod
    def FLOAT() -> TypeInformation:
        return TypeInformation("FLOAT")

    @staticmethod
    def DOUBLE() -> TypeInformation:
        return TypeInformation("DOUBLE")

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Any Python object."""
        return TypeInformation("PICKLED_BYTE_ARRAY")

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TypeInformation:
        return TypeInformation("TUPLE", tuple(field_types))

    @staticmethod
    def LIST(element_type: TypeInformation) -> TypeInformation:
        return TypeInformation("LIST", (element_type,))

    @staticmethod
    def MAP(key_type: TypeInformation, value_type: TypeInformation) -> TypeInformation:
        return TypeInformation("MAP", (key_type, value_type))
