"""What Spark's Python side logs of its own is not the program's: it stays out of its output."""

from __future__ import annotations

import logging

_LOGGERS = ("py4j", "pyspark")


def quiet_loggers() -> None:
    """Let py4j and pyspark log warnings only, unless the program has given them a level.

    A program that says `logging.basicConfig(stream=sys.stdout, level=logging.INFO)` means its own
    lines, and not one for every connection to the JVM.
    """
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)
