"""Compaction: a file sink shows few large files in place of many small ones.

Small files come from checkpoints, each of which ends the files of all writers. With compaction the
commit of a file only sets it aside, under a hidden name that is made of its bucket and its size.
When enough has gathered in a bucket, its files are merged into one, and that is what becomes
visible. What is still set aside when a job starts, restarts or ends is merged then.

The committer may die at any moment and be called again. A merge is therefore announced by a *plan*,
a hidden file that names what goes in and what comes out: whoever finds a plan carries it out, from
the beginning if what should come out is not there. The plan also remembers what went in for as long
as anybody may ask for it to be committed again.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import quote, unquote

from penstock.common.filesystem import FileSystem
from penstock.common.plain import Plain
from penstock.connectors.file_committables import is_below, renamed_parts
from penstock.connectors.sink import Committer
from penstock.errors import ProgramError, SinkError, StorageError

_ASIDE = ".pending"
_PLAN = ".compaction"
_DRAFT = ".draft"
_REMEMBERED = 64
"""So many merges are remembered at least."""


@dataclass(frozen=True)
class FileCompactStrategy:
    """When the files of a bucket are merged; made by its builder."""

    size_threshold: int | None = None
    checkpoints: int | None = None
    threads: int = 1

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Begin with nothing set."""
        return FileCompactStrategy.Builder()

    class Builder:
        """Builds a strategy: by size, by number of checkpoints, or whichever comes first."""

        def __init__(self) -> None:
            self._size: int | None = None
            self._checkpoints: int | None = None
            self._threads = 1

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Merge after so many checkpoints."""
            self._checkpoints = _positive("checkpoints", num_checkpoints_before_compaction)
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Merge the files of a bucket when they have so many bytes together."""
            self._size = _positive("bytes", size_threshold)
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """How many buckets are merged at a time."""
            self._threads = _positive("threads", num_compact_threads)
            return self

        def build(self) -> FileCompactStrategy:
            """The strategy; ProgramError if nothing says when files are merged."""
            if self._size is None and self._checkpoints is None:
                raise ProgramError(
                    "files would never be compacted: set a size threshold or a number of "
                    "checkpoints"
                )
            return FileCompactStrategy(self._size, self._checkpoints, self._threads)


def _positive(what: str, number: int) -> int:
    if number <= 0:
        raise ProgramError(f"files cannot be compacted by {number} {what}")
    return number


@dataclass(frozen=True)
class FileCompactor:
    """How several files become one."""

    merges: bool
    delimiter: bytes = b""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """One after another, with these bytes between two."""
        return FileCompactor(True, file_delimiter or b"")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Not at all: files appear together, as they are, when they would have been merged."""
        return FileCompactor(False)


@dataclass(frozen=True)
class _Aside:
    """A file that is set aside."""

    path: str
    bucket: str
    final: str
    size: int


@dataclass(frozen=True)
class _Plan:
    path: str
    inputs: tuple[str, ...]
    final: str


class CompactingCommitter(Committer):
    """Sets committed files aside and merges them when there are enough."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        owner: str,
        strategy: FileCompactStrategy,
        compactor: FileCompactor,
    ) -> None:
        self._fs = fs
        self._directory = directory
        self._owner = owner
        self._strategy = strategy
        self._compactor = compactor
        self._commits = 0
        self._known: dict[str, _Plan] = {}
        """What plans say, by their paths, in the order in which they came up."""
        self._lock = threading.Lock()
        self._recent: set[str] = set()
        """The plans since the last commit began."""

    def commit(self, committables: list[Plain]) -> None:
        committables = renamed_parts(self._fs, self._directory, committables)
        self._recent = set()
        plans = self._plans()
        merged = {path for plan in plans for path in plan.inputs}
        for part in committables:
            self._set_aside(part, merged)
        # A checkpoint that turns out to be damaged sends us back to an older one, which asks again.
        self._forget(plans[:-_REMEMBERED], committables)
        self._commits += 1
        self._compact(everything=False)

    def abort_others(self, keep: list[Plain]) -> None:
        """Also merges all that is set aside: a job starts, or has ended."""
        # The last commit may be asked for once more, by whoever finds its checkpoint.
        self._forget([plan for plan in self._plans() if plan.path not in self._recent], keep)
        self._compact(everything=True)

    # --- setting aside ------------------------------------------------------------------------

    def _set_aside(self, part: Plain, merged: set[str]) -> None:
        aside = self._aside_path(part)
        try:
            self._fs.rename(part["from"], aside)
        except StorageError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            if aside in merged or self._fs.exists(aside) or self._fs.exists(part["to"]):
                return
            raise SinkError(
                f"{part['from']} was prepared by a checkpoint and is gone: its records are lost"
            ) from error

    def _aside_path(self, part: Plain) -> str:
        bucket, _, name = str(part["to"]).rpartition("/")
        below = quote(bucket.removeprefix(self._directory).strip("/"), safe="")
        return f"{self._directory}/.{name}~{below}~{part.get('size', 0)}{_ASIDE}"

    def _asides(self) -> list[_Aside]:
        found = []
        for name in self._own(_ASIDE):
            base, below, size = name.removeprefix(".").removesuffix(_ASIDE).rsplit("~", 2)
            bucket = unquote(below)
            folder = f"{self._directory}/{bucket}" if bucket else self._directory
            path = f"{self._directory}/{name}"
            found.append(_Aside(path, bucket, f"{folder}/{base}", int(size)))
        return found

    def _own(self, suffix: str) -> list[str]:
        names = self._fs.list(self._directory)
        return [name for name in names if name.startswith(self._owner) and name.endswith(suffix)]

    # --- merging ------------------------------------------------------------------------------

    def _compact(self, everything: bool) -> None:
        by_bucket: dict[str, list[_Aside]] = {}
        for aside in self._asides():
            by_bucket.setdefault(aside.bucket, []).append(aside)
        enough, strategy = everything, self._strategy
        if strategy.checkpoints is not None and self._commits >= strategy.checkpoints:
            enough = True
        due = [files for files in by_bucket.values() if enough or self._is_large(files)]
        if enough:
            self._commits = 0
        if strategy.threads == 1 or len(due) < 2:
            for files in due:
                self._merge(files)
            return
        with ThreadPoolExecutor(strategy.threads, "penstock-compaction") as threads:
            for _ in threads.map(self._merge, due):
                pass

    def _is_large(self, files: Iterable[_Aside]) -> bool:
        threshold = self._strategy.size_threshold
        return threshold is not None and sum(file.size for file in files) >= threshold

    def _merge(self, files: list[_Aside]) -> None:
        if len(files) == 1 or not self._compactor.merges:
            for file in files:
                self._fs.rename(file.path, file.final)
            return
        with self._lock:
            plan = self._announce(files)
        if plan is not None:
            self._carry_out(plan)

    def _announce(self, files: list[_Aside]) -> _Plan | None:
        """The plan to merge what no other plan takes in; None if somebody else was faster.

        A bucket's plans are numbered and a number is given once, so that a driver that does not
        know yet that its job was taken over cannot merge the same files a second time.
        """
        stem = f"{self._directory}/{self._owner}{quote(files[0].bucket, safe='')}~"
        plans = self._read_plans()
        taken = {path for plan in plans for path in plan.inputs}
        left = [file for file in files if file.path not in taken]
        if not left:
            return None
        numbers = [
            int(plan.path.removesuffix(_PLAN).rpartition("~")[2])
            for plan in plans
            if plan.path.startswith(stem)
        ]
        folder, _, name = left[0].final.rpartition("/")
        plan = _Plan(
            f"{stem}{max(numbers, default=0) + 1}{_PLAN}",
            tuple(file.path for file in left),
            f"{folder}/compacted-{name}",
        )
        content = json.dumps({"inputs": list(plan.inputs), "to": plan.final})
        if not self._fs.create(plan.path, content.encode()):
            return None
        self._known[plan.path] = plan
        self._recent.add(plan.path)
        return plan

    def _carry_out(self, plan: _Plan) -> None:
        if not self._fs.exists(plan.final):
            draft = f"{self._directory}/{self._owner}{uuid.uuid4().hex}{_DRAFT}"
            stream = self._fs.append(draft)
            try:
                for number, path in enumerate(plan.inputs):
                    stream.write(
                        (self._compactor.delimiter if number else b"") + self._fs.read(path)
                    )
                stream.sync()
            finally:
                stream.close()
            self._fs.rename(draft, plan.final)
        for path in plan.inputs:
            self._fs.delete(path)

    # --- plans --------------------------------------------------------------------------------

    def _read_plans(self) -> list[_Plan]:
        """All plans, those that this committer has made or seen last come last."""
        found = {f"{self._directory}/{name}" for name in self._own(_PLAN)}
        for path in sorted(found - set(self._known)):
            content = json.loads(self._fs.read(path))
            plan = _Plan(path, tuple(content["inputs"]), content["to"])
            for named in (*plan.inputs, plan.final):
                if not is_below(self._directory, named):
                    raise SinkError(f"{path} says to merge {named}, which is not below its folder")
            self._known[path] = plan
        self._known = {path: plan for path, plan in self._known.items() if path in found}
        return list(self._known.values())

    def _plans(self) -> list[_Plan]:
        """All plans, each carried out; what an earlier merge left half-written is deleted."""
        for name in self._own(_DRAFT):
            self._fs.delete(f"{self._directory}/{name}")
        waiting = {f"{self._directory}/{name}" for name in self._own(_ASIDE)}
        plans = self._read_plans()
        for plan in plans:
            if waiting.intersection(plan.inputs):
                self._carry_out(plan)
        return plans

    def _forget(self, plans: list[_Plan], asked_for: list[Plain]) -> None:
        """Delete plans of which nothing will be asked for again: all that is confirmed."""
        open_ = {self._aside_path(part) for part in asked_for}
        for plan in plans:
            if not open_.intersection(plan.inputs):
                self._fs.delete(plan.path)
