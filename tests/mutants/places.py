"""Small mistakes that a module could contain, found in its syntax tree.

A mutant replaces one piece of the source and leaves every other character alone, so its diff shows
the mistake and nothing else. The same source always gives the same mutants in the same order, and a
mutant is known by its place in that order.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OTHER_CONSTANT = {"0": "1", "1": "0", "True": "False", "False": "True", "None": "True"}
_OTHER_CALL = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One changed piece of a source: what was done to the bytes from `start` to `end`."""

    line: int
    what: str
    start: int
    end: int
    text: str

    def applied(self, source: str) -> str:
        """The source with the mistake in it."""
        raw = source.encode()
        return (raw[: self.start] + self.text.encode() + raw[self.end :]).decode()

    def diff(self, source: str) -> str:
        """The changed lines, before and after."""
        lines = difflib.unified_diff(
            source.splitlines(), self.applied(source).splitlines(), lineterm="", n=0
        )
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def mutants_of(source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its source."""
    lengths = [len(line.encode()) for line in source.splitlines(keepends=True)]
    starts = [sum(lengths[:line]) for line in range(len(lengths))]
    made = {}
    for node, what, text in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        made[start, end, text] = Mutant(node.lineno, what, start, end, text)
    return [made[key] for key in sorted(made)]


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Every node that can be changed, with the name of the change and the new text."""
    for node in _code(tree):
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield test, "negate the condition", f"not ({ast.unparse(test)})"
            case ast.BoolOp(op=op, values=values):
                other = ast.Or() if isinstance(op, ast.And) else ast.And()
                yield node, "swap and, or", f"({ast.unparse(ast.BoolOp(other, values))})"
            case ast.Compare(left=left, ops=ops, comparators=right):
                for n, op in enumerate(ops):
                    flipped = [*ops[:n], _FLIPPED[type(op)](), *ops[n + 1 :]]
                    text = ast.unparse(ast.Compare(left, flipped, right))
                    yield node, "flip the comparison", f"({text})"
            case ast.Constant(value=value) if repr(value) in _OTHER_CONSTANT:
                yield node, "change the constant", _OTHER_CONSTANT[repr(value)]
            case ast.Call(func=ast.Name(id=name) as func) if name in _OTHER_CALL:
                yield func, f"{name} for {_OTHER_CALL[name]}", _OTHER_CALL[name]
            case ast.Expr(value=ast.Call()):
                yield node, "drop the call", "pass"
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign():
                yield node, "drop the assignment", "pass"
            case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
                yield node, "return None", "return None"


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do the work: no annotations, no decorators, nothing for type checkers."""
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _for_types_only(child):
                yield from _code(child)


def _for_types_only(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Name(id="cast" | "TypeVar")):
            return True
    return False
