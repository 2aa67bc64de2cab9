"""Unaligned checkpoints on Spark: they complete while records wait, and none of those is lost."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from job_parts import Count, as_line, check_output, environment, key_of, running, slot_pids
from patience import PATIENCE, until

from penstock.checkpoint.history import CheckpointRecord, CheckpointStatus
from penstock.common import WatermarkStrategy
from penstock.common.job_client import JobClient
from penstock.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.graph.execution_graph import SubtaskId

pytestmark = pytest.mark.usefixtures("session")

# Functions of this module travel by value: slots cannot import a test module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

RECORDS = 20_000
FAST, SLOW = 0.0005, 0.05
SLOW_ONE = SubtaskId(1, 1)


class OneIsSlow(MapFunction):
    """Passes records on; the last subtask takes a hundred times as long, until `hurry` exists."""

    def __init__(self, hurry: Path) -> None:
        self._hurry = hurry

    def open(self, runtime_context: RuntimeContext) -> None:
        last = runtime_context.get_number_of_parallel_subtasks() - 1
        is_last = runtime_context.get_index_of_this_subtask() == last
        self._seconds = SLOW if is_last else FAST
        self._waits = not self._hurry.exists()

    def map(self, value: Any) -> Any:
        if self._waits:
            time.sleep(self._seconds)
            self._waits = not self._hurry.exists()
        return value


def job(env: StreamExecutionEnvironment, folder: Path) -> None:
    numbers = env.from_source(
        NumberSequenceSource(0, RECORDS - 1), WatermarkStrategy.no_watermarks(), "numbers"
    )
    slow = numbers.rebalance().map(OneIsSlow(folder / "hurry"))
    counted = slow.key_by(key_of).process(Count()).map(as_line)
    counted.sink_to(FileSink.for_row_format(str(folder / "out")).build())


def overtook(client: JobClient) -> CheckpointRecord[Any] | None:
    """A complete checkpoint whose barriers left records behind that the slow subtask had got."""
    for record in client.get_checkpoint_history():
        if record.status is CheckpointStatus.COMPLETED and record.subtasks[SLOW_ONE].in_flight_size:
            return record
    return None


@pytest.mark.parametrize("timeout", ["0 ms", "300 ms"])
def test_a_checkpoint_overtakes_what_waits_and_a_restart_goes_on_from_it(
    tmp_path: Path, timeout: str
) -> None:
    settings = {
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.aligned-checkpoint-timeout": timeout,
    }
    env = environment(2, tmp_path / "checkpoints", "500 ms", settings)
    job(env, tmp_path)
    client = env.execute_async("one is slow")
    running(client)
    record = until(lambda: overtook(client), "a checkpoint that overtook records")
    assert record.in_flight_size >= record.subtasks[SLOW_ONE].in_flight_size
    assert record.subtasks[SLOW_ONE].alignment_ms >= 0
    os.kill(slot_pids(client.progress())[0], signal.SIGKILL)
    running(client, attempt=2)
    (tmp_path / "hurry").touch()
    client.get_job_execution_result().result(PATIENCE)
    check_output(tmp_path / "out", range(RECORDS))


class Stalls(MapFunction):
    """Fast for a while; then the database behind it answers after two seconds."""

    def __init__(self, stalled: Path) -> None:
        self._stalled = stalled

    def map(self, value: int) -> int:
        if value >= RECORDS:
            self._stalled.touch()
            time.sleep(2)
        return value


@pytest.mark.parametrize("chained", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_function_that_becomes_slow_keeps_neither_checkpoints_nor_a_cancel(
    tmp_path: Path, chained: bool
) -> None:
    settings = {"execution.checkpointing.unaligned.enabled": "true"}
    env = environment(1, tmp_path / "checkpoints", "500 ms", settings)
    source = NumberSequenceSource(0, RECORDS + 2_000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    stalling = (numbers if chained else numbers.rebalance()).map(Stalls(tmp_path / "stalled"))
    stalling.filter(lambda _: False).print()
    client = env.execute_async()
    until((tmp_path / "stalled").exists, "the function is slow")
    # The records that a step is given at the old speed take longer than anybody waits.
    before = client.progress().completed_checkpoints
    until(lambda: client.progress().completed_checkpoints > before + 1, "checkpoints complete")
    client.cancel().result(timeout=PATIENCE)
