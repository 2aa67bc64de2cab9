"""The lines of a compiled chain that give records their timestamps and drive watermarks.

For an assigner with bounded disorder they read::

    def process(values):
        clock = event_clock.current
        latest = clock.latest
        for v0 in values:
            t1 = assign_2(v0, None)
            if t1.__class__ is not int or t1 < 0: t1 = check_time(t1)
            if t1 > latest: latest = t1
            ...
        clock.latest = latest
        clock.touched = True
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.bad_records import BadRecord
from penstock.graph.operators import SourceOperator
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.chain_text import ChainText
from penstock.runtime.event_time import EventClock, checked_timestamp


def write_before(text: ChainText, clock: EventClock) -> None:
    """Before the loop: take the clock of the split at hand."""
    text.constant("event_clock", clock)
    text.line(1, "clock = event_clock.current")
    text.line(1, "latest = clock.latest")


def write_after(text: ChainText) -> None:
    """After the loop: note how far the split has come."""
    text.line(1, "clock.latest = latest")
    text.line(1, "clock.touched = True")


def write_stamp(
    text: ChainText,
    node: StreamNode,
    strategy: WatermarkStrategy,
    value: str,
    time: str,
    depth: int,
    passed_on: Callable[[str, int, str | None], None],
) -> None:
    """Give `value` its time. `passed_on(time, depth, tag)` writes what follows."""
    if isinstance(node.operator, SourceOperator) and node.operator.source.keeps_bad_records:
        # Nothing can be read off a bad record, not even when it happened.
        bad = text.constant("bad_record", BadRecord)
        text.line(depth, f"if {value}.__class__ is {bad}:")
        passed_on(time, depth + 1, None)
        text.line(depth, "else:")
        depth += 1
    stamp = time
    if strategy.assigner is not None:
        stamp = text.variable("t")
        assign = text.name("assign", node, strategy.assigner)
        check = text.constant("check_time", checked_timestamp)
        call = f"{stamp} = {assign}({value}, {time})"
        text.line(depth, call, node, "extract_timestamp", value)
        # Times before 1970 are rare: looking at the sign keeps what is too small away at no cost.
        wrong = f"if {stamp}.__class__ is not int or {stamp} < 0: {stamp} = {check}({stamp})"
        text.line(depth, wrong, node, "extract_timestamp", value)
    if strategy.jump is not None:
        ahead = text.constant("is_ahead", text.names["event_clock"].is_ahead)
        bound = strategy.jump.bound_ms
        text.line(depth, f"if {stamp} > latest + {bound} and {ahead}({stamp}):")
        passed_on(stamp, depth + 1, strategy.jump.tag or "")
        text.line(depth, "else:")
        depth += 1
    text.line(depth, f"if {stamp} > latest: latest = {stamp}")
    passed_on(stamp, depth, None)
    if strategy.generator is not None:
        on_event = f"clock.generator.on_event({value}, {stamp}, clock)"
        text.line(depth, on_event, node, "on_event", value)
        text.line(depth, "if event_clock.due: yield from event_clock.pass_on()")
