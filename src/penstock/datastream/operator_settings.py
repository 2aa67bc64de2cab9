"""What can be said of an operator after it was added: its name, identity, parallelism, place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from penstock.datastream.slot_sharing_group import SlotSharingGroup, group_name
from penstock.graph.stream_graph import Chaining

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


class OperatorSettings(ABC):
    """The settings of the operator behind a stream, or of the sink at its end."""

    _env: StreamExecutionEnvironment

    def name(self, name: str) -> Self:
        """What the operator is called in plans, metrics and errors."""
        return self._set(name=name)

    def uid(self, uid: str) -> Self:
        """The identity of the operator's state, which survives changes of the program."""
        return self._set(uid=uid)

    def set_uid_hash(self, uid_hash: str) -> Self:
        """The same as `uid`, for a hash that an earlier program's operator had."""
        return self._set(uid=uid_hash)

    def set_description(self, description: str) -> Self:
        """More than the name can say; shown with the plan of the program."""
        return self._set(description=description)

    def set_parallelism(self, parallelism: int) -> Self:
        """The number of the operator's subtasks."""
        return self._set(parallelism=parallelism)

    def disable_chaining(self) -> Self:
        """Do not fuse the operator with anything."""
        return self._set(chaining=Chaining.NEVER)

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Which operators the operator may share slots with: those of the same group."""
        name = group_name(slot_sharing_group, self._env._program)
        return self._set(slot_sharing_group=name)

    @abstractmethod
    def _set(self, **changes: Any) -> Self:
        """Change the operator."""
