"""Alignment of sources, and the answer to why a watermark does not move."""

from __future__ import annotations

from penstock.checkpoint.handles import MAX_WATERMARK, MIN_WATERMARK
from penstock.common import Duration, WatermarkStrategy
from penstock.connectors.source import QueueEnumerator, Source, SourceReader
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.graph.execution_graph import SubtaskId, build_execution_graph
from penstock.graph.job_graph import build_job_graph
from penstock.jobmanager.alignment import Alignment, limits
from penstock.jobmanager.watermarks import explain_watermarks, watermark_text
from penstock.network.messages import SubtaskMetrics
from penstock.runtime.event_time import EventClock
from penstock.testing import local_environment

STAMPED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: value[1]
)


def aligned(drift_ms):
    return STAMPED.with_watermark_alignment(
        "group", Duration.of_millis(drift_ms), Duration.of_millis(100)
    )


def metrics(watermark, **others):
    return SubtaskMetrics(0, 0, 0, 0, 0, 0, watermark, **others)


class Clock:
    def monotonic_ms(self):
        return 1_000


class Keep(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


def graph(build):
    env = StreamExecutionEnvironment()
    env.set_parallelism(1)
    build(env)
    return build_execution_graph(build_job_graph(env._program.stream_graph(), "job"))


# --- alignment ----------------------------------------------------------------------------------


def two_aligned(env):
    for name in ("fast", "slow"):
        source = DataGeneratorSource(lambda n: ("v", n), count=1)
        env.from_source(source, aligned(100), name).print()


def test_nobody_reads_further_than_the_drift_beyond_the_slowest():
    alignment = Alignment(graph(two_aligned), attempt=3)
    fast, slow = SubtaskId(0, 0), SubtaskId(1, 0)
    assert alignment.update({fast: metrics(900)}, 0) == []
    told = alignment.update({fast: metrics(900), slow: metrics(500)}, 1_000)
    assert [(m.attempt, m.subtask, m.limit) for m in told] == [(3, fast, 600), (3, slow, 600)]
    # Neither what is known already nor anything before the interval is over is said.
    assert alignment.update({fast: metrics(950), slow: metrics(550)}, 1_050) == []
    assert alignment.update({fast: metrics(950), slow: metrics(500)}, 1_100) == []
    told = alignment.update({fast: metrics(950), slow: metrics(500, idle=True)}, 1_200)
    assert {m.limit for m in told} == {MAX_WATERMARK}


def test_whoever_is_alone_is_free():
    assert limits(100, {}) == MAX_WATERMARK
    assert limits(100, {"a": 5}) == MAX_WATERMARK


def furthest_lead(strategy):
    """How far the fast source's records were ahead of the slow one's, while both had some."""
    with local_environment(seed=5) as env:
        env.set_parallelism(1)
        streams = [
            env.from_source(
                DataGeneratorSource(make, count=count, rate_per_second=rate), strategy, make(0)[0]
            )
            for make, count, rate in (
                (lambda n: ("fast", 1_000_000 + n * 100), 300, 100),
                (lambda n: ("slow", 1_000_000 + n * 100), 100, 10),
            )
        ]
        found = streams[0].union(streams[1]).execute_and_collect()
        lead, slow = 0, 1_000_000
        for name, at in found:
            if name == "slow":
                slow = at
            elif slow < 1_009_900:
                lead = max(lead, at - slow)
    return lead


def test_an_aligned_source_waits_for_the_slower_one():
    assert furthest_lead(STAMPED) > 20_000
    assert furthest_lead(aligned(1_000)) < 10_000


class Greedy(Source):
    """Two splits for one reader, which reads the one until it is paused, and then the other."""

    def __init__(self, pauses):
        self.pauses = pauses

    def create_enumerator(self, context, restored):
        return QueueEnumerator(restored if restored is not None else [["fast", 0], ["slow", 0]])

    def create_reader(self, context):
        return GreedyReader(self.pauses)


class GreedyReader(SourceReader):
    COUNT = 200

    def __init__(self, pauses):
        self.pauses_splits = pauses
        self.splits, self.paused, self.last = {}, set(), None

    def add_splits(self, splits):
        self.splits.update(splits)

    def poll(self, limit):
        if not self.splits or self.splits == {"fast": 0}:
            return None  # it wants both before it begins
        for name in sorted(self.splits):
            if name in self.paused:
                continue
            self.last, position = name, self.splits[name]
            self.splits[name] += 1
            if position + 1 == self.COUNT:
                del self.splits[name]
            return [(name, 1_000_000 + position * 100)]
        return []

    def pause_or_resume_splits(self, to_pause, to_resume):
        assert self.paused.isdisjoint(to_pause) and self.paused.issuperset(to_resume)
        self.paused = self.paused.union(to_pause).difference(to_resume)

    def split_of_last_poll(self):
        return self.last

    def active_splits(self):
        return list(self.splits)

    def snapshot(self):
        return [list(split) for split in self.splits.items()]


def lead_of_a_split(strategy, pauses):
    """How far the records of one split were ahead of those of the other, of one reader."""
    with local_environment(seed=5) as env:
        stream = env.from_source(Greedy(pauses), strategy, "greedy").set_parallelism(1)
        lead, slow, count = 0, 1_000_000, 0
        for name, at in stream.execute_and_collect():
            count += 1
            if name == "slow":
                slow = at
            else:
                lead = max(lead, at - slow)
    assert count == 2 * GreedyReader.COUNT
    return lead


def test_a_split_that_is_ahead_waits_for_the_others_of_its_reader():
    assert lead_of_a_split(STAMPED, pauses=True) == 19_900
    assert lead_of_a_split(aligned(1_000), pauses=False) == 19_900
    assert 1_000 <= lead_of_a_split(aligned(1_000), pauses=True) <= 1_200


def test_splits_are_paused_beyond_the_limit_of_the_group_and_beyond_their_siblings():
    clock = EventClock(aligned(100), Clock(), [])
    for split, latest in (("a", 1_001), ("b", 1_051), ("c", 1_201)):
        clock.select(split)
        clock.current.latest = latest
    clock.retain("abc")
    assert clock.align(MAX_WATERMARK) == (["c"], [])
    assert clock.align(MAX_WATERMARK) == ([], [])
    assert clock.align(1_010) == (["b"], [])
    clock.select("a")
    clock.current.latest = 1_150
    assert clock.align(MAX_WATERMARK) == ([], ["b"])
    clock.select("b")
    clock.current.latest = 1_120
    assert clock.align(MAX_WATERMARK) == ([], ["c"])


def test_a_paused_split_is_not_idle():
    strategy = aligned(100).with_idleness(Duration.of_millis(50))
    clock = EventClock(strategy, Clock(), [])
    for split, latest in (("a", 1_001), ("b", 2_001)):
        clock.select(split)
        clock.current.latest = latest
    clock.retain("ab")
    clock.align(MAX_WATERMARK)
    clock.tick(1_060, 0)
    # The silent one is left out; nobody knows whether the other would be silent.
    assert clock.watermark() == 2_000 and not clock.idle()
    assert clock.align(MAX_WATERMARK) == ([], ["b"])


# --- explanations -------------------------------------------------------------------------------


def keyed_program(env):
    source = DataGeneratorSource(lambda n: ("v", n), count=1)
    stream = env.from_source(source, STAMPED, "numbers").set_parallelism(2)
    stream.key_by(lambda v: v[0]).process(Keep()).print()


def test_every_subtask_says_what_it_waits_for():
    job = graph(keyed_program)
    found = explain_watermarks(
        job,
        {
            SubtaskId(0, 0): metrics(1_000, holder="orders-3", watermark_since_ms=5_000),
            SubtaskId(0, 1): metrics(MIN_WATERMARK, idle=True, holder="None"),
            SubtaskId(1, 0): metrics(1_000, holder=0, watermark_since_ms=5_000),
        },
    )
    texts = [str(explanation) for explanation in found]
    assert texts[0].startswith(
        "Source: numbers (1/2): watermark 1000 (1970-01-01 00:00:01.000Z), held back by split "
        "orders-3 since 1970-01-01 00:00:05.000Z; a record with a later timestamp moves it"
    )
    assert "(2/2): watermark none yet, idle, held back by its input;" in texts[1]
    assert "held back by Source: numbers (1/2) since" in texts[2]


def test_other_reasons_are_named():
    def build(env):
        env.from_source(
            DataGeneratorSource(lambda n: n, count=1), WatermarkStrategy.no_watermarks(), "plain"
        ).key_by(lambda v: v).process(Keep()).print()

    job = graph(build)
    source, process = SubtaskId(0, 0), SubtaskId(1, 0)
    found = explain_watermarks(
        job, {source: metrics(MIN_WATERMARK), process: metrics(MAX_WATERMARK)}
    )
    assert "makes no watermarks" in found[0].release
    assert found[1].held_by is None and found[1].release == "its input has ended"
    (aligning,) = explain_watermarks(job, {source: metrics(7, aligned=True)})
    assert aligning.held_by == "its alignment group"
    (idle,) = explain_watermarks(job, {process: metrics(7, idle=True)})
    assert "active again" in idle.release


def test_watermarks_are_readable_even_when_they_are_no_dates():
    assert watermark_text(MAX_WATERMARK) == "at the end"
    assert str(10**17) in watermark_text(10**17)


def test_a_running_job_explains_itself():
    with local_environment(seed=1) as env:
        env.set_parallelism(1)
        source = DataGeneratorSource(lambda n: ("v", 1_000 + n), rate_per_second=100)
        stream = env.from_source(source, STAMPED, "numbers")
        client = env_client(env, stream)
        explanations = []
        while not any(e.watermark > 1_000 for e in explanations):
            explanations = client.explain_watermark()
        client.cancel().result()
    assert {e.operator for e in explanations} == {"Source: numbers", "KeyedProcess -> Print"}


def env_client(env, stream):
    stream.key_by(lambda v: v[0]).process(Keep()).print()
    return env.execute_async()
