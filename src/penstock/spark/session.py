"""Which Spark session a job runs on: the one the user has, or one that Penstock makes.

    spark = session_for(None, "word count", {})                        # here, local[32] or more
    spark = session_for("spark://host:7077", "word count", {"spark.executor.memory": "4g"})

A session of the user's is taken as it is. One of ours is quiet: it has few words on the terminal
and reports a lost slot in fractions of a second (see `settings`).
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from penstock.errors import SparkLaunchError
from penstock.spark.java import ensure_java
from penstock.spark.platforms import say_where_it_was_tried
from penstock.spark.quiet_loggers import quiet_loggers
from penstock.spark.settings import default_master, is_local, session_settings
from penstock.spark.started_with import started_with

log = logging.getLogger(__name__)

_Handler = Callable[[int, FrameType | None], Any] | int | None

__all__ = ["ensure_java", "session_for"]


def session_for(master: str | None, app_name: str, spark_conf: Mapping[str, str]) -> SparkSession:
    """The active session if there is one, else a new one on `master` with `spark_conf`.

    The settings of an active session are never changed: `app_name` and `spark_conf` do not apply
    to it, and a `master` that is not its own is an error, as is dynamic allocation.
    """
    say_where_it_was_tried()
    quiet_loggers()
    on_interrupt = signal.getsignal(signal.SIGINT)
    session = _active_session()
    if session is None:
        return _new_session(master, app_name, spark_conf, on_interrupt)
    _check_usable(session, master)
    _take_back_interrupts(on_interrupt)
    return session


def _active_session() -> SparkSession | None:
    if "SPARK_REMOTE" in os.environ or "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        raise SparkLaunchError(
            "Penstock needs a classic Spark session and this process uses Spark Connect: "
            "unset SPARK_REMOTE, or run the job where a classic session can be made."
        )
    # Not SparkSession.getActiveSession(): that one knows only the calling thread's.
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.builder.getOrCreate()


def _check_usable(session: SparkSession, master: str | None) -> None:
    context = session.sparkContext
    if master is not None and master != context.master:
        raise SparkLaunchError(
            f"the job asks for Spark master {master}, but a session on {context.master} is "
            "active: stop that session first, or leave out the master to use it."
        )
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        raise SparkLaunchError(
            "the active Spark session has dynamic allocation on, and Spark runs no barrier "
            "stages then: make the session with spark.dynamicAllocation.enabled=false."
        )


def _new_session(
    master: str | None, app_name: str, spark_conf: Mapping[str, str], on_interrupt: _Handler
) -> SparkSession:
    ensure_java()
    # Workers must run this Python, whatever `python3` is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", spark_conf.get("spark.pyspark.python", sys.executable))
    given = started_with()
    chosen = _choose_master(master or spark_conf.get("spark.master"), given.get("spark.master"))
    settings = session_settings(chosen, {"spark.app.name": app_name, **given, **spark_conf})
    if settings["spark.dynamicAllocation.enabled"] == "true":
        log.warning(
            "spark.dynamicAllocation.enabled is true and is taken for false: Spark runs no barrier "
            "stages under dynamic allocation, and slots are those"
        )
        settings["spark.dynamicAllocation.enabled"] = "false"
    conf = SparkConf().setAll(list(settings.items()))
    SparkContext.getOrCreate(conf)
    # Before the session, which takes a second more: PySpark's handler is of no use in it.
    _take_back_interrupts(on_interrupt)
    session = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    # Else executors are torn down with the driver's JVM, and a cluster's side of it complains.
    atexit.register(_stop, session)
    return session


def _choose_master(asked: str | None, given: str | None) -> str:
    """The master that the job asks for, the one it was started with, or one of our own."""
    if asked and given and is_local(asked) and not is_local(given):
        raise SparkLaunchError(
            f"the program was started with Spark master {given}, and the job asks for {asked}, "
            "which would run it on this host alone: leave one of the two out."
        )
    return asked or given or default_master()


def _stop(session: SparkSession) -> None:
    # The user may have stopped it, or its JVM may be gone: nothing is left to do then.
    with contextlib.suppress(Exception):
        session.stop()


def _take_back_interrupts(before: _Handler) -> None:
    """Undo PySpark's SIGINT handler, which cancels all Spark jobs of the session.

    Ctrl-C then does what it did before the session was made (if that is known, else it raises
    KeyboardInterrupt), and a job can stop its slots in an orderly way.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if _is_pysparks(signal.getsignal(signal.SIGINT)):
        known = before is not None and not _is_pysparks(before)
        signal.signal(signal.SIGINT, before if known else signal.default_int_handler)


def _is_pysparks(handler: object) -> bool:
    return getattr(handler, "__module__", None) == SparkContext.__module__
