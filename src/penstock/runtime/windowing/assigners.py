"""Assigners: which windows a record belongs to. This file has what they have in common.

A program can bring its own: a subclass of WindowAssigner whose `assign_windows` returns windows,
which may be of a class of its own too, as long as they can be hashed, compared and pickled.
"""

from __future__ import annotations

import enum
import random
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any, Generic, TypeVar

from penstock.errors import ProgramError
from penstock.runtime.functions import RuntimeContext
from penstock.runtime.windowing.serializers import GlobalWindowSerializer, TypeSerializer
from penstock.runtime.windowing.triggers import NeverTrigger, Trigger
from penstock.runtime.windowing.windows import GlobalWindow, Window

T = TypeVar("T")
W = TypeVar("W", bound=Window)
W2 = TypeVar("W2", bound=Window)


class WindowStagger(enum.Enum):
    """Whether the windows of all subtasks begin together.

    ALIGNED: they do. RANDOM: every subtask shifts them by a random part of their size. NATURAL:
    by where in a window the subtask's first record came. The shift spreads the work of firing.
    """

    ALIGNED = "aligned"
    RANDOM = "random"
    NATURAL = "natural"

    def get_stagger_offset(self, current_processing_time: int, size: int) -> int:
        """By how much to shift, from 0 up to `size`."""
        if self is WindowStagger.RANDOM:
            return random.randrange(size)
        return current_processing_time % size if self is WindowStagger.NATURAL else 0


class WindowAssigner(ABC, Generic[T, W]):
    """Says which windows a record belongs to."""

    class WindowAssignerContext(ABC):
        """The time, and the way to state of the key."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """What the slot's clock shows, in milliseconds since the epoch."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """The context of the operator's subtask."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of a record; `timestamp` is None for one that has none."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger where a program names none."""

    def get_window_serializer(self) -> TypeSerializer[W]:
        """How to write a window as bytes. The engine does not ask for it."""
        raise ProgramError(f"{type(self).__name__} has no serializer for its windows")

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether its windows end by event time; else by the clock, or never."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows grow together."""

    class MergeCallback(ABC, Generic[W2]):
        """Is told which windows become one."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """These windows become that one."""

    @abstractmethod
    def merge_windows(
        self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]
    ) -> None:
        """Call `callback.merge` for every group of `windows` that become one."""


class GlobalWindows(WindowAssigner[T, GlobalWindow]):
    """All records of a key in one window, which fires when a trigger says so."""

    @staticmethod
    def create() -> GlobalWindows[Any]:
        """The assigner; it has no settings."""
        return GlobalWindows()

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        return (GlobalWindow.get(),)

    def get_default_trigger(self, env: Any) -> Trigger[T, GlobalWindow]:
        return NeverTrigger()

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"
