"""Random programs: one seed decides the graph, its layout, its input and what must come out.

A program grows from its sources branch by branch: stages are appended, branches fork, run through
different stages and join again, and every branch ends in a sink. Beside each branch runs the
model, a plain list of all its records. A program is confluent whatever the seed, so the list, as
a multiset, is the only right answer; where every operator so far has one subtask, so is its order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.common.typeinfo import Types
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.client_sinks import CollectSink
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.program import Program
from penstock.testing.event_programs import EventCase
from penstock.testing.stages import (
    Alarms,
    AtEnd,
    Box,
    Burst,
    CountUp,
    EmitState,
    FailOnce,
    Follow,
    HoldBack,
    Key,
    Partial,
    Records,
    Recycle,
    RunningCount,
    RunningSum,
    Scramble,
    Scribble,
    Settle,
    Sieve,
    Stage,
    Tally,
    number,
)

MOST_RECORDS = 500
"""A branch that has more of them grows no further, so that a run stays short."""


@dataclass(frozen=True)
class Branch:
    """A stream under construction, and the model of it."""

    stream: DataStream
    records: Records
    parallelism: int
    ordered: bool
    """Records come in exactly this order."""
    rising: bool = False
    """Records are (key, 1), (key, 2), ... and in this order in each subtask."""
    add_up: str | None = None
    """Records of a key must be added up ("sum") or only the largest counts ("max")."""


@dataclass(frozen=True)
class ExpectedSink:
    """A sink, and what must be in it at the end."""

    uid: str
    mark: str | None
    """What a file sink's lines begin with; None for a sink that collects."""
    branch: Branch

    def differences(self, subtasks: list[list[Any]], at_least_once: bool) -> str | None:
        """What is wrong with the records that arrived, as text, by subtask of the sink."""
        branch = self.branch
        arrived = [value for values in subtasks for value in values]
        if branch.add_up is not None:
            if at_least_once:
                return None
            arrived = _added_up(arrived, branch.add_up)
        expected = Counter(map(repr, branch.records))
        actual = Counter(map(repr, arrived))
        missing, extra = expected - actual, actual - expected
        if at_least_once:
            extra = Counter({value: n for value, n in extra.items() if value not in expected})
        if missing or extra:
            return f"{self.uid}: missing {_few(missing)}, too many {_few(extra)}"
        if at_least_once:
            return None
        if branch.ordered and list(map(repr, arrived)) != list(map(repr, branch.records)):
            return f"{self.uid}: the records are right and their order is not"
        if branch.rising:
            return self._not_rising(subtasks)
        return None

    def surplus(self, subtasks: list[list[Any]]) -> str | None:
        """Records that must never be there, as text."""
        arrived = Counter(repr(value) for values in subtasks for value in values)
        extra = arrived - Counter(map(repr, self.branch.records))
        return f"too many: {_few(extra)}" if extra else None

    def _not_rising(self, subtasks: list[list[Any]]) -> str | None:
        for values in subtasks:
            counts: Counter[str] = Counter()
            for key, count in values:
                counts[key] += 1
                if count != counts[key]:
                    return f"{self.uid}: {key} has {count} where {counts[key]} is due"
        return None


@dataclass(frozen=True)
class ObservedSink(ExpectedSink):
    """A sink whose records say what their functions saw, such as the time."""

    expected: Callable[[list[Any]], Counter[Any]]
    """What must be in it, given what was seen."""

    def differences(self, subtasks: list[list[Any]], at_least_once: bool) -> str | None:
        if at_least_once:
            return None
        arrived, expected = self._both(subtasks)
        missing, extra = expected - arrived, arrived - expected
        if missing or extra:
            return f"{self.uid}: missing {_few(missing)}, too many {_few(extra)}"
        return None

    def surplus(self, subtasks: list[list[Any]]) -> str | None:
        arrived, expected = self._both(subtasks)
        extra = arrived - expected
        return f"too many: {_few(extra)}" if extra else None

    def _both(self, subtasks: list[list[Any]]) -> tuple[Counter[str], Counter[str]]:
        values = [value for subtask in subtasks for value in subtask]
        expected = self.expected(values)
        return Counter(map(repr, values)), Counter(map(repr, expected.elements()))


def _added_up(values: list[Any], how: str) -> list[tuple[Any, int]]:
    totals: dict[Any, int] = {}
    for key, value in values:
        totals[key] = max(totals.get(key, 0), value) if how == "max" else totals.get(key, 0) + value
    return list(totals.items())


def _few(values: Counter[str]) -> str:
    shown = ", ".join(f"{value} x{count}" for value, count in values.most_common(5))
    return f"{sum(values.values())} records ({shown})" if values else "none"


class Same:
    """A generator's function that changes nothing."""

    def __call__(self, n: int) -> int:
        return n


def by_key(key: Any, partitions: int) -> int:
    """A partitioner that leaves the last partition out where it can."""
    return number(key) % max(1, partitions - 1)


class ProgramBuilder:
    """Builds one random program into `env`."""

    def __init__(
        self,
        rng: random.Random,
        env: StreamExecutionEnvironment,
        root: str,
        run: object,
        stateless: bool,
    ) -> None:
        self._rng = rng
        self._env = env
        self._root = root
        self._run = run
        self._stateless = stateless
        self._groups = rng.random() < 0.12
        self._widest = rng.choice((1, 2, 2, 3, 4))
        self._placed: list[int] = []
        self._inputs: list[int] = []
        self.sinks: list[ExpectedSink] = []
        self.mutates = False
        """Whether a function changes what it was given or gave away."""
        self.lines: list[str] = []
        """The program, for people to read."""

    @property
    def program(self) -> Program:
        """The program as it was built."""
        return self._env._program

    def build(self) -> None:
        rng = self._rng
        branches = [self._source() for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        for _ in range(rng.randrange(1, 7)):
            branches = self._grow(branches)
        for branch in branches:
            self._sink(branch)

    def build_case(self, case: EventCase) -> None:
        """A program by event time, whose answer goes to files."""
        self.lines.append(f"{case.kind} of {len(case.events)} events")
        records = sorted(case.answer().elements(), key=repr)
        self._sink(Branch(case.build(self._env), records, 0, ordered=False), collecting=False)

    def build_observed(
        self,
        name: str,
        build: Callable[[StreamExecutionEnvironment], DataStream],
        expected: Callable[[list[Any]], Counter[Any]],
    ) -> None:
        """A program whose answer, in files, depends on what its functions saw."""
        self.lines.append(name)
        self._sink(Branch(build(self._env), [], 0, ordered=False), collecting=False)
        sink = self.sinks.pop()
        self.sinks.append(ObservedSink(sink.uid, sink.mark, sink.branch, expected))

    # --- growing ------------------------------------------------------------------------------

    def _grow(self, branches: list[Branch]) -> list[Branch]:
        rng = self._rng
        index = rng.randrange(len(branches))
        branch, others = branches[index], branches[:index] + branches[index + 1 :]
        if branch.add_up is not None:
            return [*others, self._settle(branch)]
        action = rng.random()
        if action < 0.12 and len(branches) < 4:
            self.lines.append("fork")
            return [*others, branch, branch]
        if action < 0.22:
            return [*others, self._diamond(branch)]
        if action < 0.32 and others and others[0].add_up is None:
            return [self._union(branch, others[0]), *others[1:]]
        return [*others, self._extend(branch)]

    def _diamond(self, branch: Branch) -> Branch:
        self.lines.append("diamond of")
        sides = [branch, branch]
        for i, side in enumerate(sides):
            if self._rng.random() < 0.8:
                sides[i] = self._stage(side, self._stateless_stage(side))
        return self._union(*sides)

    def _union(self, left: Branch, right: Branch) -> Branch:
        declared = {left.stream._type(), right.stream._type()} - {None}
        if len(declared) > 1:
            # A union of different types is refused: one of them says nothing of its type.
            right = self._stage(right, Box(False))
        self.lines.append("union")
        stream = left.stream.union(right.stream)
        # A union is no operator: the next one takes all its inputs.
        return Branch(stream, left.records + right.records, 0, ordered=False)

    def _extend(self, branch: Branch) -> Branch:
        if self._stateless or self._rng.random() < 0.35:
            return self._stage(branch, self._stateless_stage(branch))
        return self._stage(branch, self._keyed_stage(branch))

    def _stateless_stage(self, branch: Branch) -> Stage:
        rng = self._rng
        kinds: list[Callable[[], Stage]] = [
            lambda: Scramble(rng.randrange(1, 1000)),
            lambda: Sieve(rng.randrange(2, 6)),
            lambda: Box(rng.random() < 0.5),
            lambda: Scribble(rng.randrange(9)),
            lambda: Scribble(rng.randrange(9)),
        ]
        if branch.records:
            kinds.append(lambda: FailOnce(self._run, number(rng.choice(branch.records))))
        if len(branch.records) < MOST_RECORDS // 2:
            kinds.append(lambda: Burst(rng.randrange(97), rng.choice((0, 50, 300))))
            kinds.append(lambda: Recycle(rng.randrange(1, 3)))
        return rng.choice(kinds)()

    def _keyed_stage(self, branch: Branch) -> Stage:
        rng = self._rng
        key = Key(rng.choice(Key.KINDS), rng.choice((1, 3, 7, 20, 60)))
        kind = rng.choice(Tally.KINDS)
        kinds: list[Callable[[], Stage]] = [
            lambda: CountUp(key, kind, rng.choice((None, 1, 3, 3))),
            lambda: CountUp(key, kind, rng.choice((None, 1, 3, 3))),
            lambda: AtEnd(key, kind),
            lambda: Alarms(key, rng.randrange(1, 6)),
            lambda: EmitState(key),
            lambda: RunningCount(key),
            lambda: Partial(key, rng.choice((1, 10, 100))),
            lambda: RunningSum(key),
            lambda: HoldBack(key, rng.choice(HoldBack.KINDS), rng.choice((2, 10, 1000))),
        ]
        if branch.ordered:
            kinds += [lambda: Follow(key)] * 3
        return rng.choice(kinds)()

    # --- adding a stage -----------------------------------------------------------------------

    def _stage(self, branch: Branch, stage: Stage) -> Branch:
        rng = self._rng
        copies, stream = 1, branch.stream
        self._placed, self._inputs = [], []
        keyed = hasattr(stage, "key")
        self.mutates |= isinstance(stage, (Scribble, Recycle, EmitState, RunningSum))
        if not keyed and rng.random() < 0.5:
            stream, copies = self._spread(branch)
        stream = stage.attach(stream, self._place)
        self.lines.append(f"  {stage!r} x{self._placed}")
        kept = branch.ordered and all(p == 1 for p in self._placed)
        records = stage.model(branch.records * copies)
        return Branch(
            stream,
            records,
            self._placed[-1],
            kept and not isinstance(stage, (AtEnd, Alarms, Partial, RunningSum, HoldBack)),
            isinstance(stage, RunningCount) or (isinstance(stage, CountUp) and not stage.cycle),
            {Partial: "sum", RunningSum: "max"}.get(type(stage)),
        )

    def _settle(self, branch: Branch) -> Branch:
        self._placed, self._inputs = [], []
        stage = Settle(branch.add_up == "max")
        stream = stage.attach(branch.stream, self._place)
        self.lines.append(f"  {stage!r} x{self._placed}")
        return Branch(stream, branch.records, self._placed[-1], ordered=False)

    def _spread(self, branch: Branch) -> tuple[DataStream, int]:
        """Say how records reach the next operator; how many copies of each will."""
        stream, rng = branch.stream, self._rng
        kind = rng.choice(("rebalance", "broadcast", "custom", "forward"))
        if kind == "forward" and branch.parallelism:
            self._inputs = [branch.parallelism]
            self.lines.append("  forward")
            return stream.forward(), 1
        parallelism = rng.randrange(1, self._widest + 1)
        if kind == "broadcast" and len(branch.records) * parallelism < MOST_RECORDS:
            self._inputs = [parallelism]
            self.lines.append("  broadcast")
            return stream.broadcast(), parallelism
        if kind == "custom":
            self.lines.append("  custom")
            return stream.partition_custom(by_key, number), 1
        self.lines.append("  rebalance")
        return stream.rebalance(), 1

    def _place(self, stream: DataStream) -> DataStream:
        """Lay out the operator that was just added."""
        rng = self._rng
        if self._inputs:
            parallelism = self._inputs.pop()
        else:
            parallelism = rng.randrange(1, self._widest + 1)
        self._placed.append(parallelism)
        stream = stream.set_parallelism(parallelism)
        luck = rng.random()
        if luck < 0.1:
            stream = stream.disable_chaining()
        elif luck < 0.2:
            stream = stream.start_new_chain()
        if self._groups and rng.random() < 0.2:
            stream = stream.slot_sharing_group(rng.choice(("default", "other")))
        return stream

    # --- ends ---------------------------------------------------------------------------------

    def _source(self) -> Branch:
        rng, env = self._rng, self._env
        count = rng.choice((rng.choice((0, 1, 30)), 80, 150, 150, 200, 300))
        kind = rng.choice(("sequence", "collection", "generator", "generator"))
        parallelism = 1
        if kind == "collection":
            numbers = [rng.randrange(500) for _ in range(count)]
            values = [rng.choice((n, str(n), [n, 0], (n, None), n / 4)) for n in numbers]
            stream = env.from_collection(values)
        else:
            values = list(range(count))
            parallelism = rng.randrange(1, self._widest + 1)
            if kind == "sequence" and count:
                source: Any = NumberSequenceSource(0, count - 1)
            else:
                source = DataGeneratorSource(
                    Same(), count, rng.choice((None, 500.0, 500.0, 2000.0))
                )
            stream = env.from_source(source, WatermarkStrategy.no_watermarks(), kind, Types.LONG())
            stream = stream.set_parallelism(parallelism)
        self.lines.append(f"{kind} of {count} x{parallelism}")
        return Branch(stream, values, parallelism, ordered=parallelism == 1)

    def _sink(self, branch: Branch, collecting: bool | None = None) -> None:
        rng = self._rng
        index = len(self.sinks)
        if collecting is None:
            collecting = rng.random() < 0.25
        uid = f"one-of-the-sinks-{index}"
        encoder = MarkedLine(f"{index}|")
        # All file sinks write to one directory: they must not get in each other's way.
        files = _file_sink(f"{self._root}/out", encoder, self._seed_of_sink(index, branch))
        same = branch.parallelism and rng.random() < 0.7
        parallelism = branch.parallelism if same else rng.randrange(1, self._widest + 1)
        added = branch.stream.sink_to(CollectSink() if collecting else files).uid(uid)
        added.set_parallelism(parallelism)
        if rng.random() < 0.2:
            added.disable_chaining()
        name = "collect" if collecting else "files"
        self.lines.append(f"  {name} x{parallelism}, {len(branch.records)} records expected")
        forward = parallelism == branch.parallelism
        branch = replace(
            branch,
            rising=branch.rising and forward,
            ordered=branch.ordered and parallelism == 1,
        )
        self.sinks.append(ExpectedSink(uid, None if collecting else encoder.mark, branch))

    def _seed_of_sink(self, index: int, branch: Branch) -> random.Random:
        """Chance of its own: how files are cut changes nothing else in the program."""
        return random.Random(f"{index} {len(branch.records)} {len(self.lines)}")


def _file_sink(directory: str, encoder: MarkedLine, rng: random.Random) -> FileSink:
    builder: FileSink.BaseBuilder = FileSink.for_row_format(directory, encoder)
    rolling = RollingPolicy(
        rng.choice((None, None, 1, 40, 400)), rng.choice((None, 20)), rng.choice((None, 20))
    )
    builder = builder.with_rolling_policy(rolling).with_bucket_check_interval(10)
    if rng.random() < 0.5:
        builder = builder.with_bucket_assigner(OneFolder())
    return builder.build()


class OneFolder(BucketAssigner):
    """All records to one folder, two levels down: what is in order stays so."""

    def get_bucket_id(self, element: Any, context: Any) -> str:
        return "day=1/hour=2"


class MarkedLine:
    """An encoder that says in every line which sink wrote it."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __call__(self, value: Any) -> bytes:
        return f"{self.mark}{value!r}\n".encode()
