"""Slot sharing groups as objects, and sizes of memory.

A group is known by its name: operators of one group share slots. A group may also say what its
slots take. Managed memory is given to them. Cores and memory of the process are noted, and are no
bounds: a slot here is a Spark task, and Spark gives all tasks of a session the same. Resources by
name, such as a GPU, would be missing, so they are refused.

>>> SlotSharingGroup.builder("heavy").build().get_name()
'heavy'
>>> MemorySize.of_mebi_bytes(1536).get_gibi_bytes()
1
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.common.java_only import java_only
from penstock.errors import ProgramError

if TYPE_CHECKING:
    from penstock.datastream.program import Program

__all__ = ["MemorySize", "SlotSharingGroup"]


@dataclass(frozen=True, order=True)
class MemorySize:
    """A number of bytes. Larger units are rounded down."""

    bytes_size: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.bytes_size, bool) or not isinstance(self.bytes_size, int):
            raise ProgramError(
                f"a memory size is a number of bytes, not a {type(self.bytes_size).__name__}"
            )
        if self.bytes_size < 0:
            raise ProgramError(f"a memory size of {self.bytes_size} bytes is less than nothing")

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """So many times 1024 * 1024 bytes."""
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        """In bytes."""
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        """In units of 1024 bytes."""
        return self.bytes_size >> 10

    def get_mebi_bytes(self) -> int:
        """In units of 1024 * 1024 bytes."""
        return self.bytes_size >> 20

    def get_gibi_bytes(self) -> int:
        """In units of 1024 ** 3 bytes."""
        return self.bytes_size >> 30

    def get_tebi_bytes(self) -> int:
        """In units of 1024 ** 4 bytes."""
        return self.bytes_size >> 40

    get_java_memory_size = java_only("get_java_memory_size", "use the MemorySize itself")

    def __str__(self) -> str:
        return f"{self.bytes_size} bytes"


@dataclass(frozen=True)
class SlotSharingGroup:
    """Operators of a group of this name share slots; made by `SlotSharingGroup.builder(name)`."""

    name: str
    cpu_cores: float | None = field(default=None)
    task_heap_memory: MemorySize | None = field(default=None)
    task_off_heap_memory: MemorySize | None = field(default=None)
    managed_memory: MemorySize | None = field(default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ProgramError("a slot sharing group needs a name that is not empty")

    def get_name(self) -> str:
        """The name of the group."""
        return self.name

    def get_cpu_cores(self) -> float | None:
        """What was set; None if nothing was said. A slot is one task of Spark's."""
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """What was set; it is no bound."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """What was set; it is no bound."""
        return self.task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """The memory that state on RocksDB has in a slot of the group; None: as in all slots."""
        return self.managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Empty: they cannot be set per group."""
        return {}

    get_java_slot_sharing_group = java_only(
        "get_java_slot_sharing_group", "use the SlotSharingGroup itself"
    )

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Begin a group of this name."""
        return SlotSharingGroup.Builder(name)

    class Builder:
        """Builds a group. What Spark cannot give to one group alone is a ProgramError."""

        def __init__(self, name: str) -> None:
            self._group = SlotSharingGroup(name)

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Noted. How many cores a task has, in all of a session, says spark.task.cpus."""
            if cpu_cores <= 0:
                raise ProgramError(f"a slot of {cpu_cores} cores runs nothing")
            return self._with(cpu_cores=float(cpu_cores))

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Noted: a process takes what it needs."""
            return self._with(task_heap_memory=task_heap_memory)

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Noted: a process takes what it needs."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(
            self, task_off_heap_memory: MemorySize
        ) -> SlotSharingGroup.Builder:
            """Noted: a process takes what it needs."""
            return self._with(task_off_heap_memory=task_off_heap_memory)

        def set_task_off_heap_memory_mb(
            self, task_off_heap_memory_mb: int
        ) -> SlotSharingGroup.Builder:
            """Noted: a process takes what it needs."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """What state on RocksDB may take in a slot of the group."""
            return self._with(managed_memory=managed_memory)

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """What state on RocksDB may take in a slot of the group."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """A ProgramError: Spark gives its tasks resources per session."""
            raise ProgramError(
                f"slot sharing group {self._group.name!r}: external resource {name!r} cannot be "
                "set for one group, because all slots of a session are alike; set "
                f"spark.task.resource.{name}.amount for all of them"
            )

        def _with(self, **changes: Any) -> SlotSharingGroup.Builder:
            self._group = replace(self._group, **changes)
            return self

        def build(self) -> SlotSharingGroup:
            """The group."""
            return self._group


def group_name(slot_sharing_group: str | SlotSharingGroup, program: Program) -> str:
    """The name of a group that was given by name or as an object.

    What the object says of memory is noted in the program.
    """
    if isinstance(slot_sharing_group, SlotSharingGroup):
        if slot_sharing_group.managed_memory is not None:
            managed = slot_sharing_group.managed_memory.get_bytes()
            program.group_memory[slot_sharing_group.name] = managed
        return slot_sharing_group.name
    if not isinstance(slot_sharing_group, str) or not slot_sharing_group:
        raise ProgramError(
            "slot_sharing_group() needs the name of a group or a SlotSharingGroup, not "
            f"{slot_sharing_group!r:.100}"
        )
    return slot_sharing_group
