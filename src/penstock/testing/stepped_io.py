"""Slow work of a driver, cut into steps: one for each call of the storage, and one for its end.

The work runs in a thread of its own, which is stopped before every call of the storage but the
first. Whoever steps it decides when it goes on, and whether it ever does: other drivers act in
between, and a driver that dies there has done half of its work. Only one thread runs at any time,
so a seed still decides everything.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.testing.faults import FaultyFileSystem, SimulatedCrash


class Steps:
    """A piece of work under way; without a file system it is done in one step."""

    def __init__(self, work: Callable[[], Any], filesystem: FaultyFileSystem | None) -> None:
        self._work = work
        self._filesystem = filesystem
        self._worker: _Worker | None = None
        self._calls = 0
        self._dead = False
        self.due: str | None = None
        """The call that it is stopped before."""
        self.ended = False
        self.result: Any = None
        self.error: BaseException | None = None

    def step(self) -> bool:
        """Go on until the next call of the storage is due; whether the work has ended."""
        if self._filesystem is None:
            self._run()
            return True
        if self._worker is None:
            self._worker = _Worker.take(self._run)
        # Slots act between two steps, and their calls are not stopped.
        self._filesystem.before_call = self._stop
        try:
            self._worker.go_on()
        finally:
            self._filesystem.before_call = None
        if self.ended:
            self._worker.give_back()
        return self.ended

    def kill(self) -> None:
        """The process is no more: the call that is due is never made."""
        self._dead = True
        if self._worker is not None and not self.ended:
            self.step()

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:
            self.error = error
        self.ended = True

    def _stop(self, call: str) -> None:
        assert self._worker is not None
        if not self._worker.is_running_here():
            # Somebody else looks at the files while the simulation runs: a test does.
            return
        self._calls += 1
        if self._calls > 1 and not self._dead:
            self.due = call
            self._worker.hand_back()
            self.due = None
        if self._dead:
            raise SimulatedCrash


class SteppedIo:
    """The slow work of a driver, one piece after another."""

    def __init__(self, filesystem: FaultyFileSystem | None, rng: random.Random) -> None:
        self.queue: deque[tuple[Callable[[], Any], Callable[[Any, Any], None]]] = deque()
        self._filesystem = filesystem
        self._rng = rng
        self.stepped = rng.choice((0.1, 0.3, 1.0))
        """How much of the work is cut into steps: threads take time."""
        self._under_way: Steps | None = None

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        self.queue.append((work, done))

    def step(self) -> None:
        """Make the next step of the first piece; the last one is that its answer arrives."""
        work, done = self.queue[0]
        if self._under_way is None:
            stepped = self._rng.random() < self.stepped
            self._under_way = Steps(work, self._filesystem if stepped else None)
        steps = self._under_way
        if not steps.ended:
            steps.step()
            if steps.error is None or isinstance(steps.error, Exception):
                return
        self._under_way = None
        self.queue.popleft()
        if steps.error is not None and not isinstance(steps.error, Exception):
            raise steps.error
        done(steps.result, steps.error)

    @property
    def due(self) -> str | None:
        """The call that the work under way is stopped before."""
        return self._under_way.due if self._under_way is not None else None

    def kill(self) -> None:
        """The driver is no more."""
        if self._under_way is not None:
            self._under_way.kill()


class _Worker:
    """A thread that runs one piece of work after another, and only when it is told to."""

    idle: list[_Worker] = []
    """Threads are used again: a run has hundreds of pieces of work."""

    def __init__(self) -> None:
        self._turn, self._back = threading.Lock(), threading.Lock()
        self._turn.acquire()
        self._back.acquire()
        self._work: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._loop, name="simulated-io", daemon=True)
        self._thread.start()

    @classmethod
    def take(cls, work: Callable[[], None]) -> _Worker:
        worker = cls.idle.pop() if cls.idle else cls()
        worker._work = work
        return worker

    def is_running_here(self) -> bool:
        return threading.current_thread() is self._thread

    def go_on(self) -> None:
        """Let the thread run until it hands back."""
        self._turn.release()
        self._back.acquire()

    def hand_back(self) -> None:
        """In the thread: stop until it is told to go on."""
        self._back.release()
        self._turn.acquire()

    def give_back(self) -> None:
        self._work = lambda: None
        self.idle.append(self)

    def _loop(self) -> None:
        self._turn.acquire()
        while True:
            self._work()
            self.hand_back()
