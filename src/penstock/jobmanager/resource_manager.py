"""The ResourceManager: slots for jobs, from whatever cluster there is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from penstock.common.listening import Listening
from penstock.jobmanager.job import Job
from penstock.jobmanager.launching import LaunchHandle, SlotLaunch, SlotLauncher

log = logging.getLogger(__name__)

SlotEntry = Callable[[int, str, bytes], None]
OnEnd = Callable[["BaseException | None"], None]


_WARM_UP_SECONDS = 20.0
"""What takes longer is given up."""


class ResourceManager:
    """Starts slots through a launcher, without making its callers wait."""

    def __init__(self, launcher: SlotLauncher, entry: SlotEntry, warm_up: SlotEntry) -> None:
        """`entry` is what a slot runs; `warm_up`, given its program, prepares a process for it."""
        self._launcher = launcher
        self._entry = entry
        self._warm_up = warm_up

    def listening(self) -> Listening:
        """Where this driver listens, and how slots reach it."""
        return self._launcher.listening()

    def prepare_slots(self, job: Job, held: int, program: bytes) -> None:
        """NotEnoughSlotsError unless the job's slots could start once `held` are given back; slow.

        For those beyond the ones that are given back, processes are warmed up: a cluster keeps
        them for the launch to come.
        """
        slots = job.graph.slots
        self._launcher.check_capacity(slots, held)
        if slots > held:
            self._warm(
                SlotLaunch(
                    job.id, job.name, 0, slots - held, self._warm_up, program, job.files, job.python
                )
            )

    def _warm(self, launch: SlotLaunch) -> None:
        ended = threading.Event()

        def on_end(error: BaseException | None) -> None:
            if error is not None:
                # The launch itself will say so, if that is how it goes.
                log.debug("processes could not be warmed up: %s", error)
            ended.set()

        handle = self._launcher.launch(launch, on_end)
        if not ended.wait(_WARM_UP_SECONDS):
            # Its cores must be free for the launch.
            handle.cancel()
            ended.wait(_WARM_UP_SECONDS)

    def start_slots(self, job: Job, launch: int, payload: bytes, on_end: OnEnd) -> PendingLaunch:
        """Check for room and launch, in a thread of its own; `on_end` also hears of refusals."""
        description = SlotLaunch(
            job.id, job.name, launch, job.graph.slots, self._entry, payload, job.files, job.python
        )
        pending = PendingLaunch(self._launcher, description, on_end)
        pending.start()
        return pending


class PendingLaunch:
    """A launch that may not have begun yet."""

    def __init__(self, launcher: SlotLauncher, launch: SlotLaunch, on_end: OnEnd) -> None:
        self._launcher = launcher
        self._launch = launch
        self._on_end = on_end
        self._lock = threading.Lock()
        self._cancelled = False
        self._handle: LaunchHandle | None = None

    def start(self) -> None:
        threading.Thread(target=self._run, name="penstock-launch", daemon=True).start()

    def _run(self) -> None:
        try:
            self._launcher.check_capacity(self._launch.slots)
            with self._lock:
                if not self._cancelled:
                    self._handle = self._launcher.launch(self._launch, self._on_end)
                    return
        except Exception as error:
            self._on_end(error)
            return
        self._on_end(None)

    def cancel(self) -> None:
        """End the slots, or never start them."""
        with self._lock:
            self._cancelled = True
            handle = self._handle
        if handle is not None:
            handle.cancel()
