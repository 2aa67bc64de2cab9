"""The contract of a source: an enumerator that finds splits, readers that read them.

A source's data is cut into *splits*: a file's byte range, a range of numbers, a partition. The
enumerator lives in the JobMaster and hands splits to the readers that ask; a reader lives in a
slot, returns records when polled, and says at any moment how far it has come. Both answer
`snapshot` with plain values (see `penstock.common.plain`), which are in the checkpoint, and start
again from them.

A complete source that counts down, one split per starting number::

    class Countdown(Source):
        def __init__(self, *starts):
            self.starts = starts

        def create_enumerator(self, context, restored):
            return QueueEnumerator(restored if restored is not None else list(self.starts))

        def create_reader(self, context):
            return CountdownReader()

    class CountdownReader(SourceReader):
        def __init__(self):
            self.left = []

        def add_splits(self, splits):
            self.left.extend(splits)

        def poll(self, limit):
            if not self.left:
                return None
            n = self.left.pop()
            if n > 1:
                self.left.append(n - 1)
            return [n]

        def snapshot(self):
            return list(self.left)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.common.clock import Clock
from penstock.common.plain import Plain
from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.metrics import MetricGroup


@dataclass(frozen=True)
class ReaderContext:
    """What a reader may know of where it runs."""

    subtask: int
    parallelism: int
    clock: Clock
    wake: Callable[[], None]
    """Tells the slot, from any thread, that `poll` has something to return."""
    timed: bool = False
    """Whether `poll` is to return pairs (value, timestamp); only for sources that are `timed`."""
    metrics: MetricGroup = field(default_factory=MetricGroup)
    """Where the reader registers metrics of its own; change them in the slot's thread only."""


@dataclass(frozen=True)
class EnumeratorContext:
    """What an enumerator may know of the job."""

    parallelism: int


class SourceReader(ABC):
    """Reads splits in a slot. All methods are called from the slot's one thread."""

    pauses_splits = False
    """Whether `pause_or_resume_splits` does something. Of a reader that cannot, all splits go on
    while its slowest one may: watermark alignment then stops the reader as a whole."""

    def open(self) -> None:
        """Called once, before anything else."""

    @abstractmethod
    def add_splits(self, splits: list[Plain]) -> None:
        """Read these splits as well; after a restore, these are what `snapshot` returned."""

    @abstractmethod
    def poll(self, limit: int) -> list[Any] | None:
        """The next records, at most `limit` of them, without blocking for long.

        An empty list says "nothing just now, call again after `wake` or `next_poll_ms`". None says
        that every split so far is read to its end: the slot then asks for another split.
        """

    def split_of_last_poll(self) -> Plain:
        """The split that the records of the last `poll` came from, for a watermark per split.

        A reader that answers this returns the records of one split from one `poll`. None: the
        splits are not told apart.
        """
        return None

    def active_splits(self) -> list[Plain] | None:
        """The splits that are read now, by the names of `split_of_last_poll`; None: see there."""
        return None

    def pause_or_resume_splits(self, to_pause: list[Plain], to_resume: list[Plain]) -> None:
        """Return nothing of some splits from now on, and records of others again.

        By the names of `split_of_last_poll`. Watermark alignment pauses splits that are too far
        ahead. A paused split stays among `active_splits` and in `snapshot`; called only for
        readers that say `pauses_splits`.
        """

    def next_poll_ms(self) -> int | None:
        """When polling is worth while again by the clock.

        Asked once, after `poll` returned an empty list.
        """
        return None

    @abstractmethod
    def snapshot(self) -> list[Plain]:
        """The splits that are not read to their end, each with its position."""

    def covered(self, splits: list[Plain]) -> None:
        """A checkpoint is complete for which `snapshot` returned `splits`: nobody reads them again.

        A hint for systems that want to know, such as the group of a Kafka consumer. A reader that
        has nothing left hears of the checkpoints after its end too, and of the end of a job
        without checkpoints, when all output is committed. To say then how far it came, it may
        keep a split in `snapshot` that is read to its end, and drop it when that is said. A reader
        is restored with such splits too, and told of the next checkpoint.
        """

    def close(self) -> None:
        """Called once at the end, also after a failure."""


class SplitEnumerator(ABC):
    """Finds splits and hands them out, in the JobMaster.

    All methods but `look` are called from the JobMaster's one thread, which everything else of the
    job waits for. What takes its time, such as listing a folder, belongs into `look`.
    """

    def must_look(self, subtask: int) -> bool:
        """Whether to `look` before the reader `subtask`, which asks for splits, gets its answer."""
        return False

    def look(self) -> Any:
        """Look for new splits, however long it takes; what was found, for `found`.

        Called in a thread of its own, once at a time, while the other methods may be called: it
        changes nothing that they use.
        """

    def found(self, result: Any) -> None:
        """Take in what `look` returned; `next_splits` is called after this."""

    @abstractmethod
    def next_splits(self, subtask: int) -> list[Plain] | None:
        """Splits for the reader `subtask`, which asks for some, without blocking for long.

        An empty list says "none just now"; None says that there will be no more.
        """

    def ask_again_ms(self, subtask: int) -> int | None:
        """How long after the last answer the reader `subtask` asks again, in milliseconds.

        It asks then even if it still reads, so that an enumerator can find splits while the job
        runs. None: it asks when it has nothing left, or, after an empty list, in a second. Also
        called when a restored attempt starts, for readers that go on with the splits they had.
        """
        return None

    def check(self) -> None:
        """Raise what ends the attempt, if a thread of the enumerator has found such a thing.

        Called again and again while the attempt runs, also when no reader asks any more; so it
        looks at what is known and asks nobody.
        """

    def waited_for(self, subtask: int) -> bool:
        """Whether event time waits for the reader `subtask`, which was just given an empty list.

        By default a reader without splits is idle until it gets one. True: one is about to come.
        """
        return False

    @abstractmethod
    def snapshot(self) -> Plain:
        """What is not handed out yet, and what else the next enumerator must know."""

    def close(self) -> None:
        """Called once when the attempt ends."""


def splits_for(enumerator: SplitEnumerator, subtask: int) -> list[Plain] | None:
    """The answer of an enumerator to the reader `subtask`, after a look if it must have one."""
    enumerator.check()
    if enumerator.must_look(subtask):
        enumerator.found(enumerator.look())
    return enumerator.next_splits(subtask)


class Source(ABC):
    """A place that records come from; it is pickled into the job."""

    timed = False
    """Whether records have timestamps of their own. Readers give them on request: see
    `ReaderContext.timed`, which says whether anything in the program asks for them."""
    keeps_bad_records = False
    """Whether readers return a `BadRecord` in place of what they cannot decode."""
    watermark_strategy: WatermarkStrategy | None = None
    """The watermarks that the source was given itself, for `add_source()`, which gives none."""
    produced_type: TypeInformation | None = None
    """The type of the records, where the source knows it and `add_source()` is not told one."""

    @abstractmethod
    def create_enumerator(
        self, context: EnumeratorContext, restored: Plain | None
    ) -> SplitEnumerator:
        """A new enumerator; `restored` is what `snapshot` returned, None at a first start."""

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A new reader for one subtask."""


class QueueEnumerator(SplitEnumerator):
    """Hands out a fixed list of splits, one at a time, to whoever asks first."""

    def __init__(self, splits: Iterable[Plain]) -> None:
        self._left = deque(splits)

    def next_splits(self, subtask: int) -> list[Plain] | None:
        return [self._left.popleft()] if self._left else None

    def snapshot(self) -> Plain:
        return list(self._left)
