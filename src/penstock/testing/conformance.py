"""What every connector must hold: checks that anyone's source or sink can be put through.

A transactional sink is driven as the engine drives it, without the engine, and looked at from
outside by a function that returns what readers see::

    def test_my_sink():
        check_transactional_sink(lambda: MySink(address), visible, records=["a", "b", "c"])

A bounded source is read to its end again and again, started anew from its snapshots in between::

    def test_my_source():
        check_bounded_source(MySource(address))

Each raises `ConformanceError`, which says what does not hold.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle

from penstock.common import plain
from penstock.common.clock import SystemClock
from penstock.common.plain import Plain
from penstock.connectors.sink import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from penstock.connectors.source import (
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    splits_for,
)

_WAIT_SECONDS = 30.0
_JOB, _UID = "conformance", "sink"


class ConformanceError(AssertionError):
    """A connector does not hold what it must."""


# --- sinks ------------------------------------------------------------------------------------


def check_transactional_sink(
    make_sink: Callable[[], Sink],
    visible: Callable[[], Sequence[Any]],
    records: Sequence[Any],
    shown: Callable[[Any], Any] = lambda record: record,
) -> None:
    """Put a sink with a committer through prepare, commit, commit again, crash and abort.

    `visible` returns what readers of the system see, which is nothing at the beginning; a record is
    seen as `shown(record)`. At least three different `records` are needed.
    """
    if len(records) < 3:
        raise ValueError("three records are needed")
    check = _SinkCheck(make_sink(), visible, shown)
    first, second, third = records[:3]
    check.prepared_is_invisible_and_committed_once(first)
    check.another_process_commits(second)
    check.others_are_aborted(third, first)
    check.nothing_written_is_nothing_prepared()


class _SinkCheck:
    def __init__(
        self, sink: Sink, visible: Callable[[], Sequence[Any]], shown: Callable[[Any], Any]
    ) -> None:
        self._sink = sink
        self._visible = visible
        self._shown = shown
        self._expected: Counter[Any] = Counter()
        self._attempt = 0

    def prepared_is_invisible_and_committed_once(self, record: Any) -> None:
        committer, writer = self._begin()
        committables = self._prepared(writer, record)
        self._sees("after prepare_commit and before commit, only what was committed before")
        committer.commit(committables)
        self._now_visible(record)
        self._sees("what was committed")
        committer.commit(committables)
        self._sees("no change after a second commit of the same")
        self._end(committer, writer)

    def another_process_commits(self, record: Any) -> None:
        committer, writer = self._begin()
        committables = self._prepared(writer, record)
        self._end(committer, writer)
        commit_in_another_process(self._sink, committables)
        self._now_visible(record)
        self._sees("what another process committed after the writer was closed")
        commit_in_another_process(self._sink, committables)
        self._sees("no change after another process committed the same again")

    def others_are_aborted(self, kept: Any, aborted: Any) -> None:
        committer, writer = self._begin()
        keep = self._prepared(writer, kept)
        self._prepared(writer, aborted)
        self._write(writer, aborted)
        committer.abort_others(keep)
        self._sees("nothing new after abort_others")
        committer.commit(keep)
        self._now_visible(kept)
        self._sees("what abort_others was told to keep, and nothing that it was not")
        committer.abort_others([])
        committer.commit(keep)
        self._sees("no change after abort_others and a second commit")
        try:
            late = self._prepared(writer, aborted)
        except Exception:
            late = []  # cut off, as it may be
        self._end(committer, writer)
        after, fresh = self._begin()
        self._sees(f"nothing of a writer that came too late (it prepared {late})")
        self._end(after, fresh)

    def nothing_written_is_nothing_prepared(self) -> None:
        committer, writer = self._begin()
        committables = writer.prepare_commit()()
        committer.commit(committables)
        self._sees("no change after a commit of nothing")
        self._end(committer, writer)

    # --- steps --------------------------------------------------------------------------------

    def _begin(self) -> tuple[Committer, SinkWriter]:
        """As an attempt begins: the committer clears up, then the writer opens."""
        committer = _committer(self._sink)
        committer.abort_others([])
        self._attempt += 1
        writer = self._sink.create_writer(
            WriterContext(
                _JOB, _UID, self._attempt, 0, 1, SystemClock(), lambda values, wait: None, bool
            )
        )
        writer.open()
        return committer, writer

    def _end(self, committer: Committer, writer: SinkWriter) -> None:
        writer.close()
        committer.close()

    def _write(self, writer: SinkWriter, record: Any) -> None:
        _wait_for("room in the writer", writer.has_room)
        writer.write(record)

    def _prepared(self, writer: SinkWriter, record: Any) -> list[Plain]:
        self._write(writer, record)
        writer.flush()
        committables = writer.prepare_commit()()
        if not committables:
            raise ConformanceError("a record was written and prepare_commit gives no committable")
        # As it comes back from a checkpoint.
        return [plain.decode(plain.encode(value, "a committable")) for value in committables]

    def _now_visible(self, record: Any) -> None:
        self._expected[self._shown(record)] += 1

    def _sees(self, what: str) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while (seen := Counter(self._visible())) != self._expected:
            # Too little may be on its way; too much never goes away.
            if seen - self._expected or time.monotonic() > deadline:
                raise ConformanceError(
                    f"readers should see {what}: {dict(self._expected)}, and see {dict(seen)}"
                )
            time.sleep(0.05)


def commit_in_another_process(sink: Sink, committables: list[Plain]) -> None:
    """Commit as the next driver does: in a new Python that knows the sink and the committables."""
    program = (
        "import sys, cloudpickle\n"
        "path, sink, committables = cloudpickle.load(sys.stdin.buffer)\n"
        "sys.path[:] = path\n"
        "import pickle\n"
        "from penstock.testing.conformance import _committer\n"
        "committer = _committer(pickle.loads(sink))\n"
        "committer.commit(committables)\n"
        "committer.close()\n"
    )
    payload = cloudpickle.dumps((sys.path, cloudpickle.dumps(sink), committables))
    done = subprocess.run(
        [sys.executable, "-c", program], input=payload, capture_output=True, check=False
    )
    if done.returncode:
        words = done.stderr.decode(errors="replace")
        raise ConformanceError(f"another process cannot commit: {words}")


def _committer(sink: Sink) -> Committer:
    committer = sink.create_committer(CommitterContext(_JOB, _UID))
    if committer is None:
        raise ConformanceError("the sink has no committer: it does not write in transactions")
    return committer


# --- sources ----------------------------------------------------------------------------------


def check_bounded_source(source: Source, limit: int = 7, ordered: bool = True) -> list[Any]:
    """Read a source to its end, whole and with restarts: the same records, none twice.

    Restarts happen after one poll, after two, and so on. `ordered`: one reader returns its records
    in the same order each time. Returns the records.
    """
    whole = _Reading(source, None, []).to_end(limit)
    for polls in (1, 2, 3):
        pieces = _with_restarts(source, limit, polls)
        same = (
            pieces == whole if ordered else Counter(map(repr, pieces)) == Counter(map(repr, whole))
        )
        if not same:
            raise ConformanceError(
                f"restored after every {polls} polls, the source gives {len(pieces)} records, "
                f"{_difference(pieces, whole)}, where it gives {len(whole)} in one go"
            )
    return whole


def _with_restarts(source: Source, limit: int, polls: int) -> list[Any]:
    records: list[Any] = []
    reading = _Reading(source, None, [])
    while True:
        for _ in range(polls):
            got = reading.poll(limit)
            if got is None:
                reading.close()
                return records
            records.extend(got)
        enumerator, splits = reading.snapshot()
        reading.close()
        reading = _Reading(source, enumerator, splits)


def _difference(some: list[Any], others: list[Any]) -> str:
    more = Counter(map(repr, some)) - Counter(map(repr, others))
    fewer = Counter(map(repr, others)) - Counter(map(repr, some))
    return f"{sum(more.values())} too many and {sum(fewer.values())} too few"


class _Reading:
    """One reader and its enumerator."""

    def __init__(self, source: Source, enumerator: Plain | None, splits: list[Plain]) -> None:
        self._enumerator = source.create_enumerator(EnumeratorContext(1), enumerator)
        self._reader: SourceReader = source.create_reader(
            ReaderContext(0, 1, SystemClock(), lambda: None)
        )
        self._reader.open()
        if splits:
            self._reader.add_splits(splits)

    def poll(self, limit: int) -> list[Any] | None:
        """The next records, however long it takes; None at the end."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < deadline:
            records = self._reader.poll(limit)
            if records:
                if len(records) > limit:
                    raise ConformanceError(f"poll({limit}) returned {len(records)} records")
                return records
            if records is None:
                splits = splits_for(self._enumerator, 0)
                if splits is None:
                    return None
                if splits:
                    self._reader.add_splits(splits)
                    continue
            time.sleep(0.005)
        raise ConformanceError(f"the source gave nothing for {_WAIT_SECONDS:g} s, and has no end")

    def to_end(self, limit: int) -> list[Any]:
        records: list[Any] = []
        while (got := self.poll(limit)) is not None:
            records.extend(got)
        self.close()
        return records

    def snapshot(self) -> tuple[Plain, list[Plain]]:
        """As it comes back from a checkpoint."""
        enumerator = plain.encode(self._enumerator.snapshot(), "an enumerator's state")
        splits = plain.encode(self._reader.snapshot(), "a split")
        return plain.decode(enumerator), plain.decode(splits)

    def close(self) -> None:
        self._reader.close()
        self._enumerator.close()


def _wait_for(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise ConformanceError(f"there was no {what} within {_WAIT_SECONDS:g} s")
        time.sleep(0.005)
