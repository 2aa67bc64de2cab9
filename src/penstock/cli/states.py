"""Which states the functions of a program declare, found out without running it.

A function declares its states in `open`, and before that in `initialize_state`, so these are
called: on a copy of the function, as a slot has it, with a context that has state but no records.
Whatever they raise, or wait for, only means that its states are not known before it runs.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from penstock.common.typeinfo import TypeInformation
from penstock.errors import StateError
from penstock.graph.job_graph import JobGraph
from penstock.graph.operators import BroadcastProcessOperator, FunctionOperator
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.checkpointed import CheckpointedFunction, FunctionInitializationContext
from penstock.runtime.context import OperatorContext, SubtaskInfo
from penstock.runtime.functions import Function
from penstock.runtime.reporting import OperatorReport
from penstock.state.broadcast import KIND as BROADCAST
from penstock.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
)
from penstock.state.hashmap import HashMapBackend
from penstock.state.interfaces import BroadcastState, ListState
from penstock.state.kinds import KeyContext
from penstock.state.operator_state import LIST, UNION, OperatorStateBackend
from penstock.state.schema import PICKLED

_SECONDS = 0.5
"""How long all functions together may take to open."""


@dataclass(frozen=True)
class DeclaredState:
    """One state that a function asked for."""

    name: str
    kind: str
    """As it is stored."""
    type_info: TypeInformation
    """The type of what is stored for a key, or of an element."""


@dataclass(frozen=True)
class DeclaredStates:
    """What the function of one operator asked for."""

    states: tuple[str, ...] = ()
    """Each as `name: kind of type`."""
    mistake: str | None = None
    """Why the operator will fail as soon as it is opened."""
    typed: tuple[DeclaredState, ...] = ()
    """The same, for whoever compares them with saved ones."""


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
    asked = _Asked()
    if isinstance(operator, BroadcastProcessOperator):
        # What it declares of types is for its author: they are stored as they come.
        asked.typed += [DeclaredState(name, BROADCAST, PICKLED) for name in operator.states]
    if not isinstance(operator.function, Function):
        return asked.declared(broadcast) if broadcast else None
    checkpointed = isinstance(operator.function, CheckpointedFunction)
    if type(operator.function).open is Function.open and not checkpointed:
        return asked.declared(broadcast)
    context = _Recording(node, asked)
    try:
        function = cloudpickle.loads(cloudpickle.dumps(operator.function))
        if checkpointed:
            store = _RecordingStore(asked)
            function.initialize_state(FunctionInitializationContext(store, context, False))
        function.open(context)
        function.close()
    except StateError as error:
        return asked.declared(broadcast, error.summary())
    except Exception:
        return None
    return asked.declared(broadcast)


@dataclass
class _Asked:
    """What a function has asked for so far."""

    states: list[str] = field(default_factory=list)
    typed: list[DeclaredState] = field(default_factory=list)

    def note(self, described: str, state: DeclaredState) -> None:
        if described not in self.states:
            self.states.append(described)
            self.typed.append(state)

    def declared(self, others: tuple[str, ...], mistake: str | None = None) -> DeclaredStates:
        return DeclaredStates((*others, *self.states), mistake, tuple(self.typed))


class _Recording(OperatorContext):
    """A context that notes what it is asked for."""

    def __init__(self, node: StreamNode, asked: _Asked) -> None:
        backend = None
        if node.operator.keyed:
            backend = HashMapBackend(KeyContext(), node.max_parallelism)
        info = SubtaskInfo("preview", 1, 0, node.parallelism, node.max_parallelism)
        super().__init__(node.name, info, backend, OperatorReport())
        self._asked = asked

    def _noted(self, state_descriptor: StateDescriptor) -> Any:
        state = self._state(state_descriptor)
        name, kind = state_descriptor.name, state_descriptor.stored_kind()
        self._asked.note(
            f"{name}: {state_descriptor.describe()}",
            DeclaredState(name, kind, state_descriptor.stored_type()),
        )
        return state

    get_state = _noted
    get_list_state = _noted
    get_map_state = _noted
    get_reducing_state = _noted
    get_aggregating_state = _noted


class _RecordingStore(OperatorStateBackend):
    """A store of operator state that notes what it is asked for."""

    def __init__(self, asked: _Asked) -> None:
        super().__init__()
        self._asked = asked

    def _noted(self, descriptor: StateDescriptor, kind: str) -> None:
        declared = DeclaredState(descriptor.name, kind, descriptor.type_info)
        self._asked.note(f"{descriptor.name}: {kind} of {descriptor.type_info}", declared)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        self._noted(state_descriptor, LIST)
        return super().get_list_state(state_descriptor)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        self._noted(state_descriptor, UNION)
        return super().get_union_list_state(state_descriptor)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        self._noted(state_descriptor, BROADCAST)
        return super().get_broadcast_state(state_descriptor)
