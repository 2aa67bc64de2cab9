"""The text of a chain where the key is: setting it, a running reduction, a tumbling window.

A reduction and a window of the simple kind go straight to the table of their state: no call stands
between the record and the user's function.
"""

from __future__ import annotations

from typing import Any

from penstock.graph.operators import FunctionOperator, TwoInputOperator
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.chain_shapes import LAZY, refuse_generator
from penstock.runtime.chain_text import ChainText
from penstock.runtime.checkpointed import CheckpointedFunction
from penstock.runtime.functions import Function
from penstock.runtime.windowing.emission import refuse_untimed
from penstock.runtime.windowing.tumbling import Parts
from penstock.state.kinds import NO_KEY, KeyContext
from penstock.state.table import StateTable


def write_key(
    text: ChainText, node: StreamNode, keys: KeyContext, value: str, depth: int, second: bool
) -> None:
    """Say whose state the function sees from here on."""
    operator = node.operator
    key = f"{text.name('keys', node, keys)}.key"
    assert isinstance(operator, FunctionOperator)
    if not second:
        name, selector = f"key_of_{node.id}", operator.key_selector
    elif isinstance(operator, TwoInputOperator) and operator.second_key_selector is not None:
        name, selector = f"key_of2_{node.id}", operator.second_key_selector
    else:
        # A record of a broadcast side has no key.
        text.line(depth, f"{key} = {text.constant('no_key', NO_KEY)}")
        return
    text.key(key, name, selector, value, depth, node)


def write_reduce(
    text: ChainText,
    node: StreamNode,
    table: StateTable,
    keys: KeyContext,
    function: str,
    value: str,
    depth: int,
) -> str:
    """Reduce a record into what its key has so far; the variable with the result."""
    assert isinstance(node.operator, FunctionOperator)
    entries = text.name("entries", node, table.entries)
    changed = text.name("changed", node, table.changes.current)
    key, reduced = text.variable("g"), text.variable("v")
    current = ""
    if _asks_for_state(node.operator.function):
        current = f"{text.name('keys', node, keys)}.key = "
    selector = node.operator.key_selector
    text.key(f"{current}{key}", f"key_of_{node.id}", selector, value, depth, node)
    text.line(depth, f"if {key} in {entries}:")
    call = f"{reduced} = {function}({entries}[{key}], {value})"
    text.line(depth + 1, call, node, "reduce", value)
    lazy, refuse = text.constant("lazy", LAZY), text.constant("refuse_generator", refuse_generator)
    check = f"if {reduced}.__class__ in {lazy}: {refuse}({reduced})"
    text.line(depth + 1, check, node, "check", value)
    text.line(depth, "else:")
    text.line(depth + 1, f"{reduced} = {value}")
    text.line(depth, f"{entries}[{key}] = {reduced}")
    text.line(depth, f"{changed}.add({key})")
    return reduced


def _asks_for_state(function: Any) -> bool:
    """Whether the function may have state of the key: it is told the context of its subtask."""
    if isinstance(function, CheckpointedFunction):
        return True
    return isinstance(function, Function) and type(function).open is not Function.open


def write_tumbling(
    text: ChainText,
    node: StreamNode,
    parts: Parts,
    keys: KeyContext,
    context: str,
    value: str,
    time: str,
    depth: int,
) -> str:
    """Add a record to a tumbling window, without a call if it is not the window's first.

    Ends one level deeper, where a window was begun: there the variable that is returned has what
    comes of it.
    """
    assert isinstance(node.operator, FunctionOperator)
    current = text.name("keys", node, keys)
    entries = text.name("entries", node, parts.entries)
    changed = text.name("changed", node, parts.changed)
    fold, first = text.name("fold", node, parts.fold), text.name("first", node, parts.first)
    refuse = text.constant("refuse_untimed", refuse_untimed)
    key, start, windows, result = (text.variable(prefix) for prefix in "gswr")
    target, selector = f"{current}.key = {key}", node.operator.key_selector
    text.key(target, f"key_of_{node.id}", selector, value, depth, node)
    text.line(depth, f"if {time} is None: {refuse}()", node, "check", value)
    text.line(depth, f"{start} = {time} - ({time} - {parts.offset}) % {parts.size}")
    text.line(depth, f"{windows} = {entries}.get({key})", node, "key_by", value)
    text.line(depth, f"if {windows} is not None and {start} in {windows}:")
    held = f"{windows}[{start}]"
    if parts.none_stays:
        held = text.variable("h")
        text.line(depth + 1, f"{held} = {windows}[{start}]")
        text.line(depth + 1, f"if {held} is not None:")
        depth += 1
    call = f"{windows}[{start}] = {fold}({held}, {value})"
    text.line(depth + 1, call, node, "reduce", value)
    text.line(depth + 1, f"{changed}.add({key})")
    depth -= parts.none_stays
    text.line(depth, "else:")
    call = f"{result} = {first}({key}, {start}, {value}, {time}, {context})"
    text.line(depth + 1, call, node, "process_element", value)
    return result
