"""From what Spark throws to one line that a person can read.

A failed slot comes back as a Java exception of a hundred lines with the cause somewhere in the
middle. A `SlotFailure` is therefore raised in the slot with a text that can be found again.
"""

from __future__ import annotations

import itertools
import re

from py4j.protocol import Py4JError, Py4JJavaError

from penstock.errors import SparkLaunchError

_SLOT_FAILURE = re.compile(r"SlotFailure: (slot \d+ .*)")
STOPPED = "the Spark session was stopped: it has to stay open while a job runs on it"
_NO_JVM = "the connection to the driver's JVM is gone, and the Spark session with it"
_CRASH = re.compile(
    r"Python worker exited unexpectedly \(crashed\): (.*?)(?:\n\s+at |\Z)", re.DOTALL
)
_CHAIN = re.compile(r"<chain \d+: (.*)>")
_MOST_LINES = 40
_OWN_THREAD = ("Current thread", "Stack")
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
        return no_python(missing[1])
    other = _OTHER_PYTHON.search(message)
    if other:
        return (
            f"Spark runs slots with Python {other[1]} and the driver is Python "
            f"{other[2].rstrip('.,')}: set PYSPARK_PYTHON or python.executable to a Python of the "
            "driver's version"
        )
    module = _NO_MODULE.search(message)
    if module:
        return f"the Python that Spark runs slots with cannot import Penstock: {module[1]}"
    return None


def no_python(path: str) -> str:
    """What is wrong when `path` is to be the Python of slots and is none."""
    return (
        f"the Python that Spark is to run slots with, {path}, cannot be executed: set "
        "PYSPARK_PYTHON or python.executable to one that is there on every machine that runs slots"
    )


def _died(message: str) -> str | None:
    """How a slot's process died, and where: the lines of faulthandler, which Spark passes on."""
    crash = _CRASH.search(message)
    if crash is None:
        return None
    first, *lines = crash[1].strip().splitlines() or [""]
    if not first:
        return (
            "a slot's process died and left no word: it was killed from outside, by kill -9 or for "
            "lack of memory, or Spark's faulthandler is off in this session"
        )
    chain = _CHAIN.search(crash[1])
    where = f" in {chain[1]!r}" if chain else ""
    # Other threads are ours, and what lies below the loop of the slot is ours and Spark's.
    current = itertools.dropwhile(lambda line: not line.startswith(_OWN_THREAD), lines)
    own = list(itertools.takewhile(lambda line: "<chain " not in line, current))
    return "\n".join([f"a slot's process died{where}: {first}", *own[:_MOST_LINES]])


def _reason(message: str) -> str:
    died = _died(message)
    if died is not None:
        return died
    slot = _SLOT_FAILURE.search(message)
    if slot:
        return slot.group(1).strip()
    for sign, meaning in _LOST:
        if sign in message:
            return meaning
    return f"Spark ended the job: {message.strip().splitlines()[0]}"
