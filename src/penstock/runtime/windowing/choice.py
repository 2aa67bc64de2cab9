"""Which operator runs a window operation: the fastest that can."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import ProgramError
from penstock.runtime.windowing.assigners import MergingWindowAssigner, WindowStagger
from penstock.runtime.windowing.contents import EvictableContents
from penstock.runtime.windowing.fixed_windows import (
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.runtime.windowing.operator import WindowBase, WindowProcess, WindowSpec
from penstock.runtime.windowing.session_process import SessionProcess
from penstock.runtime.windowing.sessions import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
)
from penstock.runtime.windowing.slices import SliceProcess
from penstock.runtime.windowing.triggers import EventTimeTrigger
from penstock.runtime.windowing.tumbling import TumblingProcess


def window_operator(spec: WindowSpec) -> WindowBase:
    """The operator for `spec`; ProgramError where its parts do not fit together."""
    merging = isinstance(spec.assigner, MergingWindowAssigner)
    if merging and not spec.trigger.can_merge():
        raise ProgramError(
            f"the trigger {type(spec.trigger).__name__} cannot be used with "
            f"{type(spec.assigner).__name__}, whose windows merge: its can_merge() says no"
        )
    if spec.allowed_lateness and not spec.assigner.is_event_time():
        raise ProgramError(
            f"allowed_lateness() has no meaning for {type(spec.assigner).__name__}, whose windows "
            "do not end by event time"
        )
    if spec.evictor is not None:
        spec = replace(spec, contents=EvictableContents(spec.contents))
    return _fast(spec) or WindowProcess(spec)


def _fast(spec: WindowSpec) -> WindowBase | None:
    # Exactly these types: a subclass may do something else.
    if type(spec.trigger) is not EventTimeTrigger:
        return None
    if spec.evictor is not None or spec.allowed_lateness:
        return None
    assigner = spec.assigner
    kind = type(assigner)
    if kind is TumblingEventTimeWindows:
        aligned = assigner.stagger is WindowStagger.ALIGNED  # type: ignore[attr-defined]
        return TumblingProcess(spec) if aligned else None
    if kind is SlidingEventTimeWindows:
        if assigner.size == assigner.slide:  # type: ignore[attr-defined]
            return TumblingProcess(spec)
        overlap = assigner.slide < assigner.size  # type: ignore[attr-defined]
        return SliceProcess(spec) if overlap and spec.contents.associative else None
    if kind in (EventTimeSessionWindows, DynamicEventTimeSessionWindows):
        return SessionProcess(spec)
    return None
