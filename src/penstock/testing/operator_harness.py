"""The operator harness: functions fed record by record, with a clock that a test moves.

    with OperatorHarness(lambda stream: stream.key_by(len).process(Count())) as harness:
        harness.process("abc")
        harness.advance_processing_time(60_000)
        assert harness.output == [(3, 1)]
        assert harness.state("count", 3) is None

The functions run in real slots, compiled into the loops that run on Spark; only the clock, the
source and the sink are the harness's. Every call returns when all that follows from it is done.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.checkpoint.handles import MIN_WATERMARK, OperatorSnapshot, SubtaskSnapshot
from penstock.checkpoint.store import MEMORY, CheckpointStore
from penstock.checkpoint.union_state import union_handles, with_union
from penstock.common.accumulators import checked_result
from penstock.common.keys import Router
from penstock.common.metrics import MetricReading
from penstock.common.output_tag import OutputTag
from penstock.common.settings import RuntimeSettings
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.client_sinks import CollectSink
from penstock.datastream.invocation import Invocation, invoked
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.datastream.streams import DataStream
from penstock.errors import ProgramError
from penstock.graph.execution_graph import ExecutionGraph, SubtaskId, build_execution_graph
from penstock.graph.job_graph import build_job_graph
from penstock.jobmanager.reports import Reports, accumulator_results, readings_of
from penstock.network.messages import (
    Acknowledge,
    AssignSplits,
    Complete,
    Decline,
    Deploy,
    EmitCredit,
    Emitted,
    Failed,
    SplitRequest,
    Trigger,
)
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.runtime.operators import RuntimeFunction, RuntimeOperator
from penstock.testing.fed_source import FedSource, Feed
from penstock.testing.local_slots import LocalSlots, ManualClock

_SOURCE = "harness-source-"
_OUTPUT = "harness-output"
_SIDE_OUTPUT = "harness-side-output-"


@dataclass(frozen=True)
class HarnessSnapshot:
    """The state of all operators at one moment: what `OperatorHarness.restore` takes."""

    attempt: int
    checkpoint: int
    watermark: int
    operators: dict[str, tuple[OperatorSnapshot, ...]]
    """By uid, one for each subtask."""
    segments: dict[str, bytes]


class OperatorHarness:
    """Runs what `build` adds to a stream.

    `build` is called with the stream of the records that are processed (with as many streams as
    there are `inputs`) and returns the stream whose records are the output:
    `lambda stream: stream.map(Parse())`. Function objects are pickled for every subtask, as on a
    cluster, so a test sees what a function does by its output, its state and its metrics, not by
    looking at the object that it made.
    """

    def __init__(
        self,
        build: Callable[..., DataStream],
        parallelism: int = 1,
        inputs: int = 1,
        side_outputs: Iterable[OutputTag] = (),
        max_parallelism: int = 128,
        processing_time: int = 0,
    ) -> None:
        self._build = build
        self._max_parallelism = max_parallelism
        self._clock = ManualClock(processing_time)
        self._feeds = [Feed() for _ in range(inputs)]
        self._sides: dict[str, list[Any]] = {tag.tag_id: [] for tag in side_outputs}
        self._acknowledged: dict[SubtaskId, SubtaskSnapshot] = {}
        self._segments: dict[str, bytes] = {}
        self._error: BaseException | None = None
        self._attempt = 0
        self._checkpoint = 0
        self._watermark = MIN_WATERMARK
        self._closed = False
        self.parallelism = parallelism
        self.output: list[Any] = []
        """What came out so far. A test may clear it."""
        try:
            self._slots = self._start(None)
        except BaseException:
            self._forget_feeds()
            raise

    # --- input --------------------------------------------------------------------------------

    def process(self, *values: Any, input: int = 1, timestamp: int | None = None) -> None:
        """Let records come, one after another, on the first input or on another.

        With a `timestamp` that is when they happened.
        """
        for value in values:
            self._check()
            self._feeds[input - 1].put(value, timestamp)
            self._run()

    def advance_processing_time(self, ms: int) -> None:
        """Let `ms` milliseconds pass. Timers fire in order, each when the clock shows its time."""
        self._check()
        target = self._clock.now + ms
        while True:
            due = self._slots.next_wakeup_ms()
            self._clock.now = target if due is None else max(self._clock.now, min(due, target))
            self._run()
            if self._clock.now >= target:
                return

    def advance_watermark(self, timestamp: int) -> None:
        """Let event time come to `timestamp`: timers up to it fire."""
        self._check()
        if timestamp < self._watermark:
            raise ProgramError(
                f"the watermark is at {self._watermark} and cannot go back to {timestamp}"
            )
        self._watermark = timestamp
        # Sources make no watermarks of their own here: it begins where theirs would.
        for task in self._slots.subtasks():
            if task.gate is None:
                task.stepping.begin(task.time.advance(timestamp))
        self._run()

    def end_input(self) -> None:
        """There are no more records: event time comes to its end, and all its timers fire."""
        self._check()
        for feed in self._feeds:
            feed.end()
        self._run()

    # --- looking ------------------------------------------------------------------------------

    def processing_time(self) -> int:
        """What the clock shows."""
        return self._clock.now

    def state(self, name: str, key: Any) -> Any:
        """What the state `name` holds for `key`; None, or an empty list or dict, if nothing.

        A list state is given as a list, a map state as a dict, reducing and aggregating state as
        their results.
        """
        found: list[Any] = []
        known: set[str] = set()
        for operator in self._operators():
            if not isinstance(operator, RuntimeKeyedFunction):
                continue
            states = operator.state.bound()
            known.update(states)
            owner = Router(operator.info.max_parallelism, operator.info.parallelism)[key]
            if name in states and owner == operator.info.subtask:
                found.append(_read(operator, *states[name], key))
        if name not in known:
            raise ProgramError(f"there is no state {name!r}; there are: {sorted(known)}")
        if len(found) > 1:
            raise ProgramError(f"state {name!r} is in several operators; test them one by one")
        return found[0]

    def broadcast_state(self, name: str) -> dict[Any, Any]:
        """What the broadcast state `name` holds, which is the same in every subtask."""
        for operator in self._operators():
            if isinstance(operator, RuntimeFunction) and operator.broadcast is not None:
                return dict(operator.broadcast.read_only(name).items())
        raise ProgramError("there is no operator with broadcast state")

    def side_output(self, output_tag: OutputTag) -> list[Any]:
        """What was sent to a side output so far; the tag must be among `side_outputs`."""
        if output_tag.tag_id not in self._sides:
            raise ProgramError(
                f"{output_tag!r} is not collected: name it in OperatorHarness(side_outputs=...)"
            )
        return self._sides[output_tag.tag_id]

    def metrics(self) -> list[MetricReading]:
        """The metrics that the functions registered, as they are now."""
        return list(readings_of(self._reports()))

    def accumulators(self) -> dict[str, Any]:
        """The accumulators over all subtasks, as they are now."""
        results = accumulator_results(self._reports())
        return {name: checked_result(name, results) for name in results}

    # --- checkpoints --------------------------------------------------------------------------

    def snapshot(self) -> HarnessSnapshot:
        """Take a checkpoint."""
        self._check()
        self._checkpoint += 1
        self._acknowledged.clear()
        confirmed = self._checkpoint - 1
        self._slots.tell_all(Trigger(self._attempt, self._checkpoint, confirmed))
        self._run()
        self._slots.tell_all(Complete(self._attempt, self._checkpoint))
        operators: dict[str, list[OperatorSnapshot]] = {}
        for _, subtask in sorted(self._acknowledged.items(), key=lambda item: item[0]):
            for uid, operator in subtask.operators.items():
                operators.setdefault(uid, []).append(operator)
        return HarnessSnapshot(
            self._attempt,
            self._checkpoint,
            self._watermark,
            {uid: tuple(parts) for uid, parts in operators.items()},
            dict(self._segments),
        )

    def restore(self, snapshot: HarnessSnapshot, parallelism: int | None = None) -> None:
        """Begin again from a snapshot: of this harness or another, at any parallelism.

        What was processed since is forgotten; `output` and the clock are left as they are.
        """
        if self._closed:
            raise ProgramError("this harness is closed")
        self._slots.close()
        self._error = None
        for feed in self._feeds:
            feed.values.clear()
            feed.ended = False
        self.parallelism = parallelism or self.parallelism
        self._attempt = max(self._attempt, snapshot.attempt)
        self._checkpoint = max(self._checkpoint, snapshot.checkpoint)
        self._watermark = snapshot.watermark
        self._segments.update(snapshot.segments)
        self._slots = self._start(snapshot)
        # Timers that came due meanwhile fire now, as after every restart.
        self._run()

    def close(self) -> None:
        """Close the functions; what one of them raises is raised."""
        if self._closed:
            return
        self._closed = True
        self._forget_feeds()
        for error in self._slots.close():
            raise error

    def __enter__(self) -> OperatorHarness:
        return self

    def __exit__(self, kind: object, *exc_info: object) -> None:
        try:
            self.close()
        except Exception:
            # What went wrong first is what its author needs to see.
            if kind is None:
                raise

    # --- inside -------------------------------------------------------------------------------

    def _start(self, snapshot: HarnessSnapshot | None) -> LocalSlots:
        self._attempt += 1
        graph = self._graph()
        deploy = Deploy(
            self._attempt,
            RuntimeSettings(),
            CheckpointStore(MEMORY, "harness"),
            {} if snapshot is None else _distribute(graph, snapshot),
            dict(self._segments),
            {},
        )
        return LocalSlots(graph, deploy, self._clock, self._hear)

    def _graph(self) -> ExecutionGraph:
        # A test must not depend on a configuration file nearby.
        with invoked(Invocation(file={})):
            env = StreamExecutionEnvironment()
        env.set_parallelism(self.parallelism).set_max_parallelism(self._max_parallelism)
        output = self._build(*(self._input(env, feed) for feed in self._feeds))
        output.sink_to(CollectSink()).uid(_OUTPUT)
        for tag in self._sides:
            side = output.get_side_output(OutputTag(tag))
            side.sink_to(CollectSink()).uid(f"{_SIDE_OUTPUT}{tag}")
        return build_execution_graph(build_job_graph(env._program.stream_graph(), "harness"))

    def _input(self, env: StreamExecutionEnvironment, feed: Feed) -> DataStream:
        source, no_watermarks = FedSource(feed), WatermarkStrategy.no_watermarks()
        stream = env.from_source(source, no_watermarks, "harness").set_parallelism(1)
        # Said here, or it would depend on the parallelism, and with it the uids of operators.
        return stream.uid(f"{_SOURCE}{self._feeds.index(feed)}").rebalance()

    def _forget_feeds(self) -> None:
        for feed in self._feeds:
            feed.forget()

    def _check(self) -> None:
        if self._closed:
            raise ProgramError("this harness is closed")
        if self._error is not None:
            raise ProgramError("a function has failed; restore() a snapshot to go on")
        if self._feeds[0].ended:
            raise ProgramError("the input has ended; restore() a snapshot to go on")

    def _run(self) -> None:
        self._slots.run()
        if self._error is not None:
            raise self._error

    def _hear(self, message: Any) -> None:
        if isinstance(message, Emitted):
            side = message.uid.removeprefix(_SIDE_OUTPUT)
            collected = self.output if side == message.uid else self._sides[side]
            collected.extend(pickle.loads(value) for value in message.values)
            subtask = SubtaskId(*message.subtask)
            credit = EmitCredit(self._attempt, subtask, message.uid, 1)
            self._slots.tell_subtask(subtask, credit)
        elif isinstance(message, SplitRequest):
            subtask = SubtaskId(*message.subtask)
            self._slots.tell_subtask(subtask, AssignSplits(self._attempt, subtask, None))
        elif isinstance(message, Acknowledge):
            self._acknowledged[SubtaskId(*message.subtask)] = message.snapshot
            self._segments.update(message.segments)
        elif isinstance(message, Failed):
            self._error = self._error or message.error
        elif isinstance(message, Decline):
            self._error = self._error or ProgramError(f"the snapshot failed: {message.reason}")

    def _operators(self) -> Iterable[RuntimeOperator]:
        for task in self._slots.subtasks():
            yield from task.operators

    def _reports(self) -> Reports:
        reports = {task.id: task.report() for task in self._slots.subtasks()}
        return {subtask: report for subtask, report in reports.items() if report is not None}


def _distribute(
    graph: ExecutionGraph, snapshot: HarnessSnapshot
) -> dict[tuple[int, int], SubtaskSnapshot]:
    """Give each subtask its part: its own, or at another parallelism all, to pick its keys from."""
    uids = {node.uid for vertex in graph.job.vertices for node in vertex.nodes}
    for uid, parts in snapshot.operators.items():
        if uid not in uids and any(part.segments for part in parts):
            raise ProgramError(
                f"the snapshot has state of an operator {uid!r}, which is not there any more; "
                "give operators a uid() that stays"
            )
    restored: dict[tuple[int, int], SubtaskSnapshot] = {}
    for subtask in graph.subtasks():
        vertex = graph.job.vertex(subtask.vertex)
        operators = {}
        for node in vertex.nodes:
            parts = snapshot.operators.get(node.uid, ())
            if len(parts) == vertex.parallelism:
                operators[node.uid] = with_union(parts[subtask.index], union_handles(parts))
            elif parts:
                segments = tuple(handle for part in parts for handle in part.segments)
                operators[node.uid] = OperatorSnapshot(segments)
        restored[subtask] = SubtaskSnapshot(False, snapshot.watermark, operators)
    return restored


def _read(operator: RuntimeKeyedFunction, kind: str, state: Any, key: Any) -> Any:
    context = operator.key_context
    before, context.key = context.key, key
    try:
        if kind == "value":
            return state.value()
        if kind == "map":
            return dict(state.items())
        return list(state.get()) if kind == "list" else state.get()
    finally:
        context.key = before
