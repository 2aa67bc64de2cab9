"""A large object of S3 that is created only if there is none, and never in memory as a whole.

It is uploaded in pieces, one after another, which are no object until the upload is completed: the
request that does it has the condition. An upload that comes to nothing is aborted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

UPLOAD = 1 << 24
"""So many bytes are a piece. S3 takes ten thousand of them for an object, so one of 160 GB."""


def upload_new(client: Any, path: str, pieces: Iterable[bytes]) -> None:
    """Create the object `bucket/key` through `client`, an `s3fs.S3FileSystem`.

    The server's refusal if there is one already. What `pieces` raises comes through.
    """
    bucket, key, _ = client.split_path(path)
    place = {"Bucket": bucket, "Key": key}
    upload = {**place, "UploadId": client.call_s3("create_multipart_upload", **place)["UploadId"]}
    try:
        tags = []
        for number, piece in enumerate(pieces, 1):
            sent = client.call_s3("upload_part", PartNumber=number, Body=piece, **upload)
            tags.append({"PartNumber": number, "ETag": sent["ETag"]})
        client.call_s3(
            "complete_multipart_upload", MultipartUpload={"Parts": tags}, IfNoneMatch="*", **upload
        )
    except BaseException:
        # Whatever comes of this, the first error is the one to be told.
        with contextlib.suppress(Exception):
            client.call_s3("abort_multipart_upload", **upload)
        raise


def in_lots(parts: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes, `size` of them at a time; at the end perhaps fewer.

    >>> list(in_lots([b"ab", b"c", b"defgh", b"i"], 3))
    [b'abc', b'def', b'ghi']
    """
    lot: list[memoryview] = []
    room = size
    for part in parts:
        left = memoryview(part)
        while len(left) >= room:
            yield b"".join([*lot, left[:room]])
            left, lot, room = left[room:], [], size
        if left:
            lot.append(left)
            room -= len(left)
    if lot:
        yield b"".join(lot)
