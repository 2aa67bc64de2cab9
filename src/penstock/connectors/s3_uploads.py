"""Multipart uploads below one folder of an S3 bucket, as far as a file sink needs them.

Paths are relative to the folder. What goes wrong is a `StorageError` that names the object; that an
upload is not there any more is an answer and not an error.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from penstock.errors import ConfigurationError, StorageError

_SCHEMES = ("s3", "s3a")
_GONE = ("NoSuchUpload",)
_MISSING = ("404", "NoSuchKey", "NotFound")


class Uploads(Protocol):
    """Multipart uploads of one folder."""

    def begin(self, path: str) -> str:
        """The id of a new upload that is to become `path`."""
        ...

    def send(self, path: str, upload: str, number: int, data: bytes) -> str:
        """Upload a piece, numbered from 1; its tag."""
        ...

    def complete(self, path: str, upload: str, tags: list[str]) -> bool:
        """Make the object from these pieces; False if there is no such upload (any more)."""
        ...

    def abort(self, path: str, upload: str) -> None:
        """Make completing it impossible; nothing happens if it is not there."""
        ...

    def unfinished(self) -> Iterator[tuple[str, str]]:
        """Path and id of all uploads that are neither complete nor aborted."""
        ...

    def size(self, path: str) -> int | None:
        """The size of the object; None if there is none."""
        ...

    def shown(self, path: str) -> str:
        """The object's address, for messages."""
        ...


def uploads_for(directory: str) -> Uploads | None:
    """The uploads of `directory`; None if it is not on S3."""
    parts = urlsplit(directory)
    if parts.scheme not in _SCHEMES:
        return None
    if not parts.netloc:
        raise ConfigurationError(f"{directory} names no bucket; write s3://bucket/folder")
    return S3Uploads(_client(parts.scheme, parts.netloc), parts.netloc, unquote(parts.path))


@functools.lru_cache(maxsize=64)
def _client(scheme: str, bucket: str) -> Any:
    try:
        import fsspec

        return fsspec.core.url_to_fs(f"{scheme}://{bucket}", skip_instance_cache=True)[0]
    except ImportError as error:
        raise ConfigurationError(
            f"{scheme}:// needs a package: {error}; install it with: pip install 'penstock[s3]'"
        ) from None


class S3Uploads:
    """Uploads by the requests of S3, sent through s3fs, whose settings they share."""

    def __init__(self, client: Any, bucket: str, folder: str) -> None:
        self._client = client
        self._bucket = bucket
        self._folder = f"{folder.strip('/')}/" if folder.strip("/") else ""

    def begin(self, path: str) -> str:
        with self._errors("begin to upload", path):
            return str(self._call("create_multipart_upload", path)["UploadId"])

    def send(self, path: str, upload: str, number: int, data: bytes) -> str:
        piece = {"UploadId": upload, "PartNumber": number, "Body": data}
        with self._errors("upload", path):
            return str(self._call("upload_part", path, **piece)["ETag"])

    def complete(self, path: str, upload: str, tags: list[str]) -> bool:
        pieces = [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]
        whole = {"UploadId": upload, "MultipartUpload": {"Parts": pieces}}
        with self._errors("complete the upload of", path):
            try:
                self._call("complete_multipart_upload", path, **whole)
            except Exception as error:
                # The answer to a request that was carried out may be lost; what counts is what
                # there is now.
                if _code(error) in _GONE or self._is_gone(path, upload):
                    return False
                raise
            return True

    def _is_gone(self, path: str, upload: str) -> bool:
        try:
            self._call("list_parts", path, UploadId=upload, MaxParts=1)
        except Exception as error:
            if _code(error) in _GONE:
                return True
            raise
        return False

    def abort(self, path: str, upload: str) -> None:
        with self._errors("abort the upload of", path):
            try:
                self._call("abort_multipart_upload", path, UploadId=upload)
            except Exception as error:
                if _code(error) not in _GONE:
                    raise

    def unfinished(self) -> Iterator[tuple[str, str]]:
        where: dict[str, str] = {}
        while True:
            with self._errors("list the uploads of", ""):
                listing = self._client.call_s3(
                    "list_multipart_uploads", Bucket=self._bucket, Prefix=self._folder, **where
                )
            for found in listing.get("Uploads", ()):
                yield found["Key"].removeprefix(self._folder), found["UploadId"]
            if not listing.get("IsTruncated"):
                return
            where = {
                "KeyMarker": listing["NextKeyMarker"],
                "UploadIdMarker": listing["NextUploadIdMarker"],
            }

    def size(self, path: str) -> int | None:
        with self._errors("look at", path):
            try:
                return int(self._call("head_object", path)["ContentLength"])
            except Exception as error:
                if isinstance(error, FileNotFoundError) or _code(error) in _MISSING:
                    return None
                raise

    def shown(self, path: str) -> str:
        return f"s3://{self._bucket}/{self._folder}{path}"

    def _call(self, request: str, path: str, **arguments: Any) -> Any:
        key = self._folder + path
        return self._client.call_s3(request, Bucket=self._bucket, Key=key, **arguments)

    @contextlib.contextmanager
    def _errors(self, action: str, path: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            # s3fs has errors of Python's, boto's and aiohttp's; their text is one line.
            reason = str(error).split("\n", 1)[0] or type(error).__name__
            raise StorageError(f"cannot {action} {self.shown(path)}: {reason}") from error


def _code(error: BaseException | None) -> str | None:
    """What S3 calls the error, whichever error of Python's it was translated to."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code"))
        error = error.__cause__
    return None
