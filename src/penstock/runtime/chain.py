"""Chains, compiled: one Python loop over a batch for all operators of a vertex.

The loop is written as source text and compiled, so nothing stands between two user functions that
Python itself would not need. For ``map -> filter -> key_by`` it reads::

    def process(values):
        for v0 in values:
            v1 = f1(v0)
            r2 = f2(v1)
            if r2:
                if r2 is not True: refuse_generator(r2)
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

import functools
import inspect
import itertools
import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from penstock.common.output_tag import OutputTag
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.errors import ProgramError
from penstock.graph.job_graph import JobVertex
from penstock.graph.operators import (
    CONTEXT_OPERATORS,
    AsyncOperator,
    CoFlatMapOperator,
    CoMapOperator,
    FilterOperator,
    FlatMapOperator,
    FunctionOperator,
    MapOperator,
    ReduceOperator,
    SinkOperator,
    SourceOperator,
    TimestampsOperator,
    TwoInputOperator,
)
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.async_operator import CallFailed, RuntimeAsync, raise_failed
from penstock.runtime.chain_emit import Exchange, write_emit
from penstock.runtime.chain_keyed import write_key, write_reduce, write_tumbling
from penstock.runtime.chain_shapes import WRONG_SHAPES, refuse_generator, refuse_shape
from penstock.runtime.chain_stamp import write_after, write_before, write_stamp
from penstock.runtime.chain_text import ChainText, Place
from penstock.runtime.ends import RuntimeSink
from penstock.runtime.event_time import EventClock
from penstock.runtime.functions import TimeDomain
from penstock.runtime.isolation import isolate
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.runtime.operators import RuntimeFunction, RuntimeOperator
from penstock.runtime.output import Room
from penstock.runtime.windowing.tumbling import TumblingProcess

_numbers = itertools.count()
NO_TIME = "None"
"""The time of a record without a timestamp, as text."""


@dataclass(frozen=True)
class CompiledChain:
    """The loops of one vertex."""

    source: str
    filename: str
    places: dict[int, Place]
    process: tuple[Callable[[Iterable[Any]], Iterator[None]], ...]
    """One loop per input."""
    fire: dict[TimeDomain, Callable[[int], Iterator[None]]]
    completed: Callable[[Iterable[Any]], Iterator[None]]
    """What goes on when asynchronous calls have ended."""


def _nothing(_: Any) -> Iterator[None]:
    return iter(())


EMPTY_CHAIN = CompiledChain(
    "", "<chain: empty>", {}, (_nothing, _nothing), dict.fromkeys(TimeDomain, _nothing), _nothing
)
"""For a subtask that has nothing left to run."""


def compile_chain(
    vertex: JobVertex,
    operators: dict[int, RuntimeOperator],
    exchanges: list[Exchange],
    room: Room,
    object_reuse: bool,
    clock: EventClock | None = None,
) -> CompiledChain:
    """Write and compile the loops of `vertex`; `clock` if its event time begins there."""
    return _Writer(vertex, operators, exchanges, room, object_reuse, clock).compile()


@functools.lru_cache(maxsize=256)
def _code_of(source: str, name: str) -> tuple[str, CodeType]:
    """A loop's file name, under which tracebacks show it, and its code.

    The subtasks of a vertex and its later attempts have the same loop: it is compiled once.
    """
    filename = f"<chain {next(_numbers)}: {name}>"
    return filename, compile(source, filename, "exec")


class _Writer:
    """Writes the source text, line by line."""

    def __init__(
        self,
        vertex: JobVertex,
        operators: dict[int, RuntimeOperator],
        exchanges: list[Exchange],
        room: Room,
        object_reuse: bool,
        clock: EventClock | None,
    ) -> None:
        self._vertex = vertex
        self._operators = operators
        self._exchanges = exchanges
        self._object_reuse = object_reuse
        self._text = ChainText()
        self._text.names.update(room=room, wrong_shapes=WRONG_SHAPES)
        self._clock = clock
        self._time = NO_TIME

    def compile(self) -> CompiledChain:
        loops = self._loops()
        domains = self._timers()
        self._completed()
        body = self._text.lines
        fires = [f"fire_{domain.value}" for domain in domains]
        functions = ", ".join([*loops, *fires, "completed"])
        # Everything the loops use is an argument of `make`: closure variables are faster than
        # globals, and the text shows exactly what the loops depend on.
        head = f"def make({', '.join(self._text.names)}):"
        source = "\n".join([head, *(f"    {line}" for line in body), f"    return {functions},"])
        filename, code = _code_of(source, self._vertex.name)
        # Every time: what a subtask that has ended had there went with it.
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        scope: dict[str, Any] = {}
        exec(code, scope)
        made = scope["make"](**self._text.names)
        places = {line + 2: place for line, place in self._text.places.items()}
        fire = dict(zip(domains, made[len(loops) : -1], strict=True))
        return CompiledChain(source, filename, places, made[: len(loops)], fire, made[-1])

    # --- the loops ----------------------------------------------------------------------------

    def _loops(self) -> list[str]:
        """A loop for every input of the head; their names."""
        if not isinstance(self._vertex.head.operator, TwoInputOperator):
            return [self._loop("process", second=False)]
        return [self._loop("process", second=False), self._loop("process_2", second=True)]

    def _loop(self, name: str, second: bool) -> str:
        head, text = self._vertex.head, self._text
        text.line(0, f"def {name}(values):")
        if self._clock is not None:
            write_before(text, self._clock)
        value = text.variable("v")
        self._time = NO_TIME
        if self._vertex.timed:
            self._time = text.variable("t")
            text.line(1, f"for {value}, {self._time} in values:")
        else:
            text.line(1, f"for {value} in values:")
        if not isinstance(head.operator, SourceOperator):
            self._operator(head, value, 2, second)
        elif head.operator.strategy is not None:
            self._stamp(head, head.operator.strategy, value, 2)
        else:
            self._successors(head, value, 2)
        if self._clock is not None:
            write_after(text)
        # A generator even where no output can lack room.
        text.line(1, "return")
        text.line(1, "yield")
        return name

    def _timers(self) -> list[TimeDomain]:
        """A function for each domain that fires its timers, operator by operator down the chain.

        A watermark goes down the chain with it: it reaches an operator after all that the
        operators before it emit because of it, as it would if there were channels between them.
        """
        for domain in TimeDomain:
            self._text.line(0, f"def fire_{domain.value}(until):")
            for node in self._vertex.nodes:
                operator = self._operators[node.id]
                if domain is TimeDomain.EVENT_TIME and isinstance(operator, RuntimeFunction):
                    times = self._text.name("times", node, operator.times)
                    self._text.line(1, f"{times}.watermark = until")
                timed = isinstance(node.operator, CONTEXT_OPERATORS)
                if timed and isinstance(operator, RuntimeKeyedFunction):
                    self._fire(node, operator, domain)
            self._text.line(1, "return")
            self._text.line(1, "yield")
        return list(TimeDomain)

    def _completed(self) -> None:
        """The loop over what asynchronous calls gave: (results, timestamp, record)."""
        head, text = self._vertex.head, self._text
        text.line(0, "def completed(calls):")
        if isinstance(head.operator, AsyncOperator):
            result, self._time, record = (text.variable(prefix) for prefix in "rtv")
            text.line(1, f"for {result}, {self._time}, {record} in calls:")
            failed = text.constant("call_failed", CallFailed)
            fail = text.constant("raise_failed", raise_failed)
            raising = f"if {result}.__class__ is {failed}: {fail}({result})"
            text.line(2, raising, head, "async_invoke", record)
            each = text.variable("v")
            text.line(2, f"for {each} in {result}:", head, "iterate", record)
            self._successors(head, each, 3, kept=True)
        text.line(1, "return")
        text.line(1, "yield")

    def _fire(self, node: StreamNode, operator: RuntimeKeyedFunction, domain: TimeDomain) -> None:
        timers, context_value = operator.timers, operator.timer_context(domain)
        by_event = domain is TimeDomain.EVENT_TIME
        queue = timers.event if by_event else timers.processing
        # Without timestamps in its input a chain has none in its output: nor would a channel.
        self._time = "timestamp" if by_event and self._vertex.timed else NO_TIME
        assert isinstance(node.operator, FunctionOperator)
        pop = self._text.name(f"pop_{domain.value}", node, queue.pop_due)
        context = self._text.name(f"context_{domain.value}", node, context_value)
        keys = self._text.name("keys", node, operator.key_context)
        on_timer = self._text.name("on_timer", node, node.operator.function.on_timer)
        self._text.line(1, "while True:")
        self._text.line(2, f"due = {pop}(until)")
        self._text.line(2, "if due is None: break")
        self._text.line(2, f"timestamp, {keys}.key = due")
        self._text.line(2, f"{context}.fired_at = timestamp")
        result = self._text.variable("r")
        self._text.line(2, f"{result} = {on_timer}(timestamp, {context})", node, "on_timer", "due")
        self._results(node, node.operator.function.on_timer, result, "due", 2, tagged=True)
        # Between two timers the slot may turn to something else.
        self._text.line(2, "yield")

    # --- operators ----------------------------------------------------------------------------

    def _operator(self, node: StreamNode, value: str, depth: int, second: bool = False) -> None:
        operator = node.operator
        if isinstance(operator, SinkOperator):
            runtime = self._operators[node.id]
            assert isinstance(runtime, RuntimeSink)
            if operator.sink.timed:
                write = self._text.name("write", node, runtime.writer.write_timed)
                self._text.line(depth, f"{write}({value}, {self._time})", node, "write", value)
            else:
                write = self._text.name("write", node, runtime.writer.write)
                self._text.line(depth, f"{write}({value})", node, "write", value)
            return
        if isinstance(operator, TimestampsOperator):
            self._stamp(node, operator.strategy, value, depth)
            return
        if isinstance(operator, AsyncOperator):
            waiting = self._operators[node.id]
            assert isinstance(waiting, RuntimeAsync)
            start = self._text.name("start", node, waiting.start)
            full = self._text.name("full", node, waiting.full)
            self._text.line(depth, f"{start}({value}, {self._time})", node, "async_invoke", value)
            self._text.line(depth, f"while {full}(): yield")
            return
        assert isinstance(operator, FunctionOperator)
        called: Callable[..., Any] = operator.call()
        if second:
            assert isinstance(operator, TwoInputOperator)
            called = operator.second_call()
        function = self._text.name("f2" if second else "f", node, called)
        if isinstance(operator, ReduceOperator):
            runtime_reduce = self._keyed(node)
            table, keys = runtime_reduce.reduce_table, runtime_reduce.key_context
            reduced = write_reduce(self._text, node, table, keys, function, value, depth)
            self._successors(node, reduced, depth, kept=True)
            return
        if isinstance(operator.function, TumblingProcess):
            context, keys = self._context(node, second=False), self._keyed(node).key_context
            parts = operator.function.parts()
            result = write_tumbling(
                self._text, node, parts, keys, context, value, self._time, depth
            )
            self._timed_results(node, result, value, depth + 1)
            return
        if operator.keyed:
            write_key(self._text, node, self._keyed(node).key_context, value, depth, second)
        if isinstance(operator, MapOperator | CoMapOperator):
            mapped = self._text.variable("v")
            self._text.line(depth, f"{mapped} = {function}({value})", node, "map", value)
            if isinstance(operator, CoMapOperator):
                self._text.line(depth, f"if {mapped} is not None:")
                depth += 1
            # A rich function may keep in its state what it returns.
            self._successors(node, mapped, depth, kept=operator.keyed)
        elif isinstance(operator, FilterOperator):
            kept = self._text.variable("r")
            self._text.line(depth, f"{kept} = {function}({value})", node, "filter", value)
            self._text.line(depth, f"if {kept}:", node, "filter", value)
            # What is always true cannot be what was meant.
            refuse = self._text.constant("refuse_generator", refuse_generator)
            check = f"if {kept} is not True: {refuse}({kept})"
            self._text.line(depth + 1, check, node, "check", value)
            self._successors(node, value, depth + 1)
        elif isinstance(operator, FlatMapOperator | CoFlatMapOperator):
            result = self._text.variable("r")
            self._text.line(depth, f"{result} = {function}({value})", node, "flat_map", value)
            self._results(node, called, result, value, depth)
        elif isinstance(operator, CONTEXT_OPERATORS):
            context = self._context(node, second)
            # Also where it is None: the context is used again, and had a time before.
            if self._vertex.timed or self._time != NO_TIME:
                self._text.line(depth, f"{context}.stamp = {self._time}")
            result = self._text.variable("r")
            call = f"{result} = {function}({value}, {context})"
            self._text.line(depth, call, node, "process_element", value)
            self._results(node, called, result, value, depth, tagged=True)
        else:
            raise ProgramError(f"operator {node.name!r}: no code for {operator.kind}")

    def _stamp(self, node: StreamNode, strategy: WatermarkStrategy, value: str, depth: int) -> None:
        before = self._time

        def passed_on(time: str, depth: int, tag: str | None) -> None:
            self._time = time
            self._successors(node, value, depth, tag=tag)

        write_stamp(self._text, node, strategy, value, before, depth, passed_on)
        self._time = before

    def _keyed(self, node: StreamNode) -> RuntimeKeyedFunction:
        runtime = self._operators[node.id]
        assert isinstance(runtime, RuntimeKeyedFunction)
        return runtime

    def _context(self, node: StreamNode, second: bool) -> str:
        runtime = self._operators[node.id]
        assert isinstance(runtime, RuntimeFunction)
        if second:
            return self._text.name("context2", node, runtime.second_context())
        return self._text.name("context", node, runtime.element_context())

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
        assert isinstance(node.operator, FunctionOperator)
        if node.operator.timed_results:
            self._timed_results(node, result, record, depth)
            return
        each = self._text.variable("v")
        if not inspect.isgeneratorfunction(function):
            refuse = self._text.constant("refuse", refuse_shape)
            self._text.line(depth, f"if {result} is None: {result} = ()")
            check = f"elif {result}.__class__ in wrong_shapes: {refuse}({result})"
            self._text.line(depth, check, node, "check", record)
        self._text.line(depth, f"for {each} in {result}:", node, "iterate", record)
        if tagged:
            self._side_outputs(node, each, depth + 1)
        # What is yielded may be the function's own, to be changed and yielded again: its state.
        self._successors(node, each, depth + 1, kept=True)

    def _timed_results(self, node: StreamNode, result: str, record: str, depth: int) -> None:
        """Go through triples (side output or None, record, timestamp)."""
        text, before = self._text, self._time
        tag, value, self._time = (text.variable(prefix) for prefix in "gvt")
        text.line(depth, f"if {result} is not None:")
        loop = f"for {tag}, {value}, {self._time} in {result}:"
        text.line(depth + 1, loop, node, "iterate", record)
        text.line(depth + 2, f"if {tag} is None:")
        self._successors(node, value, depth + 3, kept=True)
        text.line(depth + 2, "else:")
        emitted = text.name("emitted", node, self._operators[node.id].report.tags)
        text.line(depth + 3, f"{emitted}.add({tag})")
        for name in self._tags_read(node):
            text.line(depth + 3, f"if {tag} == {name!r}:")
            self._successors(node, value, depth + 4, kept=True, tag=name)
        self._time = before

    def _tags_read(self, node: StreamNode) -> list[str]:
        """The side outputs of `node` that somebody reads."""
        read = {edge.tag: None for edge in self._vertex.chained if edge.source == node.id}
        read |= {x.edge.tag: None for x in self._exchanges if x.edge.node == node.id}
        return [name for name in read if name is not None]

    def _side_outputs(self, node: StreamNode, value: str, depth: int) -> None:
        """Take out what is `tag, record`. What nobody reads is dropped, as in Flink."""
        tag = self._text.constant("output_tag", OutputTag)
        pair = f"{value}.__class__ is tuple and len({value}) == 2 and {value}[0].__class__ is {tag}"
        self._text.line(depth, f"if {pair}:")
        emitted = self._text.name("emitted", node, self._operators[node.id].report.tags)
        self._text.line(depth + 1, f"{emitted}.add({value}[0].tag_id)")
        for name in self._tags_read(node):
            side = self._text.variable("v")
            self._text.line(depth + 1, f"if {value}[0].tag_id == {name!r}:")
            self._text.line(depth + 2, f"{side} = {value}[1]")
            self._successors(node, side, depth + 2, kept=True, tag=name)
        self._text.line(depth + 1, "continue")

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
        before = len(self._text.lines)
        value = self._converted(node, value, depth, tag)
        # Exchanges first: they copy what they take, so a child may change it afterwards.
        for exchange in self._exchanges:
            if exchange.edge.node == node.id and exchange.edge.tag == tag:
                write_emit(self._text, node, exchange, value, self._time, depth)
        edges = [edge for edge in self._vertex.chained if edge.source == node.id]
        targets = [edge.target for edge in edges if edge.tag == tag]
        children = [child for child in self._vertex.nodes if child.id in targets]
        for child in children:
            needed_again = kept or child is not children[-1]
            immutable = tag is None and _immutable(node)
            copied = needed_again and not immutable
            own = self._own(node, child, value, depth) if copied else value
            self._operator(child, own, depth)
        if len(self._text.lines) == before:
            self._text.line(depth, "pass")

    def _converted(self, node: StreamNode, value: str, depth: int, tag: str | None) -> str:
        """The variable with what `node` gave as a value of its declared type."""
        # These pass on what was converted before.
        passed = isinstance(node.operator, FilterOperator | TimestampsOperator)
        declared = None if passed else node.output_type
        if tag is not None:
            declared = dict(node.side_types).get(tag)
        converter = None if declared is None else declared.converter()
        if converter is None:
            return value
        which = 0 if tag is None else 1 + [name for name, _ in node.side_types].index(tag)
        converted = self._text.variable("v")
        convert = self._text.name(f"convert{which or ''}", node, converter)
        self._text.line(depth, f"{converted} = {convert}({value})", node, "convert", value)
        return converted

    def _own(self, node: StreamNode, child: StreamNode, value: str, depth: int) -> str:
        """The variable from which `child` takes a value that others still need as it is."""
        # A sink does not change what it is given.
        if self._object_reuse or isinstance(child.operator, SinkOperator):
            return value
        own, copy = self._text.variable("v"), self._text.constant("isolate", isolate)
        self._text.line(depth, f"{own} = {copy}({value})", node, "emit", value)
        return own


def _immutable(node: StreamNode) -> bool:
    return node.output_type is not None and node.output_type.is_immutable()
