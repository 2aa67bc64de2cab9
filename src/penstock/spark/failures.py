"""From what Spark throws to one line that a person can read.

A failed slot comes back as a Java exception of a hundred lines with the cause somewhere in the
middle. A `SlotFailure` is therefore raised in the slot with a text that can be found again.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError

from penstock.errors import SparkLaunchError

_SLOT_FAILURE = re.compile(r"SlotFailure: (slot \d+ .*)")
_LOST = (
    # What Spark says (a part of it), what it means.
    ("Python worker exited unexpectedly", "a slot's process died"),
    ("ExecutorLostFailure", "an executor was lost"),
    ("ExecutorDeadException", "an executor was lost"),
    ("cancelled", "the Spark job was cancelled"),
    ("SparkContext was shut down", "the Spark session was stopped"),
    ("stopped SparkContext", "the Spark session was stopped"),
)


class SlotFailure(Exception):
    """A slot's entry raised; the text says which slot, and the error in one line."""

    def __init__(self, slot: int, what: str) -> None:
        super().__init__(f"slot {slot} {what}")


def launch_error(error: BaseException) -> SparkLaunchError:
    """The short error for the JobMaster; `error`, with the JVM's trace, is its cause."""
    short = SparkLaunchError(_reason(error))
    short.__cause__ = error
    return short


def _reason(error: BaseException) -> str:
    if isinstance(error, Py4JJavaError):
        return _from_spark(str(error.java_exception.getMessage()))
    if isinstance(error, (Py4JError, OSError)):
        return "the connection to the driver's JVM is gone"
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _from_spark(message: str) -> str:
    slot = _SLOT_FAILURE.search(message)
    if slot:
        return slot.group(1).strip()
    for sign, meaning in _LOST:
        if sign in message:
            return meaning
    return f"Spark ended the job: {message.strip().splitlines()[0]}"
