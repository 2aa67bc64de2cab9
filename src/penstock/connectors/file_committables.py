"""Committables of a file sink, as a checkpoint has them: they speak of the sink's own files only.

A committer renames what a committable says, and completes the upload that it names. A committable
comes from the files of a checkpoint, which somebody may have altered. So each is looked at before
the first of them is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.filesystem import FileSystem
from penstock.common.plain import Plain
from penstock.errors import SinkError

SUFFIX = ".inprogress"


def renamed_parts(fs: FileSystem, directory: str, committables: Iterable[Plain]) -> list[Plain]:
    """Those that are to become files below `directory`, where they lie hidden.

    What a sink has written elsewhere before and made visible there is left as it is. SinkError
    for anything else.
    """

    def is_own(part: dict[str, Any]) -> bool:
        hidden, final = part["from"], part["to"]
        name = final.rpartition("/")[2]
        return hidden == f"{directory}/.{name}{SUFFIX}" and is_below(directory, final)

    def is_done(part: dict[str, Any]) -> bool:
        hidden, final = part["from"], part["to"]
        whole = is_below("", hidden) and is_below("", final)
        return whole and fs.exists(final) and not fs.exists(hidden)

    own: list[Plain] = []
    others: list[Plain] = []
    for part in committables:
        (own if _fits(part, is_own) else others).append(part)
    _check(directory, others, is_done)
    return own


def check_uploaded(shown: str, committables: Iterable[Plain]) -> None:
    """SinkError for one that is not an upload below the folder that is shown as `shown`."""

    def fits(part: dict[str, Any]) -> bool:
        texts = (part["to"], part["upload"], *part["pieces"])
        return all(type(text) is str for text in texts) and is_below("", f"/{part['to']}")

    _check(shown, committables, fits)


def is_below(directory: str, path: str) -> bool:
    """Whether `path` leads to something in `directory` or in a folder of it."""
    below = path.removeprefix(f"{directory}/")
    return below != path and not {"", ".", ".."}.intersection(below.split("/"))


def _check(
    directory: str, committables: Iterable[Plain], fits: Callable[[dict[str, Any]], bool]
) -> None:
    for part in committables:
        if not _fits(part, fits):
            raise SinkError(
                f"a checkpoint covers output that is no file of this sink's, which writes to "
                f"{directory or '/'}: {part!r:.300}; let the sink write where it wrote before, or "
                "give it another uid and begin with --allow-non-restored-state"
            )


def _fits(part: Plain, fits: Callable[[dict[str, Any]], bool]) -> bool:
    try:
        return type(part.get("size", 0)) is int and fits(part)
    except (KeyError, TypeError, AttributeError):
        return False
