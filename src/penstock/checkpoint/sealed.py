"""Small JSON files with a format version and a checksum over their content; nothing is pickled."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from penstock.errors import CheckpointFormatError, CorruptCheckpointError

FORMAT = 2
"""1: segments only. 2: files of databases, too. Both are read."""


def seal(content: Any) -> bytes:
    text = _text(content)
    return b'{"format": %d, "sha256": "%s", "content": %s}' % (FORMAT, _digest(text).encode(), text)


def unseal(data: bytes, path: str) -> dict[str, Any]:
    """The content; CorruptCheckpointError if damaged, CheckpointFormatError if too new."""
    if not data:
        raise CorruptCheckpointError(f"{path} is cut short or not a checkpoint: it is empty")
    try:
        sealed = json.loads(data)
        version, digest, content = sealed["format"], sealed["sha256"], sealed["content"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptCheckpointError(f"{path} is cut short or not a checkpoint") from error
    if isinstance(version, int) and version > FORMAT:
        raise CheckpointFormatError(
            f"{path} has format {version}, and this version of Penstock reads formats up to "
            f"{FORMAT}: use the version that wrote it, or a later one"
        )
    if version not in range(1, FORMAT + 1):
        raise CorruptCheckpointError(f"{path} has format {version!r}, which there is not")
    if digest != _digest(_text(content)):
        raise CorruptCheckpointError(f"{path} was altered: its checksum does not match")
    return content  # type: ignore[no-any-return]


def _text(content: Any) -> bytes:
    # In this form only: it is what the checksum is over, and Python writes no other as fast.
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
