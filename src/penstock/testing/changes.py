"""Changes: a job is stopped with a savepoint, and goes on as another version of its program.

    ChangeScenario(4711).run().verify()

As `StopScenario`, but with every stop the program changes too: operators that change nothing are
put in or taken out again, and the state moves to the other state backend. Operators keep their
uids, so the next version goes on where the last one stopped, and the results are those of a program
that was never changed.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.common.settings import StateSettings
from penstock.datastream.program import Program, Upstream
from penstock.graph.operators import MapOperator
from penstock.jobmanager.job import Job
from penstock.testing.faults import FaultRates
from penstock.testing.stops import StopScenario

_ROOM = 1_000
"""Between the numbers of two operators, for those that are put in between."""


class ChangeScenario(StopScenario):
    """A scenario in which the program changes while it is stopped."""

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        super().__init__(seed, rates)
        self._changes = self.choices("changes")
        self._put_in: list[int] = []
        self.versions: list[int] = []
        """How many operators were put in, in each version after the first."""
        self._prepare(self.program.program)

    def _prepare(self, program: Program) -> None:
        """Pin the uids, as an author does who means to change a program, and make room."""
        uids = {
            node.id: node.uid for vertex in self.job.graph.job.vertices for node in vertex.nodes
        }
        nodes = {
            number * _ROOM: replace(node, id=number * _ROOM, uid=uids[number])
            for number, node in program.nodes.items()
        }
        inputs = {
            number * _ROOM: tuple(replace(each, node=each.node * _ROOM) for each in upstreams)
            for number, upstreams in program.inputs.items()
        }
        program.nodes.clear()
        program.nodes.update(nodes)
        program.inputs.clear()
        program.inputs.update(inputs)

    def next_job(self) -> Job:
        program, rng = self.program.program, self._changes
        while self._put_in and rng.random() < 0.5:
            self._take_out(program, self._put_in.pop())
        for _ in range(rng.randrange(3)):
            self._insert(
                program, rng.choice([node for node in program.inputs if node % _ROOM == 0])
            )
        self.versions.append(len(self._put_in))
        job = super().next_job()
        state = self.simulation.job.settings.state
        other = StateSettings("rocksdb" if state.backend == "hashmap" else "hashmap")
        return replace(job, settings=replace(job.settings, state=other))

    def _insert(self, program: Program, below: int) -> None:
        """Put an operator that changes nothing before one of the inputs of an operator."""
        upstreams = program.inputs[below]
        if not upstreams:
            return
        chosen = self._changes.randrange(len(upstreams))
        before = upstreams[chosen]
        number = 1 + max([before.node, below - _ROOM, *(n for n in self._put_in if n < below)])
        same = replace(
            program.nodes[before.node],
            id=number,
            name="Same",
            operator=MapOperator(_same, None),
            uid=f"same-{number}",
            output_type=None,
            side_types=(),
        )
        program.add(same, (Upstream(before.node, None, before.tag),))
        after = replace(before, node=number, tag=None)
        program.inputs[below] = (*upstreams[:chosen], after, *upstreams[chosen + 1 :])
        self._put_in.append(number)

    def _take_out(self, program: Program, number: int) -> None:
        """Those that were put in last go first, so that each leaves its place as it found it."""
        [before] = program.inputs.pop(number)
        del program.nodes[number]
        for below, upstreams in program.inputs.items():
            program.inputs[below] = tuple(
                replace(each, node=before.node, tag=before.tag) if each.node == number else each
                for each in upstreams
            )


def _same(value: object) -> object:
    return value
