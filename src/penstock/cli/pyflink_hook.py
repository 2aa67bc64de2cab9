"""`import pyflink.datastream` that gives `penstock.datastream`.

A module is the same object under both names, so classes are too, and what a program pickles refers
to Penstock only.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from penstock.absent import ABSENT

MAPPED = ("common", "datastream", "metrics")
_SEARCH_PATH = str(Path(__file__).with_name("pyflink_path"))


class _PyFlinkFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if top != "pyflink" or not rest:
            return None
        if rest.partition(".")[0] not in MAPPED:
            raise ModuleNotFoundError(
                f"{fullname}: Penstock runs DataStream programs and has pyflink.common, "
                "pyflink.datastream and pyflink.metrics only",
                name=fullname,
            )
        ours = f"penstock.{rest}"
        if ours in ABSENT:
            raise ModuleNotFoundError(f"{fullname}: {ABSENT[ours]}", name=fullname)
        if find_spec(ours) is None:
            raise ModuleNotFoundError(f"{fullname}: Penstock has no {ours}", name=fullname)
        return ModuleSpec(fullname, _SameModule(ours))


class _SameModule(Loader):
    """Loads nothing: hands out a module that exists under another name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just written the other name into it.
        module.__spec__ = self._spec


def install() -> None:
    """Answer imports of pyflink's modules from here on, in this process."""
    if not any(isinstance(finder, _PyFlinkFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _PyFlinkFinder())


@contextlib.contextmanager
def pyflink_importable(wanted: bool = True) -> Iterator[None]:
    """Within the block, `import pyflink` finds the stand-in, also where PyFlink is installed."""
    if not wanted:
        yield
        return
    sys.path.insert(0, _SEARCH_PATH)
    try:
        yield
    finally:
        sys.path.remove(_SEARCH_PATH)
