"""What runs inside the Spark task: one slot, from its first instruction to its last.

`run` is the body of the task. It calls the launch's entry and returns when that returns, so the
worker process ends its task normally and Spark keeps it, warm, for the next launch.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

from pyspark import BarrierTaskContext, SparkFiles

from penstock.common.packing import installed
from penstock.spark.failures import SlotFailure
from penstock.spark.slot_exits import noted_exits
from penstock.spark.slot_watch import guarded


def run(launch: bytes, host: str | None) -> None:
    """Run this task's slot. `launch` is a pickled (entry, payload, job id, files).

    `host` is this slot's address if the driver knows it, None to ask Spark.
    """
    context = BarrierTaskContext.get()
    slot = context.partitionId()
    try:
        with guarded(), noted_exits():
            entry, payload, job_id, files = pickle.loads(launch)
            with installed(job_id, files, Path(SparkFiles.getRootDirectory())):
                entry(slot, host or _own_host(context, slot), payload)
    except BaseException as error:
        _hide_traceback()
        raise SlotFailure(slot, f"failed with {_one_line(error)}") from None


def _own_host(context: BarrierTaskContext, slot: int) -> str:
    """The executor's host; the port that Spark adds is its own, not ours."""
    return context.getTaskInfos()[slot].address.rpartition(":")[0].strip("[]")


def _hide_traceback() -> None:
    """Let PySpark send the exception without a traceback.

    The slot has reported its error to the JobMaster in full; what goes this way only ends up in
    the executor's log. The process dies after an exception, so the setting reaches no other task.
    """
    os.environ["SPARK_HIDE_TRACEBACK"] = "1"


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text}" if text else name
