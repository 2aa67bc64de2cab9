"""What a JobMaster is given to act in: the real driver's, or a simulation's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from penstock.common.clock import Clock
from penstock.common.job_status import JobStatus
from penstock.jobmanager.job import Job

T = TypeVar("T")
R = TypeVar("R")


class Io(Protocol):
    """Runs slow work one after another, off the JobMaster's thread."""

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Call `done` on the JobMaster's thread with the result or the exception of `work`."""
        ...

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call `work` with each of the items, some at a time; to be called from inside of work."""
        ...


class JobMasterEnvironment(Protocol):
    """Everything outside a JobMaster that it may touch."""

    @property
    def clock(self) -> Clock: ...

    @property
    def io(self) -> Io: ...

    def aside(
        self, work: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """As `io.submit`, but nothing waits for `work` and it waits for nothing."""
        ...

    def listened_ms(self) -> int:
        """Up to when, on the monotonic clock, all signs of life of slots have been passed on."""
        ...

    def tell(self, launch: int, slot: int, message: Any) -> None:
        """Send to a slot; in order per slot, lost if the slot is gone."""
        ...

    def launch(self, launch: int, job: Job) -> None:
        """Start the slots of `job`; `JobMaster.launch_ended` is called when they have ended."""
        ...

    def prepare_launch(self, job: Job, held: int, done: Callable[[Exception | None], None]) -> None:
        """Find out whether the slots of `job` could start, were `held` of its own given back.

        If they could, the processes of those that it has not got yet are made ready. `done` is
        called later, on the JobMaster's thread, with the reason if they could not.
        """
        ...

    def cancel_launch(self, launch: int, after_ms: int) -> None:
        """End the slots from outside, unless they are gone by themselves after `after_ms`."""
        ...

    def new_keys(self) -> tuple[bytes, bytes]:
        """A public and a secret key for the channels of one attempt."""
        ...

    def deliver(self, uid: str, subtask: int, values: Iterable[Any]) -> None:
        """Hand a sink's values to the client."""
        ...

    def client_keeps_up(self) -> bool:
        """Whether the client has little left to take."""
        ...

    def chance(self) -> float:
        """A number from 0 up to 1, evenly spread."""
        ...

    def status_changed(self, status: JobStatus) -> None: ...
