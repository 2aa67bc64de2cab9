"""What stands still while there is input is said in one line, with what to do."""

from __future__ import annotations

import logging
import threading

import pytest
from patience import PATIENCE
from test_subtasks_without_splits import TwoSplits, windows

from penstock.checkpoint.handles import MAX_WATERMARK, MIN_WATERMARK
from penstock.checkpoint.history import CheckpointRecord, CheckpointStatus
from penstock.common import WatermarkStrategy
from penstock.common.job_status import JobStatus
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.graph.execution_graph import SubtaskId, build_execution_graph
from penstock.graph.job_graph import build_job_graph
from penstock.jobmanager.progress import Progress
from penstock.jobmanager.stalls import StallLog, Stalls
from penstock.network.messages import SubtaskMetrics
from penstock.testing import local_environment

SOURCE, OTHER, KEYED = SubtaskId(0, 0), SubtaskId(0, 1), SubtaskId(1, 0)


@pytest.fixture
def graph():
    env = StreamExecutionEnvironment().set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(max)
    numbers = env.from_source(NumberSequenceSource(1, 9), strategy, "numbers")
    numbers.key_by(lambda n: n).reduce(max).print()
    return build_execution_graph(build_job_graph(env._program.stream_graph(), "job"))


def seen(out, watermark=0, idle=False, pressed=0, queued=0):
    return SubtaskMetrics(out, out, 0, pressed, 0, queued, watermark, idle)


def progress(metrics, *checkpoints):
    return Progress(JobStatus.RUNNING, 1, 0, 0, 0, None, metrics, {}, 0, checkpoints)


def test_event_time_that_stands_while_records_come_is_explained(graph) -> None:
    stalls = Stalls()
    assert not stalls.look(graph, progress({SOURCE: seen(1), OTHER: seen(1, MIN_WATERMARK)}), 0)
    moved = {SOURCE: seen(9, 50), OTHER: seen(1, MIN_WATERMARK)}
    assert not stalls.look(graph, progress(moved), 5_000)
    found = stalls.look(graph, progress(moved), 7_000)
    assert found["event time"].startswith(
        "event time stands for 7 s: Source: numbers (2/2): watermark none yet"
    )
    assert "with_idleness()" in found["event time"]


@pytest.mark.parametrize(
    "other",
    [seen(1, MIN_WATERMARK, idle=True), seen(1, MAX_WATERMARK), seen(9, 40)],
    ids=["idle", "ended", "moves"],
)
def test_nothing_is_said_where_event_time_may_go_on(graph, other) -> None:
    stalls = Stalls()
    stalls.look(graph, progress({SOURCE: seen(1, 1), OTHER: seen(1, 1)}), 0)
    assert not stalls.look(graph, progress({SOURCE: seen(9, 50), OTHER: other}), 60_000)


def test_nothing_is_said_where_nothing_comes(graph) -> None:
    stalls = Stalls()
    for now in (0, 60_000):
        silent = {SOURCE: seen(5, 10), OTHER: seen(5, MIN_WATERMARK)}
        assert not stalls.look(graph, progress(silent), now)


def test_a_source_that_cannot_pass_records_on_names_who_is_full(graph) -> None:
    stalls = Stalls()
    for now in (0, 4_000):
        held = {SOURCE: seen(5, pressed=now + 1), OTHER: seen(5, 1), KEYED: seen(2, queued=8)}
        assert not stalls.look(graph, progress(held), now)
    held[SOURCE] = seen(5, pressed=9_000)
    found = stalls.look(graph, progress(held), 8_000)
    assert found["source"].startswith(
        "Source: numbers (1/2) has passed no record on for 8 s: it waits for Reduce -> Print (1/2);"
    )


def test_a_checkpoint_under_way_names_who_has_not_done_its_part(graph) -> None:
    done = dict.fromkeys([SOURCE, OTHER, KEYED])
    record = CheckpointRecord(7, CheckpointStatus.IN_PROGRESS, 1_000, subtasks=done)
    stalls = Stalls()
    assert not stalls.look(graph, progress({}, record), 5_000)
    found = stalls.look(graph, progress({}, record), 10_000)
    assert found["checkpoint"].startswith(
        "checkpoint 7 has been under way for 9 s: it waits for Reduce -> Print (2/2);"
    )
    completed = CheckpointRecord(7, CheckpointStatus.COMPLETED, 1_000)
    assert not stalls.look(graph, progress({}, completed), 10_000)


def test_the_log_says_it_once_until_it_is_over(graph) -> None:
    log, record = StallLog(), CheckpointRecord(7, CheckpointStatus.IN_PROGRESS, 0)
    said = [len(list(log.news(graph, progress({}, record), now))) for now in (0, 6_000, 8_000)]
    assert said == [0, 1, 0]
    assert not list(log.news(graph, progress({}), 9_000))
    assert len(list(log.news(graph, progress({}, record), 9_500))) == 1


class Hears(logging.Handler):
    """Waits for a line of the log."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words
        self.heard = threading.Event()

    def emit(self, record) -> None:
        if self.words in record.getMessage():
            self.heard.set()


def test_a_job_whose_event_time_stands_says_so_in_the_log() -> None:
    hears = Hears("event time stands for")
    logger = logging.getLogger("penstock.jobmanager.job_master")
    logger.addHandler(hears)
    try:
        with local_environment() as env:
            windows(env, TwoSplits(waits=True)).print()
            job = env.execute_async()
            assert hears.heard.wait(PATIENCE)
            job.cancel().result()
    finally:
        logger.removeHandler(hears)
