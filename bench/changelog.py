"""What a checkpoint costs with a changelog, and without, when 1 % of the keys changed.

The same subtask as in `bench.incremental`: its state goes through checkpoints to files. With the
changelog, what changed is also written a hundred times in between, as in 20 s by default, and the
checkpoint falls into the middle of a piece. Both backends. The time is that of a whole checkpoint,
from the cut to the stored segment.

    python -m bench.changelog --keys 2000000
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from bench.common import result_row
from bench.incremental import CHANGED, GROUPS, TOUCHES, Subtask, frames
from penstock.checkpoint.store import CheckpointStore
from penstock.runtime.change_log import ChangeLog
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.state.segments import Origin

PIECES = 100
"""Into so many parts the time between two checkpoints falls."""


class AtOnce:
    """Does what should happen off the loop, at once."""

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        done(work(), None)


class Logged(Subtask):
    """A subtask that may have a changelog."""

    def __init__(self, store: CheckpointStore, backend: str) -> None:
        super().__init__(store, declared=True, backend=backend)
        self.times: list[float] = []
        operator = SimpleNamespace(
            node=SimpleNamespace(uid="uid", name="operator"),
            chain=self.chain,
            state=self.backend,
            groups=GROUPS,
            origin=Origin(),
        )
        self.log = ChangeLog(
            cast(RuntimeKeyedFunction, operator),
            store,
            AtOnce(),
            lambda: self.checkpoint + 1,
            lambda checkpoint: f"l-{checkpoint}",
        )

    def take(self) -> None:
        began = time.monotonic()
        super().take()
        self.times.append(time.monotonic() - began)
        super().compact()

    def compact(self) -> None:
        """Not as part of a checkpoint, whose time is measured."""


def measure(keys: int, checkpoints: int, backend: str, changelog: bool) -> tuple[float, float, int]:
    """Mean bytes of a checkpoint, its median time, and the bytes of the whole state."""
    rng = random.Random(7)
    names = [f"key-{n:09d}" for n in range(keys)]
    with tempfile.TemporaryDirectory() as folder:
        subtask = Logged(CheckpointStore(folder, "job"), backend)
        for frame in frames(names):
            subtask.process(frame)
        subtask.take()
        full = subtask.spent.sizes.pop()
        subtask.times.clear()
        for _ in range(checkpoints):
            changed = rng.sample(names, int(keys * CHANGED)) * TOUCHES
            rng.shuffle(changed)
            piece = max(1, len(changed) // PIECES)
            # The first and the last piece are halves.
            for start in range(-piece // 2, len(changed), piece):
                if changelog and start >= 0:
                    subtask.log.write()
                for frame in frames(changed[max(start, 0) : start + piece]):
                    subtask.process(frame)
            subtask.take()
        subtask.backend.close()
        return statistics.mean(subtask.spent.sizes), statistics.median(subtask.times), full


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--checkpoints", type=int, default=10)
    given = parser.parse_args()
    figures, details = [], []
    for backend in ("hashmap", "rocksdb"):
        without, plain, full = measure(given.keys, given.checkpoints, backend, changelog=False)
        logged, quick, _ = measure(given.keys, given.checkpoints, backend, changelog=True)
        figures.append(f"{backend} {quick / plain:.2f} x")
        details.append(
            f"{backend}: {logged / full:.2%} of the state's bytes per checkpoint, without "
            f"{without / full:.2%}; {quick * 1e3:.0f} ms, without {plain * 1e3:.0f} ms"
        )
    figure = f"{', '.join(figures)} the time without"
    print(result_row("changelog", figure, f"{given.keys:,} keys; {'; '.join(details)}"))


if __name__ == "__main__":
    main()
