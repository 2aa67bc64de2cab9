"""What functions, readers and writers report beside their records: metrics and accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import cloudpickle

from penstock.common.accumulators import Accumulator
from penstock.common.metrics import MetricReading
from penstock.errors import ProgramError
from penstock.metrics import MetricGroup
from penstock.network.messages import SubtaskReport

if TYPE_CHECKING:
    from penstock.runtime.operators import RuntimeOperator


class OperatorReport:
    """What the function of one operator has registered, in one subtask and attempt."""

    def __init__(self) -> None:
        self.metrics = MetricGroup()
        self.accumulators: dict[str, Accumulator[Any, Any]] = {}
        self.tags: set[str] = set()
        """The side outputs that the function has sent records to."""

    def __bool__(self) -> bool:
        return self.metrics.has_metrics() or bool(self.accumulators) or bool(self.tags)

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        if not isinstance(accumulator, Accumulator):
            raise ProgramError(
                f"add_accumulator({name!r}) needs an Accumulator, not a "
                f"{type(accumulator).__name__}"
            )
        if name in self.accumulators:
            raise ProgramError(f"accumulator {name!r} was added already; use get_accumulator()")
        self.accumulators[name] = accumulator

    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        if name not in self.accumulators:
            raise ProgramError(f"accumulator {name!r} was not added; call add_accumulator() first")
        return self.accumulators[name]


def report_of(operators: Sequence[RuntimeOperator], now_ms: int) -> SubtaskReport | None:
    """A picture of all that was registered; None if nothing was. Call it between two records."""
    reporting = [operator for operator in operators if operator.report]
    if not reporting:
        return None
    readings = tuple(
        MetricReading(operator.node.name, operator.node.uid, operator.info.subtask, name, value)
        for operator in reporting
        for name, value in operator.report.metrics.read(now_ms)
    )
    accumulators = [o.report.accumulators for o in reporting if o.report.accumulators]
    # Pickled here, where they do not change; by value, because users write their own.
    pickled = cloudpickle.dumps(accumulators) if accumulators else None
    tags = {o.node.uid: tuple(sorted(o.report.tags)) for o in reporting if o.report.tags}
    return SubtaskReport(readings, pickled, tags)
