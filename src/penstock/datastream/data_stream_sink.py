"""The end of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.datastream.operator_settings import OperatorSettings

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


class DataStreamSink(OperatorSettings):
    """The end of a stream, for settings."""

    def __init__(self, env: StreamExecutionEnvironment, node: int) -> None:
        self._env = env
        self._node_id = node

    def _set(self, **changes: Any) -> Self:
        self._env._program.change(self._node_id, **changes)
        return self
