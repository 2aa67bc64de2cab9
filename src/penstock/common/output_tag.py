"""Output tags: the names of side outputs."""

from __future__ import annotations

from typing import Generic

from penstock.common.java_only import java_only
from penstock.common.type_variables import T
from penstock.common.typeinfo import TypeInformation
from penstock.errors import ProgramError


class OutputTag(Generic[T]):
    """Names a side output. A process function sends a record there by yielding `tag, record`."""

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: TypeInformation[T] | None = None) -> None:
        if not tag_id:
            raise ProgramError("an OutputTag needs a name that is not empty")
        self.tag_id = tag_id
        self.type_info = type_info

    get_java_output_tag = java_only("get_java_output_tag", "use the OutputTag itself")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
