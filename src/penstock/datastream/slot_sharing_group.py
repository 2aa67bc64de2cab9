"""Slot sharing groups as objects, and sizes of memory.

A group is known by its name: operators of one group share slots. Flink lets a group also say what
resources its slots take. A slot here is a Spark task, and Spark gives all tasks of a session the
same resources, so what could not be honoured is refused where it is set.

>>> SlotSharingGroup.builder("heavy").build().get_name()
'heavy'
>>> MemorySize.of_mebi_bytes(1536).get_gibi_bytes()
1
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.common.java_only import java_only
from penstock.errors import ProgramError

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

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ProgramError("a slot sharing group needs a name that is not empty")

    def get_name(self) -> str:
        """The name of the group."""
        return self.name

    def get_cpu_cores(self) -> float | None:
        """1.0 if it was set; None if nothing was said. A slot is one task on one core."""
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """None: it cannot be set per group."""
        return None

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """None: it cannot be set per group."""
        return None

    def get_managed_memory(self) -> MemorySize | None:
        """None: it cannot be set per group."""
        return None

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
            self._name = name
            self._cpu_cores: float | None = None

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """1, which is what a slot has; anything else is a ProgramError."""
            if cpu_cores != 1:
                raise ProgramError(
                    f"a slot of {cpu_cores} cores cannot be had for one group: a slot is a Spark "
                    "task; set spark.task.cpus for all slots of the session"
                )
            self._cpu_cores = 1.0
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """A ProgramError: Spark has no memory per group of tasks."""
            return self._refuse("task heap memory", "spark.executor.memory")

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """A ProgramError: Spark has no memory per group of tasks."""
            return self._refuse("task heap memory", "spark.executor.memory")

        def set_task_off_heap_memory(
            self, task_off_heap_memory: MemorySize
        ) -> SlotSharingGroup.Builder:
            """A ProgramError: Spark has no memory per group of tasks."""
            return self._refuse("task off-heap memory", "spark.executor.pyspark.memory")

        def set_task_off_heap_memory_mb(
            self, task_off_heap_memory_mb: int
        ) -> SlotSharingGroup.Builder:
            """A ProgramError: Spark has no memory per group of tasks."""
            return self._refuse("task off-heap memory", "spark.executor.pyspark.memory")

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """A ProgramError: every slot has the same share of it."""
            return self._refuse("managed memory", "taskmanager.memory.managed.size")

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """A ProgramError: every slot has the same share of it."""
            return self._refuse("managed memory", "taskmanager.memory.managed.size")

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """A ProgramError: Spark gives its tasks resources per session."""
            return self._refuse(f"external resource {name!r}", f"spark.task.resource.{name}.amount")

        def _refuse(self, what: str, key: str) -> SlotSharingGroup.Builder:
            raise ProgramError(
                f"slot sharing group {self._name!r}: {what} cannot be set for one group, because "
                f"all slots of a session are alike; set {key} for all of them"
            )

        def build(self) -> SlotSharingGroup:
            """The group."""
            return SlotSharingGroup(self._name, self._cpu_cores)


def group_name(slot_sharing_group: str | SlotSharingGroup) -> str:
    """The name of a group that was given by name or as an object."""
    if isinstance(slot_sharing_group, SlotSharingGroup):
        return slot_sharing_group.name
    if not isinstance(slot_sharing_group, str) or not slot_sharing_group:
        raise ProgramError(
            "slot_sharing_group() needs the name of a group or a SlotSharingGroup, not "
            f"{slot_sharing_group!r:.100}"
        )
    return slot_sharing_group
