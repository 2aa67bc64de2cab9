"""Rescaling: every driver that takes the job over lays the same program out differently.

    RescaleScenario(4711).run().verify()

As `TakeoverScenario`, but the next driver runs the operators with other parallelisms and chains
them or not. Whatever the checkpoint was made by, the files hold every record once.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.graph.execution_graph import build_execution_graph
from penstock.graph.job_graph import Chains, build_job_graph
from penstock.graph.partitioning import BroadcastPartitioning, ForwardPartitioning
from penstock.jobmanager.job import Job
from penstock.testing.event_programs import EVENTS
from penstock.testing.faults import FaultRates
from penstock.testing.stages import HoldBack
from penstock.testing.takeovers import TakeoverScenario

WIDEST = 5


class RescaleScenario(TakeoverScenario):
    """A scenario in which the layout changes from driver to driver."""

    one_layout = False

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        super().__init__(seed, rates)
        self._layout = self.choices("layout")
        # Keys move between subtasks, so of the order only that within a driver is left.
        self.program.sinks = [
            replace(sink, branch=replace(sink.branch, ordered=False, rising=False))
            for sink in self.program.sinks
        ]
        self.layouts = [self._parallelisms()]
        """The parallelism of every operator by id, of each driver."""

    def next_job(self) -> Job:
        program, rng = self.program.program, self._layout
        fixed = self._fixed()
        chosen: dict[int, int] = {}
        for node in program.nodes.values():
            group = self._forward_group(node.id)
            if group not in chosen:
                widest = min(WIDEST, node.max_parallelism)
                chosen[group] = rng.randrange(1, widest + 1)
            if group not in fixed:
                program.change(node.id, parallelism=chosen[group])
        self.layouts.append(self._parallelisms())
        graph = build_job_graph(program.stream_graph(), self.job.name, Chains(rng.random() < 0.7))
        return replace(self.job, graph=build_execution_graph(graph))

    def _parallelisms(self) -> dict[int, int]:
        return {node.id: node.parallelism for node in self.program.program.nodes.values()}

    def _forward_group(self, node: int) -> int:
        """The first of the operators that must have the same parallelism as this one."""
        for upstream in self.program.program.inputs[node]:
            if isinstance(upstream.partitioning, ForwardPartitioning):
                return self._forward_group(upstream.node)
        return node

    def _fixed(self) -> set[int]:
        """The groups whose parallelism shows in the results.

        Each subtask gets a copy of what is broadcast. `Follow` needs its input in order, which only
        single subtasks before it keep, and `HoldBack` marks what it holds with its subtask. The
        source of an `EventCase` has one reader.
        """
        program = self.program.program
        fixed = {
            node
            for node, inputs in program.inputs.items()
            if any(isinstance(upstream.partitioning, BroadcastPartitioning) for upstream in inputs)
        }
        for node in program.nodes.values():
            if isinstance(getattr(node.operator, "function", None), HoldBack):
                fixed.add(node.id)
            if node.name.endswith(EVENTS):
                fixed.add(node.id)
        if any("Follow(" in line for line in self.program.lines):
            fixed |= {node.id for node in program.nodes.values() if node.parallelism == 1}
        return {self._forward_group(node) for node in fixed}
