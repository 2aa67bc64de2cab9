"""Streams in windows, by PyFlink's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from penstock.common.output_tag import OutputTag
from penstock.common.typeinfo import TypeInformation
from penstock.datastream import accumulate
from penstock.datastream.checks import need, need_callable
from penstock.datastream.keyed_stream import KeyedStream
from penstock.datastream.streams import DataStream
from penstock.errors import ProgramError
from penstock.graph.operators import WindowOperator
from penstock.runtime.functions import NullByteKeySelector
from penstock.runtime.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from penstock.runtime.windowing.assigners import WindowAssigner
from penstock.runtime.windowing.checks import milliseconds
from penstock.runtime.windowing.contents import (
    AggregatedContents,
    Contents,
    ListedContents,
    ReducedContents,
)
from penstock.runtime.windowing.evictors import Evictor
from penstock.runtime.windowing.triggers import Trigger

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


S = TypeVar("S", bound="_Windowed")


class _Windowed:
    """What windows of a keyed stream and of one without keys have in common."""

    _kinds: tuple[type, type]
    """The classes of a window function and of a process window function."""
    _name: str

    def __init__(
        self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        need(window_assigner, WindowAssigner, "window()")
        self._keyed_stream = keyed_stream
        self._window_assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor | None = None
        self._allowed_lateness = 0
        self._late_tag: str | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment in which this stream is built."""
        return self._keyed_stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation | None:
        """The declared type of the records; None if none was declared."""
        return self._keyed_stream.get_type()

    def trigger(self: S, trigger: Trigger[Any, Any]) -> S:
        """Fire when `trigger` says so, not when the assigner's own would."""
        need(trigger, Trigger, "trigger()")
        self._trigger = trigger
        return self

    def evictor(self: S, evictor: Evictor) -> S:
        """Let `evictor` take records out before or after the function; all records are kept."""
        need(evictor, Evictor, "evictor()")
        self._evictor = evictor
        return self

    def allowed_lateness(self: S, time_ms: int) -> S:
        """Keep windows for so long after the watermark has passed their end.

        A record that comes in this time makes its window fire again.
        """
        lateness = milliseconds(time_ms, "allowed_lateness()", "lateness")
        if lateness < 0:
            raise ProgramError(f"the allowed lateness cannot be negative: {lateness} ms")
        if lateness and not self._window_assigner.is_event_time():
            raise ProgramError(
                "allowed_lateness() has no meaning for "
                f"{type(self._window_assigner).__name__}, whose windows do not end by event time"
            )
        self._allowed_lateness = lateness
        return self

    def side_output_late_data(self: S, output_tag: OutputTag) -> S:
        """Send records that are too late for all their windows to a side output."""
        need(output_tag, OutputTag, "side_output_late_data()")
        self._late_tag = output_tag.tag_id
        return self

    # --- functions ----------------------------------------------------------------------------

    def reduce(
        self,
        reduce_function: Any,
        window_function: Any = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Records reduced one by one; a window function is given what came out."""
        contents = ReducedContents(reduce_function)
        function = None if window_function is None else self._function(window_function, "reduce")
        declared = output_type or (self.get_input_type() if function is None else None)
        return self._operator("Reduce", contents, function, declared)

    def aggregate(
        self,
        aggregate_function: Any,
        window_function: Any = None,
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Records gathered in an accumulator; a window function is given its result."""
        contents = AggregatedContents(aggregate_function)
        function = None
        if window_function is not None:
            function = self._function(window_function, "aggregate")
        return self._operator("Aggregate", contents, function, output_type)

    def apply(self, window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of results from all records of a window."""
        plain, _ = self._kinds
        if not isinstance(window_function, plain):
            need_callable(window_function, "apply", "apply")
        return self._operator("Apply", ListedContents(), window_function, output_type)

    def process(
        self, process_window_function: Any, output_type: TypeInformation | None = None
    ) -> DataStream:
        """The same with a context: the window, the time, and state."""
        _, process = self._kinds
        need(process_window_function, process, "process() on this windowed stream")
        return self._operator("Process", ListedContents(), process_window_function, output_type)

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The sum of a field; the other fields are those of the first record."""
        return self._accumulate("Sum", accumulate.Sum(position_to_sum), associative=True)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The minimum of a field; the other fields are those of the first record."""
        return self._accumulate("Min", accumulate.Min(position_to_min), associative=True)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The maximum of a field; the other fields are those of the first record."""
        return self._accumulate("Max", accumulate.Max(position_to_max), associative=True)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The record with the smallest value of a field; the earlier one of equals."""
        return self._accumulate("Min By", accumulate.MinBy(position_to_min_by))

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The record with the largest value of a field; the earlier one of equals."""
        return self._accumulate("Max By", accumulate.MaxBy(position_to_max_by))

    # --- inside -------------------------------------------------------------------------------

    def _accumulate(
        self, name: str, function: accumulate.Accumulation, associative: bool = False
    ) -> DataStream:
        contents = ReducedContents(function, associative)
        return self._operator(name, contents, None, self.get_input_type())

    def _function(self, function: Any, what: str) -> Any:
        if not isinstance(function, self._kinds):
            names = " or a ".join(kind.__name__ for kind in self._kinds)
            raise ProgramError(
                f"{what}() needs a {names} as its window function, not a {type(function).__name__}"
            )
        return function

    def _operator(
        self,
        name: str,
        contents: Contents,
        function: Any,
        output_type: TypeInformation | None,
    ) -> DataStream:
        # Imported where they are used: they bring the state of slots with them.
        from penstock.runtime.windowing.choice import window_operator
        from penstock.runtime.windowing.operator import WindowSpec

        stream, assigner = self._keyed_stream, self._window_assigner
        trigger = self._trigger
        if trigger is None:
            trigger = assigner.get_default_trigger(stream.get_execution_environment())
            need(trigger, Trigger, f"{type(assigner).__name__}.get_default_trigger()")
        spec = WindowSpec(
            assigner,
            trigger,
            contents,
            function,
            self._evictor,
            self._allowed_lateness,
            self._late_tag,
        )
        operator = WindowOperator(window_operator(spec), "process_element", stream._key_selector)
        described = f"{self._name} {name}"
        return stream._stream(described, operator, output_type).set_description(
            f"{name} in {assigner!r}"
        )


class WindowedStream(_Windowed):
    """A keyed stream in windows: each key has its own."""

    _kinds = (WindowFunction, ProcessWindowFunction)
    _name = "Window"


class AllWindowedStream(_Windowed):
    """A stream in windows, all records together: one subtask does the work."""

    _kinds = (AllWindowFunction, ProcessAllWindowFunction)
    _name = "Window All"

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream.key_by(NullByteKeySelector()), window_assigner)

    def apply(self, window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of results from all records of a window."""
        if not isinstance(window_function, AllWindowFunction):
            call = need_callable(window_function, "apply", "apply")
            window_function = _ApplyAll(call)
        return super().apply(window_function, output_type)

    def _operator(
        self,
        name: str,
        contents: Contents,
        function: Any,
        output_type: TypeInformation | None,
    ) -> DataStream:
        made = super()._operator(name, contents, function, output_type).force_non_parallel()
        return _AllWindows(made._env, made._upstreams)


class _AllWindows(DataStream):
    """What windows of a whole stream give: from one subtask, as all records have one key."""

    def set_parallelism(self, parallelism: int) -> Self:
        """The number of subtasks. One does the work; the others are for what is chained to it."""
        most = self._env.get_max_parallelism() if parallelism > 1 else 1
        return self._set(parallelism=parallelism, max_parallelism=most)


class _ApplyAll(AllWindowFunction[Any, Any, Any]):
    """A plain function of a window and its records."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def apply(self, window: Any, inputs: Any) -> Any:
        return self._function(window, inputs)
