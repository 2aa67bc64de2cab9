"""What a checkpoint costs when few keys change: bytes, the pause, compaction, and the way back.

One subtask's state, of many keys with values of 100 bytes, goes through checkpoint after checkpoint
to files, each after a job has changed 1 % of the keys, ten times each. The job takes records out of
frames, finds their keys, calls a function and puts what it gives into frames again, as a subtask
does. Everything runs in one thread here, so that processor time can be told apart: the job with its
checkpoints, the pause in them (the synchronous part), and compaction. Two kinds of values: strings
of a declared type, and lists that nobody declared, which can change in place and are pickled.

The way back is reading the segments, verifying them and filling the backend, against plain loops
that read and decode the same bytes with the same decoder: one that fills a dict, as anybody must
who wants to find a key, and one that leaves everything in lists. All run in turn, five times.
Processor time is told, which a busy machine disturbs less.

    python -m bench.incremental --keys 2000000
"""

import argparse
import pickle
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.common import result_row
from penstock.checkpoint.parts import VerifiedParts
from penstock.checkpoint.store import CheckpointStore
from penstock.common.clock import SystemClock
from penstock.common.settings import StateSettings
from penstock.common.typeinfo import Types
from penstock.runtime.compaction import Compaction
from penstock.runtime.operator_cut import OperatorCut
from penstock.runtime.segment_chain import ChainSettings, SegmentChain
from penstock.state.choice import make_backend
from penstock.state.descriptors import ValueStateDescriptor
from penstock.state.entries import decode_entries
from penstock.state.kinds import KeyContext
from penstock.state.marks import mark_of
from penstock.state.segments import Origin, decode_segment, read_blocks, read_index

GROUPS = range(128)
CHANGED = 0.01
TOUCHES = 10
"""How often a key that changes is written between two checkpoints."""


@dataclass
class Spent:
    """Processor time, in seconds."""

    job: float = 0.0
    compaction: float = 0.0
    pauses: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


class MeasuredIo:
    """Does the work of a compaction at once, and notes the processor time that it takes."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        began = time.thread_time()
        result = work()
        self._spent.compaction += time.thread_time() - began
        done(result, None)


class Subtask:
    """The state of one subtask, checkpointed as the engine does it."""

    def __init__(self, store: CheckpointStore, declared: bool, backend: str = "hashmap") -> None:
        self.context = KeyContext()
        settings = StateSettings(backend)
        self.backend = make_backend(self.context, len(GROUPS), SystemClock(), settings)
        kind = Types.STRING() if declared else Types.PICKLED_BYTE_ARRAY()
        self.state = self.backend.get_state(ValueStateDescriptor("value", kind))
        self.chain = SegmentChain(ChainSettings())
        self.store = store
        self.declared = declared
        self.spent = Spent()
        self.checkpoint = 0
        self.last: Any = None

    def process(self, frame: bytes) -> bytes:
        """A frame of records in, a frame of results out."""
        results = []
        for record in pickle.loads(frame):
            self.context.key = record["key"]
            results.extend(self.process_element(record))
        return pickle.dumps(results, protocol=5)

    def process_element(self, record: dict[str, Any]) -> Iterator[tuple[str, int]]:
        held = self.state.value()
        text = f"{record['number']:0100d}"
        if self.declared or held is None:
            self.state.update(text if self.declared else [text])
        else:
            held[0] = text  # in place
        yield record["key"], record["number"]

    def take(self) -> None:
        """One checkpoint: cut, stored, confirmed."""
        self.checkpoint += 1
        base, mark = self.chain.base(), mark_of(self.checkpoint)
        began = time.thread_time()
        blocks = self.backend.cut(mark, full=not base, files=True)
        self.spent.pauses.append(time.thread_time() - began)
        cut = OperatorCut(
            "uid",
            self.checkpoint,
            base=base,
            blocks=blocks,
            groups=GROUPS,
            files=blocks.files,
            stored_files=self.chain.files(),
        )
        self.last, size = cut.store(self.store, f"s-{self.checkpoint}")
        self.spent.job += time.thread_time() - began
        self.spent.sizes.append(size)
        self.chain.stored(mark, self.last.segments)
        self.backend.confirm(mark)
        self.chain.confirm(mark)
        self.compact()

    def compact(self) -> None:
        io = MeasuredIo(self.spent)
        Compaction(self.chain, self.store, io, GROUPS, Origin()).start(f"m-{self.checkpoint}")


@dataclass(frozen=True)
class Result:
    """Ratios, each with the mark that it must not pass."""

    delta_bytes: float
    pause: float
    compaction: float
    recovery: float
    """Against a loop that fills a dict."""
    recovery_of_lists: float
    """Against one that leaves everything in lists."""
    segments: int
    stored: float

    def __str__(self) -> str:
        return (
            f"bytes {self.delta_bytes:.2%} (3 %), pause {self.pause:.2%} (5 %), "
            f"compaction {self.compaction:.1%} (10 %), recovery {self.recovery:.2f} x (2 x; "
            f"{self.recovery_of_lists:.2f} x a loop that only makes lists); "
            f"{self.segments} segments, {self.stored:.2f} x the state"
        )


def measure(keys: int, checkpoints: int, declared: bool) -> Result:
    rng = random.Random(7)
    names = [f"key-{n:09d}" for n in range(keys)]
    with tempfile.TemporaryDirectory() as folder:
        store = CheckpointStore(folder, "job")
        subtask = Subtask(store, declared)
        for frame in frames(names):
            subtask.process(frame)
        subtask.take()
        full_size = subtask.spent.sizes[0]
        subtask.spent = Spent()
        for _ in range(checkpoints):
            sent = list(frames(rng.sample(names, int(keys * CHANGED)) * TOUCHES))
            began = time.thread_time()
            for frame in sent:
                subtask.process(frame)
            subtask.spent.job += time.thread_time() - began
            subtask.take()
        spent = subtask.spent
        stored = sum(handle.size for handle in subtask.last.segments)
        return Result(
            statistics.mean(spent.sizes) / full_size,
            statistics.median(spent.pauses) / full_serialization(subtask),
            spent.compaction / (spent.job + spent.compaction),
            *recovery(store, subtask.last, declared),
            len(subtask.last.segments),
            stored / full_size,
        )


def frames(names: Sequence[str]) -> Iterator[bytes]:
    """A record for each name, in frames of 512."""
    for start in range(0, len(names), 512):
        part = names[start : start + 512]
        records = [{"key": name, "number": start + i} for i, name in enumerate(part)]
        yield pickle.dumps(records, protocol=5)


def full_serialization(subtask: Subtask) -> float:
    """The processor time that writing the whole state takes."""
    began = time.thread_time()
    for _ in subtask.backend.cut(mark_of(subtask.checkpoint + 1), full=True):
        pass
    return time.thread_time() - began


def recovery(store: CheckpointStore, snapshot: Any, declared: bool) -> tuple[float, float]:
    """Restoring, in units of plain loops over the same bytes: into a dict, and into lists."""

    def decoded() -> Iterator[tuple[list[Any], list[Any], list[Any]]]:
        for handle in snapshot.segments:
            for block in decode_segment(store.read_segment(handle.path), GROUPS):
                yield decode_entries(block.payload, block.schema)

    def into_dict() -> object:
        entries: dict[Any, Any] = {}
        for keys, values, removed in decoded():
            entries.update(zip(keys, values, strict=True))
            for key in removed:
                entries.pop(key, None)
        return entries

    def restore() -> object:
        fresh = Subtask(store, declared)
        for handle in snapshot.segments:
            read = VerifiedParts(handle, store)
            fresh.backend.restore(read_blocks(read, read_index(read)[1], GROUPS))
        return fresh

    of_dict, of_lists = [], []
    for _ in range(5):
        restored = busy(restore)
        of_dict.append(restored / busy(into_dict))
        of_lists.append(restored / busy(lambda: list(decoded())))
    return statistics.median(of_dict), statistics.median(of_lists)


def busy(work: Callable[[], object]) -> float:
    """The processor time of all threads up to the result."""
    began = time.process_time()
    result = work()
    spent = time.process_time() - began
    del result
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--checkpoints", type=int, default=60)
    options = parser.parse_args()
    results = {}
    for name, declared in (("declared strings", True), ("undeclared lists", False)):
        results[name] = measure(options.keys, options.checkpoints, declared)
        print(f"{name}: {results[name]}")
    details = "; ".join(f"{name}: {result}" for name, result in results.items())
    worst = max(result.delta_bytes for result in results.values())
    figure = f"{worst:.2%} of the state per checkpoint"
    print(result_row("incremental", figure, f"{options.keys:,} keys; {details}"))


if __name__ == "__main__":
    main()
