"""Uploads as files, against a model: writers die, requests fail before or after they were done.

A server in memory has the rules of S3: an upload is invisible until it is completed, completing or
aborting ends it, and the same pieces make the same object. Around it a little job: writers write
and prepare, checkpoints complete or come to nothing, attempts end and settle. Whatever happens,
what can be read is exactly what complete checkpoints cover.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from planted_bugs import finds
from seed_frame import chunks, replayable

from penstock.common.clock import SystemClock
from penstock.connectors import file_sink
from penstock.connectors.file_multipart import MultipartCommitter
from penstock.connectors.sink import CommitterContext, SinkWriter, WriterContext
from penstock.datastream.connectors.file_system import FileSink, JsonLineEncoder, RollingPolicy
from penstock.errors import StorageError

T = TypeVar("T")


class FaultyServer:
    """Uploads in memory; every request may fail, having been carried out or not."""

    def __init__(self, rng: random.Random, rate: float) -> None:
        self._rng = rng
        self.rate = rate
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes]]] = {}
        self._begun = 0

    def _answer(self, action: Callable[[], T]) -> T:
        if self._rng.random() >= self.rate:
            return action()
        if self._rng.random() < 0.5:
            action()
        raise StorageError("simulated: no answer")

    def begin(self, path: str) -> str:
        def begin() -> str:
            self._begun += 1
            self.uploads[f"u{self._begun}"] = (path, {})
            return f"u{self._begun}"

        return self._answer(begin)

    def send(self, path: str, upload: str, number: int, data: bytes) -> str:
        def send() -> str:
            if upload not in self.uploads:
                raise StorageError("there is no such upload")
            self.uploads[upload][1][number] = data
            return hashlib.md5(data).hexdigest()

        return self._answer(send)

    def complete(self, path: str, upload: str, tags: list[str]) -> bool:
        def complete() -> bool:
            if upload not in self.uploads:
                return False
            name, pieces = self.uploads.pop(upload)
            assert name == path and name not in self.objects, "an object is written twice"
            chosen = [pieces[number] for number in range(1, len(tags) + 1)]
            assert [hashlib.md5(data).hexdigest() for data in chosen] == tags
            self.objects[path] = b"".join(chosen)
            return True

        return self._answer(complete)

    def abort(self, path: str, upload: str) -> None:
        self._answer(lambda: self.uploads.pop(upload, None))

    def unfinished(self) -> Iterator[tuple[str, str]]:
        listing = [(path, upload) for upload, (path, _) in self.uploads.items()]
        yield from self._answer(lambda: listing)

    def size(self, path: str) -> int | None:
        data = self.objects.get(path)
        return self._answer(lambda: None if data is None else len(data))

    def shown(self, path: str) -> str:
        return f"s3://bucket/{path}"


class Job:
    """Two writers, a committer, and what a checkpoint would hold."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        self.rng = rng = random.Random(seed)
        self.server = server = FaultyServer(rng, rng.choice((0.0, 0.02, 0.1)))
        patch.setattr(file_sink, "uploads_for", lambda directory: server)
        builder = FileSink.for_row_format("s3://bucket/out", JsonLineEncoder())
        policy = RollingPolicy(part_size=rng.choice((None, 1, 30)))
        self.sink = builder.with_rolling_policy(policy).build()
        committer = self.sink.create_committer(CommitterContext("job", "uid"))
        assert isinstance(committer, MultipartCommitter)
        self.committer = committer
        self.attempt = 0
        self.next = 0
        self.covered: list[Any] = []
        """Committables in the newest complete checkpoint."""
        self.zombies: list[SinkWriter] = []
        self.start()

    def start(self) -> None:
        """A new attempt: settle all output, go on from the checkpoint."""
        while True:
            try:
                self.committer.commit(self.covered)
                self.committer.abort_others(self.covered)
                break
            except StorageError:
                pass
        self.attempt += 1
        self.next = sum(self.counts())
        self.covered = []
        self.pending: list[Any] = []
        self.writers = [self._writer(subtask) for subtask in range(2)]

    def _writer(self, subtask: int) -> SinkWriter:
        room: Callable[[], bool] = lambda: True  # noqa: E731
        context = WriterContext(
            "job", "uid", self.attempt, subtask, 2, SystemClock(), lambda *_: None, room
        )
        return self.sink.create_writer(context)

    def step(self) -> None:
        try:
            if self.rng.random() < 0.7:
                self.rng.choice(self.writers).write(self.next)
                self.next += 1
            else:
                self.checkpoint()
        except StorageError:
            self.crash()
        if self.rng.random() < 0.03:
            self.crash()

    def crash(self) -> None:
        # Some of the dead do not know it yet and go on writing.
        self.zombies += self.writers
        self.start()
        if self.rng.random() < 0.5:
            zombie = self.rng.choice(self.zombies)
            try:
                zombie.write("of a dead attempt")
                zombie.prepare_commit()()
            except StorageError:
                pass

    def checkpoint(self) -> None:
        self.pending += [part for writer in self.writers for part in writer.prepare_commit()()]
        if self.rng.random() < 0.2:
            return  # It came to nothing, and the next one carries what was prepared.
        self.covered, self.pending = self.covered + self.pending, []
        if self.rng.random() < 0.9:
            self.committer.commit(self.covered)
            self.covered = []

    def end(self) -> None:
        self.server.rate = 0.0
        self.committer.commit(self.covered)
        self.committer.abort_others([])
        for writer in (*self.writers, *self.zombies):
            writer.close()

    def counts(self) -> list[int]:
        """How many records each visible file has; they parse, and none is of a dead attempt."""
        texts = [data.decode() for data in self.server.objects.values()]
        assert all(text.endswith("\n") and "dead" not in text for text in texts)
        return [text.count("\n") for text in texts]

    def records(self) -> list[int]:
        return sorted(int(line) for data in self.server.objects.values() for line in data.split())


def check(job: Job) -> None:
    for _ in range(60):
        job.step()
        # A prefix of the numbers, in whole files, at every moment; none twice.
        records = job.records()
        assert len(set(records)) == len(records)
    job.end()
    assert job.records() == list(range(len(job.records())))
    assert not job.server.uploads, "uploads are left over"


@pytest.mark.parametrize("seeds", chunks(50, 300, size=50))
def test_what_is_visible_is_what_checkpoints_cover(
    seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in seeds:
        with replayable(seed):
            check(Job(seed, monkeypatch))


def uploads_are_not_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MultipartCommitter, "abort_others", lambda self, keep: None)


def test_some_seed_finds_the_bug_of_uploads_that_are_not_aborted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    look = lambda seed: check(Job(seed, monkeypatch))  # noqa: E731
    finds(uploads_are_not_aborted, "uploads are left over", look, range(20))
