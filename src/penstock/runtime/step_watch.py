"""Ends steps that take too long, from outside.

How many records a step may take follows from how long the last ones took. When a function becomes
slow, a slice that was chosen for its old speed would keep the slot for minutes: no barrier, timer,
message or other subtask would have its turn. So another thread looks at the slot at even intervals,
and where it finds the step that it found before, it ends the slice under way: the step ends with
the record that it is at. Records pay nothing for this, and a step pays two assignments.
"""

from __future__ import annotations

import threading

from penstock.runtime.slice import Slice

LOOK_MS = 50
"""How often the thread looks: a step that lasts longer is ended, and few others are disturbed."""


class StepWatch:
    """What the thread sees of a slot's loop."""

    def __init__(self) -> None:
        self._step = 0
        self._slice: Slice | None = None
        self._seen = 0

    def begin(self, part: Slice) -> None:
        """A step begins with `part`, or goes on with it."""
        self._step += 1
        self._slice = part

    def end(self) -> None:
        """The step is over."""
        self._slice = None

    def look(self) -> None:
        """End the slice of a step that was there the last time too. Called by the thread.

        The loop does not wait for this, so a step may begin meanwhile and be ended at once: it does
        less than it could, and nothing else.
        """
        step, part = self._step, self._slice
        if part is not None and step == self._seen:
            part.end()
        self._seen = step


class StepWatcher:
    """The thread."""

    def __init__(self, watch: StepWatch) -> None:
        self._watch = watch
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(LOOK_MS / 1000):
            self._watch.look()

    def close(self) -> None:
        self._over.set()
        self._thread.join()
