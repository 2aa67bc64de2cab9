"""The slots of one attempt in one thread, driven by hand: no faults, no seed, no surprises."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.graph.execution_graph import ExecutionGraph, SubtaskId
from penstock.graph.pickling import pickle_graph
from penstock.network.frames import Frame, decode_frame, encode_frame
from penstock.network.messages import Deploy
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.slot import Slot
from penstock.runtime.subtask import Subtask
from penstock.testing.simulated import SimulatedIo

_MOST_TURNS = 1_000_000


class ManualClock:
    """Time that passes when a test says so."""

    def __init__(self, now_ms: int) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now

    def monotonic_ns(self) -> int:
        return self.now * 1_000_000

    def monotonic_ms(self) -> int:
        return self.now


class _Wires:
    """A slot's end of the network: frames are encoded and arrive at once."""

    def __init__(self, inboxes: list[deque[list[bytes]]], slot: int) -> None:
        self._inboxes = inboxes
        self._slot = slot

    def send(self, slot: int, frame: Frame) -> None:
        self._inboxes[slot].append(encode_frame(frame))

    def receive(self) -> list[Frame]:
        inbox = self._inboxes[self._slot]
        frames = [decode_frame(parts) for parts in inbox]
        inbox.clear()
        return frames


class LocalSlots:
    """Every slot of `graph`, its functions open. What the slots say goes to `heard`."""

    def __init__(
        self,
        graph: ExecutionGraph,
        deploy: Deploy,
        clock: ManualClock,
        heard: Callable[[Any], None],
    ) -> None:
        self.graph = graph
        self._heard = heard
        self._told: deque[Any] = deque()
        self._io = SimulatedIo()
        inboxes: list[deque[list[bytes]]] = [deque() for _ in range(graph.slots)]
        program = pickle_graph(graph)
        self._slots: list[Slot] = []
        try:
            for slot in range(graph.slots):
                environment = SlotEnvironment(
                    clock, _Wires(inboxes, slot), self._io, self._told.append, lambda: None
                )
                # Each slot has functions of its own, as in processes of their own.
                own = pickle.loads(program)
                made = Slot(own, "harness", slot, deploy, environment)
                self._slots.append(made)
                made.open()
        except BaseException:
            self.close()
            raise

    def subtasks(self) -> list[Subtask]:
        return [task for slot in self._slots for task in slot.subtasks.values()]

    def tell_all(self, message: Any) -> None:
        for slot in self._slots:
            slot.handle(message)

    def tell_subtask(self, subtask: SubtaskId, message: Any) -> None:
        self._slots[self.graph.slot_of(subtask)].handle(message)

    def run(self) -> None:
        """Turn until nothing moves."""
        for _ in range(_MOST_TURNS):
            moved = [slot.turn() for slot in self._slots]
            worked, spoke = bool(self._io.queue), bool(self._told)
            while self._io.queue:
                self._io.run_one()
            while self._told:
                self._heard(self._told.popleft())
            if not (any(moved) or worked or spoke):
                return
        raise AssertionError("the slots never come to rest: do timers set timers that are due?")

    def next_wakeup_ms(self) -> int | None:
        """When the clock alone makes a slot ready."""
        times = [slot.next_wakeup_ms() for slot in self._slots]
        return min((time for time in times if time is not None), default=None)

    def close(self) -> list[BaseException]:
        return [error for slot in self._slots for error in slot.close()]
