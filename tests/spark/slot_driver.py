"""A driver's side for these tests: launch, wait, look at the processes."""

from __future__ import annotations

import json
import queue
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil
from patience import PATIENCE, until

from penstock.jobmanager.launching import LaunchHandle, SlotLaunch, SlotLauncher


class Launched:
    """One launch whose slots report into `folder` (see `slot_entries`)."""

    def __init__(
        self,
        launcher: SlotLauncher,
        entry: Callable[[int, str, bytes], None],
        folder: Path,
        slots: int = 2,
    ) -> None:
        self._folder = folder
        self._slots = slots
        self._ends: queue.Queue[BaseException | None] = queue.Queue()
        folder.mkdir(parents=True, exist_ok=True)
        launch = SlotLaunch("job", "a job", 1, slots, entry, str(folder).encode())
        self.handle: LaunchHandle = launcher.launch(launch, self._ends.put)

    def reports(self) -> list[dict[str, Any]]:
        """What the slots reported, in the order of slots, once all have."""
        files = [self._folder / f"slot-{slot}" for slot in range(self._slots)]
        until(lambda: all(file.exists() for file in files), "all slots run")
        return [json.loads(file.read_text()) for file in files]

    def pids(self) -> list[int]:
        return [report["pid"] for report in self.reports()]

    def end(self) -> BaseException | None:
        """What `on_end` was called with."""
        return self._ends.get(timeout=PATIENCE)

    def ends_again(self) -> bool:
        return not self._ends.empty()


def gone(pids: Iterable[int]) -> bool:
    return not any(_alive(pid) for pid in pids)


def _alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and waits to be buried does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
