"""Penstock: a stateful stream processor for Python with Flink's model, on Spark.

The two public fronts are `penstock.common` and `penstock.datastream`, with PyFlink's names.
"""

import sys as _sys

__version__ = "0.1.0"

if _sys.platform == "win32":
    _WHERE = (
        "Penstock runs on Linux, and on Windows within WSL (wsl --install, then pip install "
        "penstock in its shell); Windows itself lacks the sockets and signals that it needs"
    )
    # Said before the traceback of the import.
    print(_WHERE, file=_sys.stderr)
    raise ImportError(_WHERE)

from penstock import absent

absent.install()
