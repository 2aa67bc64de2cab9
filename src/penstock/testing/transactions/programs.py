"""Random programs whose records go to topics of a simulated broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.testing.programs import Branch, ExpectedSink, ProgramBuilder
from penstock.testing.transactions.broker import SimulatedBroker
from penstock.testing.transactions.sink import SimulatedTopicSink


class TopicProgramBuilder(ProgramBuilder):
    """Builds a program in which each sink writes to a topic of its own."""

    def __init__(self, broker: SimulatedBroker, timeout_ms: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._broker = broker
        self._timeout_ms = timeout_ms

    def build(self) -> None:
        """A small program: what matters happens at its end."""
        self._widest = min(self._widest, 2)
        branches = [self._source()]
        for _ in range(self._rng.randrange(1, 4)):
            branches = self._grow(branches)
        for branch in branches:
            self._sink(branch)

    def _sink(self, branch: Branch, collecting: bool | None = None) -> None:
        rng, uid = self._rng, f"topic-{len(self.sinks)}"
        parallelism = rng.randrange(1, self._widest + 1)
        sink = SimulatedTopicSink(self._broker, uid, self._timeout_ms)
        branch.stream.sink_to(sink).uid(uid).set_parallelism(parallelism)
        self.lines.append(f"  {uid} x{parallelism}, {len(branch.records)} records expected")
        # A topic has partitions, and no order among them.
        unordered = replace(branch, ordered=False, rising=False)
        self.sinks.append(ExpectedSink(uid, None, unordered))
