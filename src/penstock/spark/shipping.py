"""How a slot's process comes to import what the driver has imported.

On the driver's own machine the slots get its `sys.path`. Elsewhere that means nothing, so the
package itself is sent, as a zip, once per Spark context.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import weakref
import zipfile
from pathlib import Path

from pyspark import SparkContext

from penstock.spark.settings import is_on_this_machine

PACKAGE = Path(__file__).parents[1]

_shipped: weakref.WeakSet[SparkContext] = weakref.WeakSet()
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


def _ship_package(context: SparkContext) -> None:
    folder = tempfile.mkdtemp(prefix="penstock-")
    # Spark serves the file from here for as long as the context lives.
    weakref.finalize(context, shutil.rmtree, folder, ignore_errors=True)
    archive = Path(folder, "penstock.zip")
    zip_package(archive)
    context.addPyFile(str(archive))


def zip_package(archive: Path) -> None:
    """Write the package's folder, without caches, so that `archive` can be put on `sys.path`."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(PACKAGE.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                out.write(file, file.relative_to(PACKAGE.parent))
