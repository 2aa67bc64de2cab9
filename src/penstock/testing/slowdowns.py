"""Slowdowns: functions that were fast become slow in the middle of whatever is under way.

    SlowdownScenario(4711).run().verify()

The program, its settings and its faults are those of `Scenario(seed)`. Its functions change their
speed, so that steps are ended between any two records. The result is the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.graph.operators import FilterOperator, FunctionOperator, MapOperator
from penstock.graph.stream_graph import StreamNode
from penstock.jobmanager.job import Job
from penstock.testing.scenarios import Scenario
from penstock.testing.speed import spend

_SLOW_MS = (1, 20, 60, 300)


class SlowdownScenario(Scenario):
    """A scenario whose functions change their speed; every other seed is unaligned."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, unaligned=True if seed % 2 else None)

    def _job(self, *args: Any, **kwargs: Any) -> Job:
        job = super()._job(*args, **kwargs)
        graph = job.graph
        vertices = tuple(
            replace(vertex, nodes=tuple(self._slowed(node) for node in vertex.nodes))
            for vertex in graph.job.vertices
        )
        # Larger steps than those of most seeds: there is a middle to end them in.
        settings = replace(job.settings, step_records=64)
        graph = replace(graph, job=replace(graph.job, vertices=vertices))
        return replace(job, graph=graph, settings=settings)

    def _slowed(self, node: StreamNode) -> StreamNode:
        """The node with something in it that is called for every record and takes its time."""
        operator, chance = node.operator, f"{self.seed}/{node.id}/speed"
        if isinstance(operator, FunctionOperator) and operator.key_selector is not None:
            slowed = Changing(operator.key_selector, chance)
            return replace(node, operator=replace(operator, key_selector=slowed))
        if isinstance(operator, MapOperator | FilterOperator) and operator.method is None:
            return replace(
                node, operator=replace(operator, function=Changing(operator.function, chance))
            )
        return node


class Changing:
    """A function that is fast for a while, then slow for a while."""

    def __init__(self, function: Callable[[Any], Any], chance: str) -> None:
        self._function = function
        self._rng = random.Random(chance)
        self._slow_ms = 0
        self._left = self._rng.randrange(1, 60)

    def __call__(self, value: Any) -> Any:
        if self._slow_ms:
            spend(self._slow_ms)
        self._left -= 1
        if self._left == 0:
            self._slow_ms = 0 if self._slow_ms else self._rng.choice(_SLOW_MS)
            self._left = self._rng.randrange(1, 20 if self._slow_ms else 60)
        return self._function(value)
