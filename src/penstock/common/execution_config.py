"""ExecutionConfig: the settings of a program's execution, as a view on its Configuration.

>>> configuration = Configuration()
>>> ExecutionConfig(configuration).set_parallelism(4).get_parallelism()
4
>>> configuration.to_dict()
{'parallelism.default': '4'}
"""

from __future__ import annotations

from typing import Any

from penstock.common import config_options as options
from penstock.common.configuration import Configuration
from penstock.common.java_only import java_only
from penstock.errors import InvalidParallelismError

_TYPES = "declare types with penstock.common.Types; what has no declared type is pickled"


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
        return self._configuration.get(options.PARALLELISM)

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

    def _set(self, option: options.Option[Any], value: Any) -> ExecutionConfig:
        self._configuration.set(option, value)
        return self

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
