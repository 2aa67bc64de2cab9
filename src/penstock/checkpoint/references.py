"""What a manifest may refer to: segments of its own, and those of the savepoint of a stop.

    shared/1-4-0-6c35493a2b937829                                           beside the manifest
    /data/savepoint-3f9a01-0c52d7e1b6aa/shared/1-4-0-6c35493a2b937829       of a savepoint

A manifest is data: somebody may have altered it, and computed its checksum again. What it refers to
is read, copied, and deleted with it. So whatever is not of one of these two forms is refused when
the manifest is parsed, before anybody opens it; and so are two savepoints in one manifest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from penstock.checkpoint.segment_names import FOLDER, is_segment_name
from penstock.common.filesystem import keeps_checkpoints

_SAVEPOINT = re.compile(r"savepoint-([^/]{0,6})-[0-9a-f]{12}", re.ASCII)
_BEFORE_NAME = f"/{FOLDER}"


def checked_path(path: str) -> str:
    """The path of a segment; ValueError if it is none that a manifest may have."""
    name = path.removeprefix(FOLDER)
    if name == path:
        _, _, name = path.rpartition(_BEFORE_NAME)
        if not _is_savepoint(savepoint_of(path)):
            raise ValueError(f"it refers to {path!r}, which lies in no savepoint")
    if not is_segment_name(name):
        raise ValueError(f"it refers to {path!r}, which is no segment")
    return path


def check_savepoint(job_id: str, foreign: Iterable[str]) -> None:
    """ValueError unless these paths lie in one savepoint, of this job."""
    savepoints = sorted(set(map(savepoint_of, foreign)))
    if len(savepoints) > 1:
        raise ValueError(f"it refers to several savepoints: {', '.join(savepoints)}")
    for savepoint in savepoints:
        match = _SAVEPOINT.fullmatch(_name(savepoint))
        if match is None or match[1] != job_id[:6]:
            raise ValueError(f"it refers to {savepoint}, a savepoint of another job")


def savepoint_of(path: str) -> str:
    """The folder of the savepoint that a segment lies in, which is named by its whole path."""
    return path.rpartition(_BEFORE_NAME)[0]


def _is_savepoint(folder: str) -> bool:
    if _SAVEPOINT.fullmatch(_name(folder)) is None or not keeps_checkpoints(folder):
        return False
    # As `filesystem_for` reads it: of an address, what is escaped counts.
    parts = (unquote(folder) if "://" in folder else folder).split("/")
    return not {".", ".."}.intersection(parts)


def _name(folder: str) -> str:
    return folder.rpartition("/")[2]
