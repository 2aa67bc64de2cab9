"""ExecutionConfig: the settings of a program's execution, as a view on its Configuration.

>>> configuration = Configuration()
>>> ExecutionConfig(configuration).set_parallelism(4).get_parallelism()
4
>>> configuration.to_dict()
{'parallelism.default': '4'}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.common import config_options as options
from penstock.common.configuration import Configuration
from penstock.common.java_only import java_only
from penstock.common.map_values import format_map
from penstock.errors import ConfigurationError, InvalidParallelismError, ProgramError

_TYPES = "declare types with penstock.common.Types; what has no declared type is pickled"

_CANCELLATION = (
    "functions are not interrupted again and again; set_task_cancellation_timeout() says when "
    "the process of one that does not end is ended"
)

_OPTIONS: tuple[options.Option[Any], ...] = (
    options.MAX_PARALLELISM,
    options.OBJECT_REUSE,
    options.AUTO_WATERMARK_INTERVAL,
    options.GENERIC_TYPES,
    options.AUTO_UIDS,
    options.CANCELLATION_TIMEOUT,
    options.SNAPSHOT_COMPRESSION,
)


class ExecutionConfig:
    """Reads and sets keys of the configuration that it was made from; it keeps nothing itself."""

    PARALLELISM_DEFAULT = -1
    """As a parallelism: the one that holds when none is set."""

    PARALLELISM_UNKNOWN = -2
    """As a parallelism: leave the one that is set."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def get_parallelism(self) -> int:
        """The parallelism of operators that set none."""
        unset: options.Option[int | None] = options.Option(
            options.PARALLELISM.key, options.PARALLELISM.parse, None
        )
        chosen = self._configuration.get(unset)
        for_tables = self._configuration.get(options.TABLE_PARALLELISM)
        return chosen or for_tables or options.PARALLELISM.default

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the parallelism of operators that set none."""
        if parallelism == self.PARALLELISM_DEFAULT:
            return self._set(options.PARALLELISM, None)
        if parallelism == self.PARALLELISM_UNKNOWN:
            return self
        if parallelism < 1:
            raise InvalidParallelismError(f"a parallelism of {parallelism} runs nothing")
        return self._set(options.PARALLELISM, parallelism)

    def get_max_parallelism(self) -> int:
        """The number of key groups."""
        return self._configuration.get(options.MAX_PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the number of key groups, and so the highest parallelism of a keyed operator."""
        return self._set(options.MAX_PARALLELISM, max_parallelism)

    def enable_object_reuse(self) -> ExecutionConfig:
        """Hand records on without copying them: never change one after emitting it."""
        return self._set(options.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Copy records where anybody else still needs them."""
        return self._set(options.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """Whether records are handed on without copying them."""
        return self._configuration.get(options.OBJECT_REUSE)

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Send watermarks on every so many milliseconds; 0: only with records."""
        if interval < 0:
            raise ConfigurationError(f"a watermark interval of {interval} ms is negative")
        return self._set(options.AUTO_WATERMARK_INTERVAL, interval)

    def get_auto_watermark_interval(self) -> int:
        """How often watermarks are sent on, in milliseconds."""
        return self._configuration.get(options.AUTO_WATERMARK_INTERVAL)

    def enable_generic_types(self) -> ExecutionConfig:
        """Streams may have no declared type: their records are any that can be pickled."""
        return self._set(options.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """`execute()` refuses a program with a stream whose type is not declared."""
        return self._set(options.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """Whether every stream needs a declared type."""
        return not self._configuration.get(options.GENERIC_TYPES)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Operators without a uid get one, from what they are and what feeds them."""
        return self._set(options.AUTO_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """`execute()` refuses a program with an operator that has no uid of its own."""
        return self._set(options.AUTO_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether operators may go without a uid of their own."""
        return self._configuration.get(options.AUTO_UIDS)

    def get_global_job_parameters(self) -> dict[str, str]:
        """What `RuntimeContext.get_job_parameter` gives to functions."""
        parameters: dict[str, str] = self._configuration.get(options.JOB_PARAMETERS)
        return dict(parameters)

    def set_global_job_parameters(
        self, global_job_parameters_dict: Mapping[str, Any]
    ) -> ExecutionConfig:
        """Values that every function can read, as text."""
        if not isinstance(global_job_parameters_dict, Mapping):
            raise ProgramError(
                f"job parameters are a dict, not a {type(global_job_parameters_dict).__name__}"
            )
        self._configuration.set_string(
            options.JOB_PARAMETERS.key, format_map(global_job_parameters_dict)
        )
        return self

    def get_task_cancellation_timeout(self) -> int:
        """How many milliseconds functions may take to end when their job is cancelled."""
        return self._configuration.get(options.CANCELLATION_TIMEOUT)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """After so many milliseconds the process of a function that does not end is ended."""
        if timeout < 1:
            raise ProgramError(
                f"a cancellation timeout of {timeout} ms: a function that never ends would keep "
                "its slot for ever, so it must be at least 1 ms"
            )
        return self._set(options.CANCELLATION_TIMEOUT, timeout)

    def get_latency_tracking_interval(self) -> int:
        """0: latency is not tracked."""
        return 0

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """ProgramError unless the interval says that latency is not to be tracked (0 or less)."""
        if interval > 0:
            raise ProgramError(
                "there are no latency markers in the streams; measure with a distribution of "
                "your own, see RuntimeContext.get_metrics_group()"
            )
        return self

    def is_use_snapshot_compression(self) -> bool:
        """Whether state in checkpoints and savepoints is compressed."""
        return self._configuration.get(options.SNAPSHOT_COMPRESSION)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Compress state in checkpoints and savepoints, or do not."""
        return self._set(options.SNAPSHOT_COMPRESSION, use_snapshot_compression)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._state() == other._state()

    def __hash__(self) -> int:
        return hash(self._state())

    def _state(self) -> tuple[Any, ...]:
        """Everything that this class sets, as it is in force."""
        parameters = frozenset(self.get_global_job_parameters().items())
        values = (self._configuration.get(option) for option in _OPTIONS)
        return (self.get_parallelism(), parameters, *values)

    def _set(self, option: options.Option[Any], value: Any) -> ExecutionConfig:
        self._configuration.set(option, value)
        return self

    get_task_cancellation_interval = java_only("get_task_cancellation_interval", _CANCELLATION)
    set_task_cancellation_interval = java_only("set_task_cancellation_interval", _CANCELLATION)
    enable_closure_cleaner = java_only("enable_closure_cleaner", "functions are pickled whole")
    disable_closure_cleaner = java_only("disable_closure_cleaner", "functions are pickled whole")
    is_closure_cleaner_enabled = java_only(
        "is_closure_cleaner_enabled", "functions are pickled whole"
    )
    enable_force_kryo = java_only("enable_force_kryo", _TYPES)
    disable_force_kryo = java_only("disable_force_kryo", _TYPES)
    is_force_kryo_enabled = java_only("is_force_kryo_enabled", _TYPES)
    enable_force_avro = java_only("enable_force_avro", _TYPES)
    disable_force_avro = java_only("disable_force_avro", _TYPES)
    is_force_avro_enabled = java_only("is_force_avro_enabled", _TYPES)
    get_default_kryo_serializer_classes = java_only("get_default_kryo_serializer_classes", _TYPES)
    get_registered_kryo_types = java_only("get_registered_kryo_types", _TYPES)
    get_registered_pojo_types = java_only("get_registered_pojo_types", _TYPES)
