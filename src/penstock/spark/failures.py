"""From what Spark throws to one line that a person can read.

A failed slot comes back as a Java exception of a hundred lines with the cause somewhere in the
middle. A `SlotFailure` is therefore raised in the slot with a text that can be found again.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError

from penstock.errors import SparkLaunchError

_SLOT_FAILURE = re.compile(r"SlotFailure: (slot \d+ .*)")
STOPPED = "the Spark session was stopped: it has to stay open while a job runs on it"
_NO_JVM = "the connection to the driver's JVM is gone, and the Spark session with it"
_LOST = (
    # What Spark says (a part of it), what it means.
    ("Python worker exited unexpectedly", "a slot's process died"),
    ("ExecutorLostFailure", "an executor was lost"),
    ("ExecutorDeadException", "an executor was lost"),
    ("cancelled", "the Spark job was cancelled"),
)
_STOPPED = ("SparkContext was shut down", "stopped SparkContext")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
_OTHER_PYTHON = re.compile(
    r"Python in worker has different version: (\S+) than that in driver: (\S+)"
)
_NO_MODULE = re.compile(r"ModuleNotFoundError: (No module named '(?:penstock|pyspark)[\w.]*')")


class SlotFailure(Exception):
    """A slot's entry raised; the text says which slot, and the error in one line."""

    def __init__(self, slot: int, what: str) -> None:
        super().__init__(f"slot {slot} {what}")


def launch_error(error: BaseException) -> SparkLaunchError:
    """The short error for the JobMaster; `error`, with the JVM's trace, is its cause."""
    short = _short(error)
    short.__cause__ = error
    return short


def _short(error: BaseException) -> SparkLaunchError:
    if isinstance(error, Py4JJavaError):
        return from_spark(str(error.java_exception.getMessage()))
    if isinstance(error, (Py4JError, OSError)):
        return SparkLaunchError(_NO_JVM, lasting=True)
    return SparkLaunchError(f"{type(error).__name__}: {' '.join(str(error).split())}")


def from_spark(message: str) -> SparkLaunchError:
    """The error for what Spark says of a job that failed."""
    never = _never(message)
    return SparkLaunchError(never or _reason(message), lasting=never is not None)


def _never(message: str) -> str | None:
    """Why no other launch would fare better, if that is so."""
    if any(sign in message for sign in _STOPPED):
        return STOPPED
    missing = _NO_PYTHON.search(message)
    if missing:
        return (
            f"the Python that Spark is to run slots with, {missing[1]}, cannot be executed: set "
            "PYSPARK_PYTHON, spark.pyspark.python or python.executable to one that is there on "
            "every machine that runs slots"
        )
    other = _OTHER_PYTHON.search(message)
    if other:
        return (
            f"Spark runs slots with Python {other[1]} and the driver is Python "
            f"{other[2].rstrip('.,')}: set PYSPARK_PYTHON, spark.pyspark.python or "
            "python.executable to a Python of the driver's version"
        )
    module = _NO_MODULE.search(message)
    if module:
        return f"the Python that Spark runs slots with cannot import Penstock: {module[1]}"
    return None


def _reason(message: str) -> str:
    slot = _SLOT_FAILURE.search(message)
    if slot:
        return slot.group(1).strip()
    for sign, meaning in _LOST:
        if sign in message:
            return meaning
    return f"Spark ended the job: {message.strip().splitlines()[0]}"
