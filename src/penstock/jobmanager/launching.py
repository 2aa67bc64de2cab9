"""What the JobManager asks of a cluster: start P slots, tell me when they have ended.

The JobManager knows nothing of Spark. It describes an attempt as a `SlotLaunch`, hands it to a
`SlotLauncher`, and gets a `LaunchHandle` to cancel it with:

    launcher.check_capacity(launch.slots)
    handle = launcher.launch(launch, on_end=lambda error: mailbox.put(("ended", error)))
    ...
    handle.cancel()

`penstock.spark.launcher.SparkLauncher` is the real one; a test passes its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.common.listening import Listening
from penstock.common.shipped_files import ShippedFile


@dataclass(frozen=True)
class SlotLaunch:
    """One attempt of a job, as the cluster sees it: how many slots, and what each one runs."""

    job_id: str
    job_name: str
    attempt: int
    slots: int
    entry: Callable[[int, str, bytes], None]
    """A module-level function, called as `entry(slot_index, host, payload)` in each slot's
    process. `host` is the address under which other slots reach this one. The slot is done when
    it returns; when it raises, the whole launch fails."""
    payload: bytes
    """Handed to `entry` unread."""
    files: tuple[ShippedFile, ...] = ()
    """What must be there before `entry` is called."""
    python: str | None = None
    """The Python that runs `entry`; None: the cluster's."""


class LaunchHandle(Protocol):
    """A launch that is under way."""

    def cancel(self) -> None:
        """End the slots from outside. Returns at once; may be called again.

        Slots see nothing until they are killed a few seconds later, so tell them to stop first.
        `on_end` is called when the cluster has taken note, which may be before the last slot is
        gone.
        """


class SlotLauncher(Protocol):
    """A cluster that runs slots."""

    def check_capacity(self, slots: int, held: int = 0) -> None:
        """Return when `slots` slots can start now, or raise `NotEnoughSlotsError` in seconds.

        `held` slots run now and are given back before.
        """

    def launch(
        self, launch: SlotLaunch, on_end: Callable[[BaseException | None], None]
    ) -> LaunchHandle:
        """Start the slots and return at once.

        `on_end` is called exactly once, from a thread of the launcher: with None when every slot
        returned, else with the error that ended the launch.
        """

    def listening(self) -> Listening:
        """Where this process listens, and how slots reach it."""
