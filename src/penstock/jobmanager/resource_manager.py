"""The ResourceManager: slots for jobs, from whatever cluster there is."""

from __future__ import annotations

import threading
from collections.abc import Callable

from penstock.jobmanager.job import Job
from penstock.jobmanager.launching import LaunchHandle, SlotLaunch, SlotLauncher

OnEnd = Callable[["BaseException | None"], None]


class ResourceManager:
    """Starts slots through a launcher, without making its callers wait."""

    def __init__(self, launcher: SlotLauncher, entry: Callable[[int, str, bytes], None]) -> None:
        self._launcher = launcher
        self._entry = entry

    def host(self) -> str:
        """The address of this driver that slots can reach."""
        return self._launcher.host()

    def check_capacity(self, slots: int, held: int) -> None:
        """NotEnoughSlotsError unless `slots` could start once `held` are given back; slow."""
        self._launcher.check_capacity(slots, held)

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
