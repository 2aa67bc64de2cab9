"""Part files on S3: a part is a multipart upload, and committing it is completing the upload.

Nothing of an upload can be seen before it is complete, and then all of it is there at once, under
its final name: no file is ever renamed, copied or half. The committable names the upload and the
tags of its pieces, so that anybody can complete it, from any process. A later attempt aborts the
uploads of earlier ones that no checkpoint covers, which makes it impossible to complete them.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

from penstock.common.plain import Plain
from penstock.connectors.file_committables import check_uploaded
from penstock.connectors.file_parts import PartStream, is_unfinished
from penstock.connectors.s3_uploads import Uploads
from penstock.connectors.sink import Committer
from penstock.errors import SinkError, StorageError

_PIECE_BYTES = 5 << 20
"""S3 takes no smaller pieces, except for the last."""
_LARGER_EVERY = 1000
"""S3 takes 10,000 pieces at most, so they grow: after so many, by as much as the first had."""
_THREADS = 4
_WAITING = 8
"""Pieces of a writer that are being uploaded or wait for it; with more, writing waits."""
_COMMITTERS = 8


class MultipartParts:
    """Parts that are uploads. Pieces are uploaded by threads while records go on being written."""

    # Each holds up to a piece in memory.
    most_open = 16

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._threads = ThreadPoolExecutor(_THREADS, "penstock-upload")
        self._room = threading.BoundedSemaphore(_WAITING)

    def begin(self, name: str, bucket: str) -> PartStream:
        path = f"{bucket}/{name}" if bucket else name
        return _UploadedPart(self._uploads, self._threads, self._room, path)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class _UploadedPart:
    def __init__(
        self,
        uploads: Uploads,
        threads: ThreadPoolExecutor,
        room: threading.BoundedSemaphore,
        path: str,
    ) -> None:
        self._uploads = uploads
        self._threads = threads
        self._room = room
        self._path = path
        self._gathered = bytearray()
        self._beginning = threading.Lock()
        self._upload: str | None = None
        self._pieces: list[Future[str]] = []
        self._ended = False
        self._tags: list[str] | None = None

    def write(self, data: bytes) -> None:
        # As in `RenamedParts`: what comes after the end is of a writer that was given up.
        if self._ended:
            return
        self._gathered += data
        if len(self._gathered) >= _PIECE_BYTES * (1 + len(self._pieces) // _LARGER_EVERY):
            self._send()

    def _send(self) -> None:
        for piece in self._pieces:
            if piece.done():
                # Found out now, not when gigabytes more are written.
                piece.result()
        data, self._gathered = bytes(self._gathered), bytearray()
        self._room.acquire()
        try:
            sent = self._threads.submit(self._send_piece, len(self._pieces) + 1, data)
        except RuntimeError as error:
            self._room.release()
            raise StorageError(f"cannot write {self._shown()}: its writer is closed") from error
        sent.add_done_callback(lambda _: self._room.release())
        self._pieces.append(sent)

    def _send_piece(self, number: int, data: bytes) -> str:
        with self._beginning:
            if self._upload is None:
                self._upload = self._uploads.begin(self._path)
        return self._uploads.send(self._path, self._upload, number, data)

    def end(self) -> None:
        if not self._ended:
            self._ended = True
            # An upload needs a piece, even an empty one.
            if self._gathered or not self._pieces:
                self._send()

    def settle(self) -> None:
        if self._tags is None:
            self.end()
            self._tags = [piece.result() for piece in self._pieces]

    def committable(self) -> dict[str, Plain]:
        assert self._tags is not None, "a part is described when it is settled"
        return {"to": self._path, "upload": self._upload, "pieces": list(self._tags)}

    def close(self) -> None:
        self._ended = True
        self._gathered = bytearray()

    def _shown(self) -> str:
        return self._uploads.shown(self._path)


class MultipartCommitter(Committer):
    """Completes uploads."""

    def __init__(self, uploads: Uploads, owner: str, last_attempt: int) -> None:
        self._uploads = uploads
        self._owner = owner
        self._last_attempt = last_attempt

    def commit(self, committables: list[Plain]) -> None:
        check_uploaded(self._uploads.shown(""), committables)
        # Each is a request or two, and a checkpoint may have many.
        with ThreadPoolExecutor(_COMMITTERS, "penstock-commit") as threads:
            for _ in threads.map(self._complete, committables):
                pass

    def _complete(self, part: Plain) -> None:
        path, uploads = part["to"], self._uploads
        if uploads.complete(path, part["upload"], part["pieces"]):
            return
        # There is no such upload: it was completed before, or somebody aborted it.
        if uploads.size(path) != part["size"]:
            raise SinkError(
                f"the upload of {uploads.shown(path)} was prepared by a checkpoint and is gone: "
                "its records are lost; does a lifecycle rule of the bucket abort uploads?"
            )

    def visible(self, committables: list[Plain]) -> list[Plain]:
        return [part for part in committables if self._uploads.size(part["to"]) is not None]

    def abort_others(self, keep: list[Plain]) -> None:
        kept = {part["upload"] for part in keep}
        for path, upload in self._uploads.unfinished():
            name = path.rsplit("/", 1)[-1]
            if upload not in kept and is_unfinished(name, self._owner, self._last_attempt):
                self._uploads.abort(path, upload)
