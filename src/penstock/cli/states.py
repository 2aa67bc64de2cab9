"""Which states the functions of a program declare, found out without running it.

A function declares its states in `open`, so that is what is called: on a copy of the function, as
a slot has it, with a context that has state but no records. Whatever `open` raises, or waits for,
only means that its states are not known before it runs.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import cloudpickle

from penstock.errors import StateError
from penstock.graph.job_graph import JobGraph
from penstock.graph.operators import BroadcastProcessOperator, FunctionOperator
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.context import OperatorContext, SubtaskInfo
from penstock.runtime.functions import Function
from penstock.runtime.reporting import OperatorReport
from penstock.state.descriptors import StateDescriptor
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext

_SECONDS = 0.5
"""How long all functions together may take to open."""


@dataclass(frozen=True)
class DeclaredStates:
    """What the function of one operator asked for."""

    states: tuple[str, ...] = ()
    """Each as `name: kind of type`."""
    mistake: str | None = None
    """Why the operator will fail as soon as it is opened."""


def declared_states(graph: JobGraph) -> dict[int, DeclaredStates]:
    """What is known, by the number of the operator; an operator that is missing is not known."""
    found: dict[int, DeclaredStates] = {}
    nodes = [node for vertex in graph.vertices for node in vertex.nodes]

    def look() -> None:
        for node in nodes:
            declared = _declared_by(node)
            if declared is not None:
                found[node.id] = declared

    # A daemon: an `open` that never returns must not keep the command from ending.
    thread = threading.Thread(target=look, name="penstock-states", daemon=True)
    thread.start()
    thread.join(_SECONDS)
    return dict(found)


def _declared_by(node: StreamNode) -> DeclaredStates | None:
    operator = node.operator
    if not isinstance(operator, FunctionOperator):
        return None
    broadcast: tuple[str, ...] = ()
    if isinstance(operator, BroadcastProcessOperator):
        broadcast = tuple(f"{name}: broadcast" for name in operator.states)
    if not isinstance(operator.function, Function):
        return DeclaredStates(broadcast) if broadcast else None
    if type(operator.function).open is Function.open:
        return DeclaredStates(broadcast)
    context = _Recording(node)
    try:
        function = cloudpickle.loads(cloudpickle.dumps(operator.function))
        function.open(context)
        function.close()
    except StateError as error:
        return DeclaredStates((*broadcast, *context.states), error.summary())
    except Exception:
        return None
    return DeclaredStates((*broadcast, *context.states))


class _Recording(OperatorContext):
    """A context that notes what it is asked for."""

    def __init__(self, node: StreamNode) -> None:
        backend = None
        if node.operator.keyed:
            backend = HashMapBackend(KeyContext(), node.max_parallelism)
        info = SubtaskInfo("preview", 1, 0, node.parallelism, node.max_parallelism)
        super().__init__(node.name, info, backend, OperatorReport())
        self.states: list[str] = []

    def _noted(self, state_descriptor: StateDescriptor) -> Any:
        state = self._state(state_descriptor)
        noted = f"{state_descriptor.name}: {state_descriptor.describe()}"
        if noted not in self.states:
            self.states.append(noted)
        return state

    get_state = _noted
    get_list_state = _noted
    get_map_state = _noted
    get_reducing_state = _noted
    get_aggregating_state = _noted
