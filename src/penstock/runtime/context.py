"""The contexts that user functions are called with; one object each, used again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.checkpoint.handles import MIN_WATERMARK
from penstock.common.accumulators import Accumulator
from penstock.common.clock import Clock
from penstock.common.shipped_files import cached_file
from penstock.errors import ProgramError, StateError
from penstock.metrics import MetricGroup
from penstock.runtime.functions import (
    DistributedCache,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
    TimeDomain,
    TimerService,
)
from penstock.runtime.reporting import OperatorReport
from penstock.state.backend import KeyedStateBackend
from penstock.state.descriptors import StateDescriptor
from penstock.state.kinds import KeyContext
from penstock.state.table import StateTable
from penstock.state.timers import TimerQueue


@dataclass(frozen=True)
class SubtaskInfo:
    """Where in the job an operator runs."""

    job_id: str
    attempt: int
    subtask: int
    parallelism: int
    max_parallelism: int
    fail_on_late_records: bool = False
    job_parameters: Mapping[str, str] = field(default_factory=dict)


class OperatorContext(RuntimeContext):
    """The RuntimeContext of one operator in one subtask."""

    def __init__(
        self,
        name: str,
        info: SubtaskInfo,
        backend: KeyedStateBackend | None,
        report: OperatorReport | None,
    ) -> None:
        self._name = name
        self._info = info
        self._backend = backend
        self._report = report

    def get_task_name(self) -> str:
        return self._name

    def get_task_name_with_subtasks(self) -> str:
        return f"{self._name} ({self._info.subtask + 1}/{self._info.parallelism})"

    def get_number_of_parallel_subtasks(self) -> int:
        return self._info.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._info.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._info.subtask

    def get_attempt_number(self) -> int:
        # Attempts have numbers from 1 on; in PyFlink the first is 0.
        return self._info.attempt - 1

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._info.job_parameters.get(key, default_value)

    def get_distributed_cache(self) -> DistributedCache:
        return _JobFiles(self._info.job_id)

    def get_metrics_group(self) -> MetricGroup:
        return self._reporting().metrics

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        self._reporting().add_accumulator(name, accumulator)

    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        return self._reporting().get_accumulator(name)

    def _reporting(self) -> OperatorReport:
        if self._report is None:
            raise ProgramError(
                f"a key selector or partitioner at operator {self._name!r} serves several "
                "subtasks and has no metrics or accumulators; let a function before or after it "
                "have them"
            )
        return self._report

    def _state(self, state_descriptor: StateDescriptor) -> Any:
        if self._backend is None:
            raise StateError(
                f"operator {self._name!r} asks for keyed state {state_descriptor.name!r} but its "
                "input is not keyed; call key_by() before it"
            )
        return self._backend.get_state(state_descriptor)

    def get_table(self, name: str, kind: str) -> StateTable:
        """A table of keyed state, for operators that are part of the engine."""
        assert self._backend is not None, "operators with tables are keyed"
        return self._backend.table(name, kind)

    def fails_on_late_records(self) -> bool:
        """Whether a record that is too late for its windows fails the job."""
        return self._info.fail_on_late_records

    get_state = _state
    get_list_state = _state
    get_map_state = _state
    get_reducing_state = _state
    get_aggregating_state = _state


class _JobFiles(DistributedCache):
    """The cached files of one job in this process."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id

    def get_file(self, name: str) -> str:
        return cached_file(self._job_id, name)


class Times(TimerService):
    """What time it is for an operator. Without keys there are no timers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.watermark = MIN_WATERMARK

    def current_processing_time(self) -> int:
        return self._clock.now_ms()

    def current_watermark(self) -> int:
        return self.watermark

    def _refuse(self, timestamp: int) -> None:
        raise ProgramError("timers belong to a key: call key_by() before this function")

    register_processing_time_timer = _refuse
    register_event_time_timer = _refuse
    delete_processing_time_timer = _refuse
    delete_event_time_timer = _refuse


class KeyedTimerService(Times):
    """Timers of the current key of one operator."""

    def __init__(
        self, key_context: KeyContext, clock: Clock, processing: TimerQueue, event: TimerQueue
    ) -> None:
        super().__init__(clock)
        self._key_context = key_context
        self.processing = processing
        self.event = event

    def register_processing_time_timer(self, timestamp: int) -> None:
        self.processing.register(self._key_context.key, timestamp)

    def register_event_time_timer(self, timestamp: int) -> None:
        self.event.register(self._key_context.key, timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self.processing.delete(self._key_context.key, timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self.event.delete(self._key_context.key, timestamp)


class UnkeyedContext(ProcessFunction.Context):
    """The context of `process_element` without a key."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self.stamp: int | None = None

    def timestamp(self) -> int | None:
        return self.stamp

    def timer_service(self) -> TimerService:
        return self._times


class ElementContext(KeyedProcessFunction.Context):
    """The context of `process_element`."""

    def __init__(self, key_context: KeyContext, timers: KeyedTimerService) -> None:
        self._key_context = key_context
        self._timers = timers
        self.stamp: int | None = None

    def get_current_key(self) -> Any:
        return self._key_context.key

    def timestamp(self) -> int | None:
        return self.stamp

    def timer_service(self) -> TimerService:
        return self._timers


class TimerContext(KeyedProcessFunction.OnTimerContext):
    """The context of `on_timer`, one per time domain."""

    def __init__(
        self, key_context: KeyContext, timers: KeyedTimerService, domain: TimeDomain
    ) -> None:
        self._key_context = key_context
        self._timers = timers
        self._domain = domain
        self.fired_at = 0

    def get_current_key(self) -> Any:
        return self._key_context.key

    def timestamp(self) -> int | None:
        return self.fired_at

    def timer_service(self) -> TimerService:
        return self._timers

    def time_domain(self) -> TimeDomain:
        return self._domain
