"""The functions a user writes, by PyFlink's names.

A plain callable does where a function has one method; the classes are for functions that need
`open` and `close`, state or timers.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic

from penstock.common.accumulators import Accumulator
from penstock.common.output_tag import OutputTag
from penstock.common.type_variables import ACC, IN, KEY, OUT, K, T, V
from penstock.metrics import MetricGroup
from penstock.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.state.interfaces import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)

Results = Iterable[OUT | tuple[OutputTag[Any], Any]] | None
"""What process functions give: records, and `tag, record` for side outputs."""


class TimeDomain(enum.Enum):
    """Which clock a timer follows."""

    EVENT_TIME = "event"
    PROCESSING_TIME = "processing"


class KeyedStateStore(ABC):
    """The way to the state of the current key."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Where the function registers its metrics."""

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Have `accumulator` merged with those of the same name elsewhere, for the client."""

    @abstractmethod
    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        """The accumulator that this function added under `name`."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """The value of the current key that the descriptor names."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """The list of the current key that the descriptor names."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """The map of the current key that the descriptor names."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """The reduction of the current key that the descriptor names."""

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN, ACC, OUT]
    ) -> AggregatingState[IN, OUT]:
        """The aggregate of the current key that the descriptor names."""


class DistributedCache(ABC):
    """Files that were sent along with the job, by the names they were registered under."""

    @abstractmethod
    def get_file(self, name: str) -> str:
        """The path of the file, or folder, in this process's file system; not to be changed."""


class RuntimeContext(KeyedStateStore):
    """What a function may know of where it runs, and its way to state."""

    @abstractmethod
    def get_task_name(self) -> str:
        """The name of the operator."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """The name with subtask and parallelism, as error messages have it."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """The parallelism of the operator."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """The number of key groups: the highest parallelism it could have."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """The number of this subtask, from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """The number of the attempt, from 0: one more after every restart."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """The value that `ExecutionConfig.set_global_job_parameters` has for `key`, as text."""

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """The files that `env.register_cached_file` sent along."""


class Function(ABC):  # noqa: B024
    """The base of all user functions."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called once per subtask and attempt, before any record."""

    def close(self) -> None:
        """Called once at the end, also after a failure."""


class MapFunction(Function, Generic[IN, OUT]):
    """One record for one record."""

    @abstractmethod
    def map(self, value: IN) -> OUT:
        """One record for one record."""


class FlatMapFunction(Function, Generic[IN, OUT]):
    """Any number of records for one record."""

    @abstractmethod
    def flat_map(self, value: IN) -> Iterable[OUT] | None:
        """Any number of records for one record."""


class FilterFunction(Function, Generic[IN]):
    """Lets records pass, or not."""

    @abstractmethod
    def filter(self, value: IN) -> bool:
        """Whether the record goes on."""


class ReduceFunction(Function, Generic[T]):
    """Makes one record of two of the same kind."""

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """Two records made into one."""


class AggregateFunction(Function, Generic[IN, ACC, OUT]):
    """Values gathered in an accumulator."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """A new accumulator, of nothing so far."""

    @abstractmethod
    def add(self, value: IN, accumulator: ACC) -> ACC:
        """The accumulator with `value` in it: the one that was given, changed, or a new one."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT:
        """What the accumulator amounts to."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """One accumulator for what two hold."""


class KeySelector(Function, Generic[IN, KEY]):
    """Says which key a record has."""

    @abstractmethod
    def get_key(self, value: IN) -> KEY:
        """The key of a record; the same record must always give the same key."""


class NullByteKeySelector(KeySelector[Any, int]):
    """One key for all records."""

    def get_key(self, value: Any) -> int:
        return 0


class Partitioner(Function, Generic[K]):
    """Says which subtask a record goes to."""

    @abstractmethod
    def partition(self, key: K, num_partitions: int) -> int:
        """Which of `num_partitions` receivers gets the record."""


class TimerService(ABC):
    """Time, and timers for the current key: one per timestamp."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The slot's clock, in milliseconds since the epoch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """How far event time has come in this subtask."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Have `on_timer` called when the clock reaches `timestamp`."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Have `on_timer` called when the watermark reaches `timestamp`."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget the timer; nothing happens if there is none."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget the timer; nothing happens if there is none."""


class ProcessFunction(Function, Generic[IN, OUT]):
    """A function of one record at a time, with side outputs; without state or timers."""

    class Context(ABC):
        """The time of the record. Not to be kept after the call."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The timestamp of the record, None if it has none."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """What time it is. Timers need a keyed stream."""

    @abstractmethod
    def process_element(self, value: IN, ctx: ProcessFunction.Context) -> Results[OUT]:
        """Called for every record; may be a generator, or return an iterable or None.

        A result `tag, record` with an OutputTag goes to that side output.
        """


class KeyedProcessFunction(Function, Generic[KEY, IN, OUT]):
    """A function of one record or one timer at a time, with state and timers of its key."""

    class Context(ABC, Generic[K]):
        """The key and the time of the record. Not to be kept after the call."""

        @abstractmethod
        def get_current_key(self) -> K:
            """The key of the record, or of the timer."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The timestamp of the record, None if it has none."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """What time it is, and the timers of the current key."""

    class OnTimerContext(Context[K]):
        """The key of the timer. Not to be kept after the call."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock the timer followed."""

    @abstractmethod
    def process_element(self, value: IN, ctx: KeyedProcessFunction.Context[KEY]) -> Results[OUT]:
        """Called for every record; may be a generator, or return an iterable or None."""

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[KEY]
    ) -> Results[OUT]:
        """Called when a timer is due; as `process_element`."""
