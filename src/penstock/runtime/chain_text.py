"""The text of a compiled chain while it is written: lines, names, and whose line is whose."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from penstock.graph.stream_graph import StreamNode


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
