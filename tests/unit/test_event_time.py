"""Timestamps and watermarks: where they come from, how they travel, what holds them back."""

from __future__ import annotations

import logging

import pytest

from penstock.checkpoint.handles import MAX_WATERMARK, MIN_WATERMARK
from penstock.checkpoint.store import CheckpointStore
from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkGenerator
from penstock.connectors.source import QueueEnumerator, Source, SourceReader
from penstock.datastream import (
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from penstock.errors import JobFailedError, ProgramError
from penstock.graph.job_graph import build_job_graph
from penstock.network.elements import END_OF_INPUT, Watermark, WatermarkStatus
from penstock.runtime.event_time import EventClock
from penstock.runtime.gate import InputGate
from penstock.runtime.input_channel import InputChannel
from penstock.testing import OperatorHarness, local_environment

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()


def by_second(value, record_timestamp):
    return value[1]


def bounded(ms, assigner=by_second):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(ms))
    return strategy.with_timestamp_assigner(assigner)


class Clock:
    def __init__(self):
        self.now = 1_000

    def now_ms(self):
        return self.now

    def monotonic_ns(self):
        return self.now * 1_000_000

    def monotonic_ms(self):
        return self.now


class See(KeyedProcessFunction):
    """Says when a record happened and where the watermark is; a timer ten later."""

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        yield "record", ctx.timestamp(), timers.current_watermark()
        timers.register_event_time_timer(ctx.timestamp() + 10)

    def on_timer(self, timestamp, ctx):
        yield "timer", timestamp, ctx.timer_service().current_watermark()


class Stamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


# --- strategies ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WatermarkStrategy.for_bounded_out_of_orderness(5), "Duration, not a int"),
        (lambda: bounded(-1), "negative"),
        (lambda: MONOTONOUS.with_idleness(Duration.of_millis(0)), "positive"),
        (lambda: MONOTONOUS.with_max_jump(Duration.of_millis(0)), "positive"),
        (lambda: MONOTONOUS.with_timestamp_assigner("ts"), "TimestampAssigner or a function"),
        (lambda: WatermarkStrategy.for_generator(Punctuated()), "every split has its own"),
        (
            lambda: MONOTONOUS.with_watermark_alignment("g", Duration.of_millis(-1)),
            "must not be negative",
        ),
    ],
)
def test_a_wrong_strategy_is_refused_where_it_is_made(make, message):
    with pytest.raises(ProgramError, match=message):
        make()


def test_watermarks_of_records_without_timestamps_are_refused_when_the_program_is_built():
    env = StreamExecutionEnvironment()
    env.from_collection([1]).assign_timestamps_and_watermarks(MONOTONOUS).print()
    with pytest.raises(ProgramError, match="with_timestamp_assigner"):
        build_job_graph(env._program.stream_graph(), "job")


# --- the plan -----------------------------------------------------------------------------------


def plan(build, parallelism=1):
    env = StreamExecutionEnvironment()
    env.set_parallelism(parallelism)
    build(env.from_collection([("a", 1)]))
    return build_job_graph(env._program.stream_graph(), "job").describe()


def test_timestamps_travel_only_where_somebody_reads_them():
    def build(stream):
        stamped = stream.assign_timestamps_and_watermarks(bounded(0))
        stamped.key_by(lambda v: v[0]).process(See()).key_by(lambda v: v[0]).reduce(max).print()

    assert plan(build).splitlines() == [
        "[0] Source: Collection Source -> Timestamps/Watermarks x1 (default)",
        "    Timestamps/Watermarks --HASH with time--> [1]",
        "[1] KeyedProcess x1 (default)",
        "    KeyedProcess --HASH--> [2]",
        "[2] Reduce -> Print x1 (default)",
    ]


def test_event_time_begins_in_a_chain_of_its_own_if_something_before_it_has_another():
    def build(stream):
        first = stream.assign_timestamps_and_watermarks(bounded(0)).map(lambda v: v)
        first.assign_timestamps_and_watermarks(bounded(5)).print()

    assert plan(build).splitlines() == [
        "[0] Source: Collection Source -> Timestamps/Watermarks -> Map x1 (default)",
        "    Map --FORWARD with time--> [1]",
        "[1] Timestamps/Watermarks -> Print x1 (default)",
    ]


def test_what_branches_off_before_it_keeps_event_time_out_of_the_chain():
    def build(stream):
        mapped = stream.map(lambda v: v)
        mapped.print()
        mapped.assign_timestamps_and_watermarks(bounded(0)).print()

    assert "Map --FORWARD--> [1]" in plan(build)


# --- the clock of a subtask ---------------------------------------------------------------------


def feed(clock, split, *timestamps):
    clock.select(split)
    for timestamp in timestamps:
        clock.current.latest = max(clock.current.latest, timestamp)
        clock.current.touched = True
    clock.at_hand = False


def test_the_watermark_is_the_minimum_over_the_splits():
    clock = EventClock(bounded(5), Clock(), ())
    clock.retain(["a", "b"])
    feed(clock, "a", 100)
    assert clock.watermark() == MIN_WATERMARK
    feed(clock, "b", 50)
    assert clock.watermark() == 50 - 5 - 1
    assert clock.holding().split == "b"
    clock.retain(["a"])
    assert clock.watermark() == 100 - 5 - 1


def test_an_idle_split_is_not_waited_for_until_it_has_records_again():
    strategy = bounded(0).with_idleness(Duration.of_millis(100))
    clock = EventClock(strategy, Clock(), ())
    clock.retain(["a", "b"])
    feed(clock, "a", 100)
    clock.tick(1_050, 0)
    feed(clock, "a", 200)
    clock.tick(1_100, 0)
    assert clock.watermark() == 199
    assert not clock.idle()
    clock.tick(1_199, 0)
    assert not clock.idle()
    clock.tick(1_200, 0)
    assert clock.idle()
    feed(clock, "b", 150)
    assert not clock.idle() and clock.watermark() == 149


def test_time_without_room_downstream_is_nobodys_idleness():
    clock = EventClock(bounded(0).with_idleness(Duration.of_millis(100)), Clock(), ())
    clock.tick(2_000, held_up_ms=950)
    assert not clock.idle()
    clock.tick(2_050, held_up_ms=0)
    assert clock.idle()


def test_a_clock_goes_on_where_a_checkpoint_left_it():
    clock = EventClock(bounded(0), Clock(), ())
    clock.retain([["topic", 0], ["topic", 1]])
    feed(clock, ["topic", 0], 70)
    feed(clock, ["topic", 1], 90)
    restored = EventClock(bounded(0), Clock(), clock.snapshot())
    restored.retain([["topic", 0], ["topic", 1]])
    assert restored.watermark() == 69


def test_seconds_in_place_of_milliseconds_are_suspected_once(caplog):
    clock = EventClock(bounded(0), Clock(), ())
    with caplog.at_level(logging.WARNING):
        for tick in (2_000, 3_000):
            feed(clock, None, 1_760_000_000)
            clock.tick(tick, 0)
    assert [r.getMessage().count("looks like seconds") for r in caplog.records] == [1]


# --- the gate -----------------------------------------------------------------------------------


class Gate:
    def __init__(self, channels):
        self.channels = [InputChannel(lambda: None) for _ in range(channels)]
        self.gate = InputGate(self.channels, True, Clock())

    def push(self, channel, element):
        self.gate.push(self.channels[channel], element)
        found = []
        while (derived := self.gate.poll()) is not None:
            found.append(derived)
        return found


IDLE, ACTIVE = WatermarkStatus(True), WatermarkStatus(False)


def test_idle_channels_are_left_out_of_the_minimum():
    gate = Gate(2)
    assert gate.push(0, Watermark(10)) == []
    assert gate.push(1, IDLE) == [Watermark(10)]
    assert gate.push(0, Watermark(20)) == [Watermark(20)]
    # It is behind: the others do not wait until it has caught up.
    assert gate.push(1, ACTIVE) == []
    assert gate.push(1, Watermark(15)) == []
    assert gate.push(0, Watermark(30)) == [Watermark(30)]
    assert gate.push(1, Watermark(35)) == []
    assert gate.push(0, Watermark(40)) == [Watermark(35)]


def test_a_gate_is_idle_when_all_its_open_channels_are():
    gate = Gate(3)
    gate.push(2, END_OF_INPUT)
    assert gate.push(0, Watermark(10)) == []
    assert gate.push(0, IDLE) == []
    assert gate.push(1, Watermark(5)) == [Watermark(5)]
    assert gate.push(1, IDLE) == [Watermark(10), IDLE]
    assert gate.push(1, ACTIVE) == [ACTIVE]


def test_the_end_of_all_channels_is_the_end_of_time_also_for_idle_ones():
    gate = Gate(2)
    gate.push(0, IDLE)
    gate.push(0, END_OF_INPUT)
    assert gate.push(1, END_OF_INPUT) == [Watermark(MAX_WATERMARK), END_OF_INPUT]


# --- programs -----------------------------------------------------------------------------------


def run(build, values, parallelism=1, **config):
    with local_environment(seed=1) as env:
        env.set_parallelism(parallelism)
        stream = env.from_collection(values)
        return list(build(stream).execute_and_collect())


def test_records_have_their_timestamps_and_timers_fire_in_order():
    def build(stream):
        stamped = stream.assign_timestamps_and_watermarks(bounded(0))
        return stamped.key_by(lambda v: v[0]).process(See())

    found = run(build, [("a", 30), ("a", 10), ("a", 20)])
    assert [(kind, at) for kind, at, _ in found] == [
        ("record", 30),
        ("record", 10),
        ("record", 20),
        ("timer", 20),
        ("timer", 30),
        ("timer", 40),
    ]
    assert found[0][2] == MIN_WATERMARK and found[-1][2] == MAX_WATERMARK


class Field(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] if record_timestamp is None else record_timestamp + 1


def test_an_assigner_may_be_a_class_and_sees_the_timestamp_before_it():
    def build(stream):
        strategy = MONOTONOUS.with_timestamp_assigner(Field())
        once = stream.assign_timestamps_and_watermarks(strategy)
        return once.assign_timestamps_and_watermarks(strategy).process(Stamps())

    assert run(build, [("a", 5)]) == [(("a", 5), 6)]


def test_timestamps_pass_through_maps_unions_and_key_selectors():
    def build(stream):
        stamped = stream.assign_timestamps_and_watermarks(bounded(0)).map(lambda v: v[0])
        plain = stream.map(lambda v: v[0] + "!")
        return stamped.union(plain).process(Stamps())

    assert sorted(run(build, [("a", 5)], parallelism=2)) == [("a", 5), ("a!", None)]


class Punctuated(WatermarkGenerator):
    """A watermark with every record that says so; going back once."""

    def on_event(self, value, timestamp, output):
        if value[0] == "mark":
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output):
        pass


class Watermarks(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value[1], ctx.timer_service().current_watermark()


def test_a_punctuated_watermark_is_between_two_records_and_never_goes_back():
    strategy = WatermarkStrategy.for_generator(Punctuated).with_timestamp_assigner(by_second)

    def build(stream):
        stamped = stream.assign_timestamps_and_watermarks(strategy)
        return stamped.key_by(lambda v: 0).process(Watermarks())

    values = [("a", 7), ("mark", 5), ("a", 8), ("mark", 3), ("a", 9)]
    assert run(build, values) == [
        (7, MIN_WATERMARK),
        (5, MIN_WATERMARK),
        (8, 5),
        (3, 5),
        (9, 5),
    ]


@pytest.mark.parametrize(
    ("timestamp", "message"),
    [
        (None, "returned None"),
        (float("nan"), "nan, a float"),
        (float("inf"), "inf, a float"),
        ("12", "a str"),
        (True, "a bool"),
        (-(2**63) - 1, "beyond 64 bits"),
    ],
)
def test_what_is_not_a_timestamp_is_an_error_with_the_record(timestamp, message):
    def build(stream):
        return stream.assign_timestamps_and_watermarks(bounded(0))

    with pytest.raises(JobFailedError) as caught:
        run(build, [("a", timestamp)])
    text = str(caught.value) + str(caught.value.__cause__)
    assert "Timestamps/Watermarks" in text
    with pytest.raises(Exception, match=message):
        raise caught.value.__cause__


def test_records_of_a_wrong_clock_are_diverted_and_move_no_watermark():
    tag = OutputTag("ahead")
    strategy = bounded(0).with_max_jump(Duration.of_days(1), tag)

    def build(stream):
        stamped = stream.assign_timestamps_and_watermarks(strategy)
        return stamped.map(lambda v: v[1]).union(stamped.get_side_output(tag).map(str))

    far = 10**15
    assert sorted(map(repr, run(build, [("a", 5), ("b", far), ("c", 6)]))) == sorted(
        map(repr, [5, 6, str(("b", far))])
    )


def test_the_harness_gives_records_timestamps():
    def build(stream):
        return stream.key_by(lambda v: v).process(See())

    with OperatorHarness(build) as harness:
        harness.process("a", timestamp=100)
        harness.advance_watermark(109)
        harness.process("a", timestamp=200)
        harness.advance_watermark(110)
        assert harness.output == [
            ("record", 100, MIN_WATERMARK),
            ("record", 200, 109),
            ("timer", 110, 110),
        ]


class TwoSplits(Source):
    """Two splits, the second always behind the first; the reader tells them apart."""

    timed = True

    def create_enumerator(self, context, restored):
        return QueueEnumerator(restored if restored is not None else [["a", 0], ["b", 0]])

    def create_reader(self, context):
        return TwoSplitsReader()


class TwoSplitsReader(SourceReader):
    def __init__(self):
        self.splits = {}
        self.last = None

    def add_splits(self, splits):
        self.splits.update(dict(splits))

    def poll(self, limit):
        if len(self.splits) < 2 and not getattr(self, "both", False):
            self.both = True
            return None
        for name in sorted(self.splits, key=lambda name: self.splits[name]):
            self.last = name
            position = self.splits[name]
            if position == 5:
                del self.splits[name]
                continue
            self.splits[name] = position + 1
            return [(name, position * 10 + (100 if name == "a" else 0))]
        return None

    def split_of_last_poll(self):
        return self.last

    def active_splits(self):
        return list(self.splits)

    def snapshot(self):
        return [[name, position] for name, position in self.splits.items()]


def test_a_source_with_timestamps_makes_watermarks_per_split():
    with local_environment(seed=2) as env:
        stream = env.from_source(TwoSplits(), MONOTONOUS, "two").set_parallelism(1)
        found = list(stream.process(Stamps()).execute_and_collect())
    assert sorted(found) == [("a", 100 + 10 * i) for i in range(5)] + [
        ("b", 10 * i) for i in range(5)
    ]


class Given(Source):
    """What a test puts into `records`, without an end."""

    def __init__(self):
        self.records, self.readers = [], []

    def create_enumerator(self, context, restored):
        return QueueEnumerator([0])

    def create_reader(self, context):
        return GivenReader(self, context.wake)


class GivenReader(SourceReader):
    def __init__(self, source, wake):
        self.source = source
        source.wake, self.splits = wake, []

    def add_splits(self, splits):
        self.splits += splits

    def poll(self, limit):
        if not self.splits:
            return None
        found, self.source.records = self.source.records, []
        return found

    def snapshot(self):
        return list(self.splits)


def test_a_clock_that_is_set_back_stops_no_watermark(cluster):
    source = Given()

    def build(env):
        env.from_source(source, bounded(0), "given").print()

    running = cluster(build).run()
    (task,) = running.slots[0].subtasks.values()
    for latest, step in ((100, 200), (200, 200), (300, -3_600_000), (400, 200)):
        source.records = [("v", latest)]
        source.wake()
        running.run()
        running.clock.now += step
        running.run()
        assert task.metrics().watermark == latest - 1


def let_pass(running, ms):
    """Let time pass, and whatever is due meanwhile happen."""
    for _ in range(ms // 200):
        running.clock.now += 200
        running.run()


def test_an_operator_passes_on_that_its_input_is_idle(cluster):
    """What is behind it does not wait for it, whether it ever had records or not."""
    quiet, busy = Given(), Given()
    idles = bounded(0).with_idleness(Duration.of_seconds(1))

    def build(env):
        middle = env.from_source(quiet, idles, "quiet").rebalance().map(lambda pair: pair)
        both = middle.union(env.from_source(busy, bounded(0), "busy"))
        both.key_by(lambda pair: pair[0]).process(See()).print()

    running = cluster(build).run()
    last = running.subtask(running.graph.job.vertices[-1].id)
    busy.records = [("v", 100)]
    busy.wake()
    let_pass(running, 400)
    assert last.metrics().watermark == MIN_WATERMARK, "not idle for long enough"
    let_pass(running, 1_000)
    assert last.metrics().watermark == 99
    quiet.records = [("v", 300)]
    quiet.wake()
    busy.records = [("v", 500)]
    busy.wake()
    let_pass(running, 400)
    assert last.metrics().watermark == 299, "it is waited for again"


def test_a_channel_that_was_ahead_and_is_silent_since_a_restore_holds_nobody_up(cluster, tmp_path):
    ahead, behind = Given(), Given()
    store = CheckpointStore(str(tmp_path), "job")

    def build(env):
        first = env.from_source(ahead, bounded(0), "ahead")
        both = first.union(env.from_source(behind, bounded(0), "behind"))
        both.key_by(lambda pair: pair[0]).process(See()).print()

    def watermark_of_the_last(running):
        let_pass(running, 400)
        return running.subtask(running.graph.job.vertices[-1].id).metrics().watermark

    before = cluster(build, store=store).run()
    for source, latest in ((ahead, 500), (behind, 100)):
        source.records = [("v", latest)]
        source.wake()
    assert watermark_of_the_last(before) == 99
    before.trigger(1)
    before.run()

    after = cluster(build, store=store, restored=before.snapshots(1)).run()
    assert watermark_of_the_last(after) == 99
    behind.records = [("v", 300)]
    behind.wake()
    assert watermark_of_the_last(after) == 299


class Apart(Given):
    """As `Given`, with two splits that are told apart: `records` has a list for each."""

    def __init__(self):
        super().__init__()
        self.records = {"a": [], "b": []}

    def create_reader(self, context):
        return ApartReader(self, context.wake)


class ApartReader(GivenReader):
    last = None

    def poll(self, limit):
        if not self.splits:
            return None
        for split, records in self.source.records.items():
            if records:
                self.last, self.source.records[split] = split, []
                return records
        return []

    def split_of_last_poll(self):
        return self.last

    def active_splits(self):
        return list(self.source.records)


def test_the_slowest_split_of_a_reader_holds_the_watermark_until_it_ends(cluster):
    source = Apart()
    running = cluster(lambda env: env.from_source(source, bounded(0), "apart").print()).run()
    (task,) = running.slots[0].subtasks.values()
    source.records = {"a": [("a", 100)], "b": [("b", 500)]}
    source.wake()
    running.run()
    let_pass(running, 200)
    assert task.metrics().watermark == 99
    del source.records["a"]
    let_pass(running, 200)
    assert task.metrics().watermark == 499


class Pairs(Source):
    """One split; says with every record whether it was asked for timestamps."""

    timed = True

    def create_enumerator(self, context, restored):
        return QueueEnumerator(restored if restored is not None else [0])

    def create_reader(self, context):
        return PairsReader(context.timed)


class PairsReader(SourceReader):
    def __init__(self, timed):
        self.timed = timed
        self.splits = []

    def add_splits(self, splits):
        self.splits.extend(splits)

    def poll(self, limit):
        if not self.splits:
            return None
        self.splits.pop()
        return [("timed", 7)] if self.timed else ["untimed"]

    def snapshot(self):
        return list(self.splits)


def test_a_source_is_asked_for_timestamps_only_where_something_reads_them():
    none = WatermarkStrategy.no_watermarks()
    for strategy, through, expected in (
        (none, lambda s: s.map(str.upper), ["UNTIMED"]),
        (MONOTONOUS, lambda s: s.map(str.upper), ["TIMED"]),
        (none, lambda s: s.process(Stamps()), [("timed", 7)]),
        (none, lambda s: s.rebalance().process(Stamps()), [("timed", 7)]),
    ):
        with local_environment(seed=3) as env:
            stream = env.from_source(Pairs(), strategy, "pairs").set_parallelism(1)
            assert list(through(stream).execute_and_collect()) == expected
