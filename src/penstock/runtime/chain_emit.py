"""The lines of a compiled chain that put a record into an exchange's buffers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.keys import Router
from penstock.errors import ResultShapeError
from penstock.graph.job_graph import JobEdge
from penstock.graph.partitioning import (
    BroadcastPartitioning,
    CustomPartitioning,
    HashPartitioning,
    RebalancePartitioning,
    RescalePartitioning,
    ShufflePartitioning,
)
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.chain_text import ChainText
from penstock.runtime.isolation import all_atomic
from penstock.runtime.output import Output


@dataclass(frozen=True)
class Exchange:
    """An output of the chain, and what its code needs to know of it."""

    edge: JobEdge
    output: Output
    target_max_parallelism: int


def write_emit(
    text: ChainText, node: StreamNode, exchange: Exchange, value: str, time: str, depth: int
) -> None:
    """Append `value`, with its `time` where the edge carries it, to the buffer it belongs to."""
    output, number = exchange.output, exchange.edge.id
    channel, depth = _write_channel(text, node, exchange, value, depth)
    record = value
    if not output.by_reference:
        copy = text.constant(f"copy{number}", output.isolate)
        text.constant("all_atomic", all_atomic)
        # The commonest case, a flat dict, without a call; see `isolator`.
        flat = f"{value}.__class__ is dict and all_atomic(map(type, {value}.values()))"
        record = f"{value}.copy() if {flat} else {copy}({value})"
    if exchange.edge.timed:
        record = f"({record}, {time})"
    out = text.constant(f"out{number}", output)
    buffers = text.constant(f"buffers{number}", output.buffers)
    buffer = f"b{number}"
    text.line(depth, f"{buffer} = {buffers}[{channel}]")
    text.line(depth, f"{buffer}.append({record})", node, "emit", value)
    full = f"if len({buffer}) >= {out}.limit and {out}.full({channel}):"
    text.line(depth, full, node, "emit", value)
    text.line(depth + 1, "while room.blocked: yield")


def _write_channel(
    text: ChainText, node: StreamNode, exchange: Exchange, value: str, depth: int
) -> tuple[str, int]:
    """Choose the channel: its variable, and how deep the lines that use it are."""
    partitioning, number = exchange.edge.partitioning, exchange.edge.id
    count = len(exchange.output.channels)
    channel = f"c{number}"
    if isinstance(partitioning, HashPartitioning):
        text.constant(f"route{number}", Router(exchange.target_max_parallelism, count))
        selector = partitioning.key_selector
        text.key(f"k{number}", f"key{number}", selector, value, depth, node)
        text.line(depth, f"{channel} = route{number}[k{number}]", node, "route", value)
    elif isinstance(partitioning, CustomPartitioning):
        text.constant(f"choose{number}", _checked_partition(partitioning, count))
        text.line(depth, f"{channel} = choose{number}({value})", node, "partition", value)
    elif isinstance(partitioning, BroadcastPartitioning):
        text.line(depth, f"for {channel} in range({count}):")
        depth += 1
    elif isinstance(partitioning, ShufflePartitioning) and count > 1:
        # Seeded, so that a run of the simulator can be repeated.
        text.constant(f"random{number}", random.Random(number).random)
        text.line(depth, f"{channel} = int(random{number}() * {count})")
    elif isinstance(partitioning, RebalancePartitioning | RescalePartitioning) and count > 1:
        turns = itertools.cycle(range(count))
        text.constant(f"turn{number}", turns.__next__)
        text.line(depth, f"{channel} = turn{number}()")
    else:
        channel = "0"
    return channel, depth


def _checked_partition(partitioning: CustomPartitioning, count: int) -> Callable[[Any], int]:
    partition, key_selector = partitioning.partition, partitioning.key_selector

    def choose(value: Any) -> int:
        chosen = partition(key_selector(value), count)
        if chosen.__class__ is not int or not 0 <= chosen < count:
            raise ResultShapeError(
                f"the partitioner returned {chosen!r}, which is not a number from 0 to {count - 1}"
            )
        return chosen

    return choose
