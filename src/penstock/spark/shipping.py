"""How a slot's process comes to import what the driver has imported, and to have its files.

On the driver's own machine the slots get its `sys.path`. Elsewhere that means nothing, so the
package itself is sent, as a zip, once per Spark context. Files of a job are served by Spark to its
executors, under names that are made of their content.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import weakref
import zipfile
from collections.abc import Iterable
from pathlib import Path

from pyspark import SparkContext

from penstock.common.packing import pack
from penstock.common.shipped_files import PackedFile, ShippedFile
from penstock.spark.settings import is_on_this_machine

PACKAGE = Path(__file__).parents[1]

_shipped: weakref.WeakSet[SparkContext] = weakref.WeakSet()
_folders: weakref.WeakKeyDictionary[SparkContext, Path] = weakref.WeakKeyDictionary()
_served: weakref.WeakKeyDictionary[SparkContext, set[str]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def search_path_for(context: SparkContext) -> list[str]:
    """Make Penstock importable in the slots; what to put first in their `sys.path` for that."""
    if is_on_this_machine(str(context.master)):
        return [str(Path(entry).absolute()) for entry in sys.path]
    with _lock:
        if context not in _shipped:
            _ship_package(context)
            _shipped.add(context)
    return []


def ship_files(context: SparkContext, files: Iterable[ShippedFile]) -> tuple[PackedFile, ...]:
    """Have Spark bring `files`, as they are now, to every executor before its next task."""
    with _lock:
        folder = _folder_of(context)
        packed = tuple(pack(file, folder) for file in files)
        served = _served.setdefault(context, set())
        for key in {one.key for one in packed if one.key} - served:
            context.addFile(str(folder / key))
            served.add(key)
    return packed


def _folder_of(context: SparkContext) -> Path:
    """Where Spark serves files from, for as long as the context lives."""
    if context not in _folders:
        folder = tempfile.mkdtemp(prefix="penstock-")
        weakref.finalize(context, shutil.rmtree, folder, ignore_errors=True)
        _folders[context] = Path(folder)
    return _folders[context]


def _ship_package(context: SparkContext) -> None:
    archive = _folder_of(context) / "penstock.zip"
    zip_package(archive)
    context.addPyFile(str(archive))


def zip_package(archive: Path) -> None:
    """Write the package's folder, without caches, so that `archive` can be put on `sys.path`."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(PACKAGE.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                out.write(file, file.relative_to(PACKAGE.parent))
