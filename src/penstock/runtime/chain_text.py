"""The text of a compiled chain while it is written: lines, names, and whose line is whose."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from penstock.graph.stream_graph import StreamNode
from penstock.graph.typed_keys import TypedKeySelector


@dataclass(frozen=True)
class Place:
    """What a line of the compiled chain does."""

    node: StreamNode
    action: str
    record: str | None


class ChainText:
    """Lines so far, and the objects that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.places: dict[int, Place] = {}
        self.names: dict[str, Any] = {}
        self._variables = itertools.count()

    def line(
        self,
        depth: int,
        text: str,
        node: StreamNode | None = None,
        action: str = "",
        record: str | None = None,
    ) -> None:
        """Add a line; with `node` an error in it is that operator's, at that record."""
        if node is not None:
            self.places[len(self.lines)] = Place(node, action, record)
        self.lines.append("    " * depth + text)

    def variable(self, prefix: str) -> str:
        """A new local variable."""
        return f"{prefix}{next(self._variables)}"

    def name(self, prefix: str, node: StreamNode, value: Any) -> str:
        """The name of something that belongs to one operator."""
        return self.constant(f"{prefix}_{node.id}", value)

    def constant(self, name: str, value: Any) -> str:
        """The name of something the lines use."""
        self.names.setdefault(name, value)
        return name

    def key(
        self, target: str, name: str, selector: Any, value: str, depth: int, node: StreamNode
    ) -> None:
        """Lines that give `target` the key of `value`; `name` is that of the selector.

        A key of a declared type is converted, without a call if its class says that it needs none.
        """
        if not isinstance(selector, TypedKeySelector):
            call = self.constant(name, selector)
            self.line(depth, f"{target} = {call}({value})", node, "key_by", value)
            return
        call, key = self.constant(name, selector.select), self.variable("k")
        convert = self.constant(f"convert_{name}", selector.convert)
        conversion = f"if {selector.doubt(key)}: {key} = {convert}({key})"
        self.line(depth, f"{key} = {call}({value})", node, "key_by", value)
        self.line(depth, conversion, node, "key_by", value)
        self.line(depth, f"{target} = {key}")
