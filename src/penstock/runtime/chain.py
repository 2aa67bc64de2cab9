"""Chains, compiled: one Python loop over a batch for all operators of a vertex.

The loop is written as source text and compiled, so nothing stands between two user functions that
Python itself would not need. For ``map -> filter -> key_by`` it reads::

    def process(values):
        for v0 in values:
            v1 = f1(v0)
            if f2(v1):
                k3 = key3(v1)
                c3 = route3[k3]
                b3 = buffers3[c3]
                b3.append(copy3(v1))
                if len(b3) >= out3.limit and out3.full(c3):
                    while room.blocked: yield

It is a generator: where an output has no room it yields and goes on later, in the middle of a
flat_map or of a thousand timers if need be. The text is in `linecache`, so tracebacks show it;
and every line is known to belong to an operator, so an error knows where it came from at no cost.
"""

from __future__ import annotations

import inspect
import itertools
import linecache
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.common.keys import Router
from penstock.common.output_tag import OutputTag
from penstock.errors import ProgramError, ResultShapeError
from penstock.graph.job_graph import JobEdge, JobVertex
from penstock.graph.operators import (
    CONTEXT_OPERATORS,
    CoFlatMapOperator,
    CoMapOperator,
    FilterOperator,
    FlatMapOperator,
    FunctionOperator,
    MapOperator,
    ReduceOperator,
    SinkOperator,
    SourceOperator,
    TwoInputOperator,
)
from penstock.graph.partitioning import (
    BroadcastPartitioning,
    CustomPartitioning,
    HashPartitioning,
    RebalancePartitioning,
    RescalePartitioning,
    ShufflePartitioning,
)
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.functions import TimeDomain
from penstock.runtime.isolation import all_atomic, isolate
from penstock.runtime.operators import (
    RuntimeFunction,
    RuntimeKeyedFunction,
    RuntimeOperator,
    RuntimeSink,
)
from penstock.runtime.output import Output, Room
from penstock.state.kinds import NO_KEY

_WRONG_SHAPES = frozenset({str, bytes, dict})
_numbers = itertools.count()


@dataclass(frozen=True)
class Exchange:
    """An output of the chain, and what its code needs to know of it."""

    edge: JobEdge
    output: Output
    target_max_parallelism: int


@dataclass(frozen=True)
class Place:
    """What a line of the compiled chain does."""

    node: StreamNode
    action: str
    record: str | None


@dataclass(frozen=True)
class CompiledChain:
    """The loops of one vertex."""

    source: str
    filename: str
    places: dict[int, Place]
    process: tuple[Callable[[list[Any]], Iterator[None]], ...]
    """One loop per input."""
    fire: dict[TimeDomain, Callable[[int], Iterator[None]]]


def _nothing(_: Any) -> Iterator[None]:
    return iter(())


EMPTY_CHAIN = CompiledChain(
    "", "<chain: empty>", {}, (_nothing, _nothing), dict.fromkeys(TimeDomain, _nothing)
)
"""For a subtask that has nothing left to run."""


def compile_chain(
    vertex: JobVertex,
    operators: dict[int, RuntimeOperator],
    exchanges: list[Exchange],
    room: Room,
    object_reuse: bool,
) -> CompiledChain:
    """Write and compile the loops of `vertex`."""
    return _Writer(vertex, operators, exchanges, room, object_reuse).compile()


class _Writer:
    """Writes the source text, line by line."""

    def __init__(
        self,
        vertex: JobVertex,
        operators: dict[int, RuntimeOperator],
        exchanges: list[Exchange],
        room: Room,
        object_reuse: bool,
    ) -> None:
        self._vertex = vertex
        self._operators = operators
        self._exchanges = exchanges
        self._object_reuse = object_reuse
        self._lines: list[str] = []
        self._places: dict[int, Place] = {}
        self._names: dict[str, Any] = {"room": room, "wrong_shapes": _WRONG_SHAPES}
        self._names["all_atomic"] = all_atomic
        self._variables = itertools.count()

    def compile(self) -> CompiledChain:
        loops = self._loops()
        domains = self._timers()
        body = self._lines
        functions = ", ".join([*loops, *(f"fire_{domain.value}" for domain in domains)])
        # Everything the loops use is an argument of `make`: closure variables are faster than
        # globals, and the text shows exactly what the loops depend on.
        head = f"def make({', '.join(self._names)}):"
        source = "\n".join([head, *(f"    {line}" for line in body), f"    return {functions},"])
        filename = f"<chain {next(_numbers)}: {self._vertex.name}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        scope: dict[str, Any] = {}
        exec(compile(source, filename, "exec"), scope)
        made = scope["make"](**self._names)
        places = {line + 2: place for line, place in self._places.items()}
        fire = dict(zip(domains, made[len(loops) :], strict=True))
        return CompiledChain(source, filename, places, made[: len(loops)], fire)

    # --- the loops ----------------------------------------------------------------------------

    def _loops(self) -> list[str]:
        """A loop for every input of the head; their names."""
        if not isinstance(self._vertex.head.operator, TwoInputOperator):
            return [self._loop("process", second=False)]
        return [self._loop("process", second=False), self._loop("process_2", second=True)]

    def _loop(self, name: str, second: bool) -> str:
        self._line(0, f"def {name}(values):")
        value = self._variable("v")
        self._line(1, f"for {value} in values:")
        head = self._vertex.head
        if isinstance(head.operator, SourceOperator):
            self._successors(head, value, 2)
        else:
            self._operator(head, value, 2, second)
        # A generator even where no output can lack room.
        self._line(1, "return")
        self._line(1, "yield")
        return name

    def _timers(self) -> list[TimeDomain]:
        keyed = [
            (node, operator)
            for node in self._vertex.nodes
            if isinstance(operator := self._operators[node.id], RuntimeKeyedFunction)
            and isinstance(node.operator, CONTEXT_OPERATORS)
        ]
        for domain in TimeDomain:
            self._line(0, f"def fire_{domain.value}(until):")
            for node, operator in keyed:
                self._fire(node, operator, domain)
            self._line(1, "return")
            self._line(1, "yield")
        return list(TimeDomain)

    def _fire(self, node: StreamNode, operator: RuntimeKeyedFunction, domain: TimeDomain) -> None:
        timers, context_value = operator.timers, operator.timer_context(domain)
        queue = timers.event if domain is TimeDomain.EVENT_TIME else timers.processing
        assert isinstance(node.operator, FunctionOperator)
        pop = self._name(f"pop_{domain.value}", node, queue.pop_due)
        context = self._name(f"context_{domain.value}", node, context_value)
        keys = self._name("keys", node, operator.key_context)
        on_timer = self._name("on_timer", node, node.operator.function.on_timer)
        self._line(1, "while True:")
        self._line(2, f"due = {pop}(until)")
        self._line(2, "if due is None: break")
        self._line(2, f"timestamp, {keys}.key = due")
        self._line(2, f"{context}.fired_at = timestamp")
        result = self._variable("r")
        self._line(2, f"{result} = {on_timer}(timestamp, {context})", node, "on_timer", "due")
        self._results(node, node.operator.function.on_timer, result, "due", 2, tagged=True)
        # Between two timers the slot may turn to something else.
        self._line(2, "yield")

    # --- operators ----------------------------------------------------------------------------

    def _operator(self, node: StreamNode, value: str, depth: int, second: bool = False) -> None:
        operator = node.operator
        if isinstance(operator, SinkOperator):
            runtime = self._operators[node.id]
            assert isinstance(runtime, RuntimeSink)
            write = self._name("write", node, runtime.writer.write)
            self._line(depth, f"{write}({value})", node, "write", value)
            return
        assert isinstance(operator, FunctionOperator)
        called: Callable[..., Any] = operator.call()
        if second:
            assert isinstance(operator, TwoInputOperator)
            called = operator.second_call()
        function = self._name("f2" if second else "f", node, called)
        if isinstance(operator, ReduceOperator):
            self._reduce(node, function, value, depth)
            return
        self._set_key(node, value, depth, second)
        if isinstance(operator, MapOperator | CoMapOperator):
            mapped = self._variable("v")
            self._line(depth, f"{mapped} = {function}({value})", node, "map", value)
            # A rich function may keep in its state what it returns.
            self._successors(node, mapped, depth, kept=operator.keyed)
        elif isinstance(operator, FilterOperator):
            self._line(depth, f"if {function}({value}):", node, "filter", value)
            self._successors(node, value, depth + 1)
        elif isinstance(operator, FlatMapOperator | CoFlatMapOperator):
            result = self._variable("r")
            self._line(depth, f"{result} = {function}({value})", node, "flat_map", value)
            self._results(node, called, result, value, depth)
        elif isinstance(operator, CONTEXT_OPERATORS):
            context = self._context(node, second)
            result = self._variable("r")
            call = f"{result} = {function}({value}, {context})"
            self._line(depth, call, node, "process_element", value)
            self._results(node, called, result, value, depth, tagged=True)
        else:
            raise ProgramError(f"operator {node.name!r}: no code for {operator.kind}")

    def _keyed(self, node: StreamNode) -> RuntimeKeyedFunction:
        runtime = self._operators[node.id]
        assert isinstance(runtime, RuntimeKeyedFunction)
        return runtime

    def _set_key(self, node: StreamNode, value: str, depth: int, second: bool) -> None:
        operator = node.operator
        if not operator.keyed:
            return
        keys = self._name("keys", node, self._keyed(node).key_context)
        assert isinstance(operator, FunctionOperator)
        if not second:
            key_of = self._name("key_of", node, operator.key_selector)
        elif isinstance(operator, TwoInputOperator) and operator.second_key_selector is not None:
            key_of = self._name("key_of2", node, operator.second_key_selector)
        else:
            # A record of a broadcast side has no key.
            self._line(depth, f"{keys}.key = {self._constant('no_key', NO_KEY)}")
            return
        self._line(depth, f"{keys}.key = {key_of}({value})", node, "key_by", value)

    def _context(self, node: StreamNode, second: bool) -> str:
        runtime = self._operators[node.id]
        assert isinstance(runtime, RuntimeFunction)
        if second:
            return self._name("context2", node, runtime.second_context())
        return self._name("context", node, runtime.element_context())

    def _reduce(self, node: StreamNode, function: str, value: str, depth: int) -> None:
        runtime = self._keyed(node)
        assert isinstance(node.operator, FunctionOperator)
        key_of = self._name("key_of", node, node.operator.key_selector)
        entries = self._name("entries", node, runtime.reduce_table.entries)
        changed = self._name("changed", node, runtime.reduce_table.changes.current)
        key, reduced = self._variable("g"), self._variable("v")
        self._line(depth, f"{key} = {key_of}({value})", node, "key_by", value)
        self._line(depth, f"if {key} in {entries}:")
        call = f"{reduced} = {function}({entries}[{key}], {value})"
        self._line(depth + 1, call, node, "reduce", value)
        self._line(depth, "else:")
        self._line(depth + 1, f"{reduced} = {value}")
        self._line(depth, f"{entries}[{key}] = {reduced}")
        self._line(depth, f"{changed}.add({key})")
        self._successors(node, reduced, depth, kept=True)

    def _results(
        self,
        node: StreamNode,
        function: Any,
        result: str,
        record: str,
        depth: int,
        tagged: bool = False,
    ) -> None:
        """Go through what `function` returned; of a generator the shape is known.

        With `tagged` a result may be one for a side output.
        """
        each = self._variable("v")
        if not inspect.isgeneratorfunction(function):
            refuse = self._constant("refuse", _refuse)
            self._line(depth, f"if {result} is None: {result} = ()")
            check = f"elif {result}.__class__ in wrong_shapes: {refuse}({result})"
            self._line(depth, check, node, "check", record)
        self._line(depth, f"for {each} in {result}:", node, "iterate", record)
        if tagged:
            self._side_outputs(node, each, depth + 1)
        # What is yielded may be the function's own, to be changed and yielded again: its state.
        self._successors(node, each, depth + 1, kept=True)

    def _side_outputs(self, node: StreamNode, value: str, depth: int) -> None:
        """Take out what is `tag, record`. What nobody reads is dropped, as in Flink."""
        tag = self._constant("output_tag", OutputTag)
        pair = f"{value}.__class__ is tuple and len({value}) == 2 and {value}[0].__class__ is {tag}"
        self._line(depth, f"if {pair}:")
        emitted = self._name("emitted", node, self._operators[node.id].report.tags)
        self._line(depth + 1, f"{emitted}.add({value}[0].tag_id)")
        read = {edge.tag: None for edge in self._vertex.chained if edge.source == node.id}
        read |= {x.edge.tag: None for x in self._exchanges if x.edge.node == node.id}
        names = [name for name in read if name is not None]
        for name in names:
            side = self._variable("v")
            self._line(depth + 1, f"if {value}[0].tag_id == {name!r}:")
            self._line(depth + 2, f"{side} = {value}[1]")
            self._successors(node, side, depth + 2, kept=True, tag=name)
        self._line(depth + 1, "continue")

    # --- what follows -------------------------------------------------------------------------

    def _successors(
        self,
        node: StreamNode,
        value: str,
        depth: int,
        kept: bool = False,
        tag: str | None = None,
    ) -> None:
        """Pass `value` on; `kept` says that the operator itself holds on to it."""
        before = len(self._lines)
        value = self._converted(node, value, depth, tag)
        # Exchanges first: they copy what they take, so a child may change it afterwards.
        for exchange in self._exchanges:
            if exchange.edge.node == node.id and exchange.edge.tag == tag:
                self._emit(node, exchange, value, depth)
        edges = [edge for edge in self._vertex.chained if edge.source == node.id]
        targets = [edge.target for edge in edges if edge.tag == tag]
        children = [child for child in self._vertex.nodes if child.id in targets]
        for child in children:
            needed_again = kept or child is not children[-1]
            immutable = tag is None and _immutable(node)
            copied = needed_again and not immutable
            own = self._own(node, child, value, depth) if copied else value
            self._operator(child, own, depth)
        if len(self._lines) == before:
            self._line(depth, "pass")

    def _converted(self, node: StreamNode, value: str, depth: int, tag: str | None) -> str:
        """The variable with what `node` gave as a value of its declared type."""
        # A filter passes on what was converted before.
        declared = None if isinstance(node.operator, FilterOperator) else node.output_type
        if tag is not None:
            declared = dict(node.side_types).get(tag)
        converter = None if declared is None else declared.converter()
        if converter is None:
            return value
        which = 0 if tag is None else 1 + [name for name, _ in node.side_types].index(tag)
        converted = self._variable("v")
        convert = self._name(f"convert{which or ''}", node, converter)
        self._line(depth, f"{converted} = {convert}({value})", node, "convert", value)
        return converted

    def _own(self, node: StreamNode, child: StreamNode, value: str, depth: int) -> str:
        """The variable from which `child` takes a value that others still need as it is."""
        # A sink does not change what it is given.
        if self._object_reuse or isinstance(child.operator, SinkOperator):
            return value
        own, copy = self._variable("v"), self._constant("isolate", isolate)
        self._line(depth, f"{own} = {copy}({value})", node, "emit", value)
        return own

    def _emit(self, node: StreamNode, exchange: Exchange, value: str, depth: int) -> None:
        partitioning, output = exchange.edge.partitioning, exchange.output
        number = exchange.edge.id
        out = self._constant(f"out{number}", output)
        count = len(output.channels)
        channel = f"c{number}"
        if isinstance(partitioning, HashPartitioning):
            route = Router(exchange.target_max_parallelism, count)
            self._constant(f"route{number}", route)
            self._constant(f"key{number}", partitioning.key_selector)
            self._line(depth, f"k{number} = key{number}({value})", node, "key_by", value)
            self._line(depth, f"{channel} = route{number}[k{number}]", node, "route", value)
        elif isinstance(partitioning, CustomPartitioning):
            choose = _checked_partition(partitioning, count)
            self._constant(f"choose{number}", choose)
            self._line(depth, f"{channel} = choose{number}({value})", node, "partition", value)
        elif isinstance(partitioning, BroadcastPartitioning):
            self._line(depth, f"for {channel} in range({count}):")
            depth += 1
        elif isinstance(partitioning, ShufflePartitioning) and count > 1:
            # Seeded, so that a run of the simulator can be repeated.
            self._constant(f"random{number}", random.Random(number).random)
            self._line(depth, f"{channel} = int(random{number}() * {count})")
        elif isinstance(partitioning, RebalancePartitioning | RescalePartitioning) and count > 1:
            turns = itertools.cycle(range(count))
            self._constant(f"turn{number}", turns.__next__)
            self._line(depth, f"{channel} = turn{number}()")
        else:
            channel = "0"
        buffer = f"b{number}"
        kept = value
        if not output.by_reference:
            copy = self._constant(f"copy{number}", output.isolate)
            # The commonest case, a flat dict, without a call; see `isolator`.
            flat = f"{value}.__class__ is dict and all_atomic(map(type, {value}.values()))"
            kept = f"{value}.copy() if {flat} else {copy}({value})"
        buffers = self._constant(f"buffers{number}", output.buffers)
        self._line(depth, f"{buffer} = {buffers}[{channel}]")
        self._line(depth, f"{buffer}.append({kept})", node, "emit", value)
        full = f"if len({buffer}) >= {out}.limit and {out}.full({channel}):"
        self._line(depth, full, node, "emit", value)
        self._line(depth + 1, "while room.blocked: yield")

    # --- text ---------------------------------------------------------------------------------

    def _line(
        self,
        depth: int,
        text: str,
        node: StreamNode | None = None,
        action: str = "",
        record: str | None = None,
    ) -> None:
        if node is not None:
            self._places[len(self._lines)] = Place(node, action, record)
        self._lines.append("    " * depth + text)

    def _variable(self, prefix: str) -> str:
        return f"{prefix}{next(self._variables)}"

    def _name(self, prefix: str, node: StreamNode, value: Any) -> str:
        return self._constant(f"{prefix}_{node.id}", value)

    def _constant(self, name: str, value: Any) -> str:
        self._names.setdefault(name, value)
        return name


def _immutable(node: StreamNode) -> bool:
    return node.output_type is not None and node.output_type.is_immutable()


def _refuse(result: Any) -> None:
    raise ResultShapeError(
        f"a {type(result).__name__} was returned where a list, a generator or None is expected; "
        "wrap it in a list to emit it as one record"
    )


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
