"""Values that come back to the program: collected ones to iterate over, printed ones to print."""

from __future__ import annotations

import pickle
import queue
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.datastream.printing import Printer

if TYPE_CHECKING:
    from penstock.common.job_client import JobClient
    from penstock.datastream.job_client import RunningJob

_END = object()


class ClientResults:
    """Takes what sinks send to the client."""

    def __init__(
        self,
        collecting_uid: str | None = None,
        stderr_uids: frozenset[str] = frozenset(),
        caching_uids: frozenset[str] = frozenset(),
    ) -> None:
        self._collecting = collecting_uid
        self._stderr_uids = stderr_uids
        self.kept: dict[str, list[bytes]] = {uid: [] for uid in caching_uids}
        """The records of streams that are to be cached, by the uid of the sink, pickled."""
        self.collected: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._taken: Callable[[], None] = lambda: None
        self._printer = Printer(lambda: self._taken())

    def on_taken(self, taken: Callable[[], None]) -> None:
        """Have `taken` called, from any thread, whenever something has been printed."""
        self._taken = taken
        taken()

    def deliver(self, uid: str, subtask: int, values: Iterable[Any]) -> None:
        if uid == self._collecting:
            self.collected.put(values)
        elif uid in self.kept:
            self.kept[uid].extend(values)
        else:
            stream = sys.stderr if uid in self._stderr_uids else sys.stdout
            self._printer.put(stream, "".join(f"{line}\n" for line in values))

    def backlog(self) -> int:
        return self.collected.qsize() + self._printer.backlog()

    def flush(self, timeout_s: float | None = None) -> None:
        self._printer.flush(timeout_s)

    def end(self) -> None:
        self.collected.put(_END)


class CloseableIterator:
    """The records of a collected stream, as they come. Closing it cancels the job."""

    def __init__(self, results: ClientResults, job: RunningJob) -> None:
        self._results = results
        self._job = job
        self.job_client: JobClient = job
        """The job that makes the records."""
        self._values: Iterator[Any] = iter(())
        self._ended = False
        job.on_end(results.end)

    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Any:
        while True:
            for payload in self._values:
                return pickle.loads(payload)
            if self._ended:
                raise StopIteration
            try:
                batch = self._results.collected.get()
            except KeyboardInterrupt:
                self.close()
                raise
            self._job.client_moved()
            if batch is _END:
                self._ended = True
                # A failed job raises here, after everything that was final has been seen.
                self._job.result()
                raise StopIteration
            self._values = iter(batch)

    def next(self) -> Any:
        """The next record; StopIteration when there is none any more."""
        return next(self)

    def close(self) -> None:
        """Stop the job if it still runs."""
        if self._ended:
            return
        self._ended = True
        self._values = iter(())
        self._job.cancel().result()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
