"""Paths that are handed to another process, whose working directory is another one."""

from __future__ import annotations

from pathlib import Path


def absolute(path: str) -> str:
    """`path` as every process on this machine understands it; a URI is one already."""
    return path if "://" in path else str(Path(path).absolute())
