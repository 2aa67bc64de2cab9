"""What several of these tests need: a clock that stands still, and slots without a network."""

from __future__ import annotations

import pickle
import sys
from collections import deque
from pathlib import Path

import cloudpickle
import pytest

from penstock.common.clock import SystemClock
from penstock.common.settings import RuntimeSettings, StateSettings
from penstock.connectors.source import EnumeratorContext, splits_for
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.execution_graph import SubtaskId, build_execution_graph
from penstock.graph.job_graph import build_job_graph
from penstock.graph.operators import SourceOperator
from penstock.network.frames import decode_frame, encode_frame
from penstock.network.messages import (
    Acknowledge,
    AssignSplits,
    AtEnd,
    Deploy,
    EmitCredit,
    Emitted,
    Failed,
    SplitRequest,
    Trigger,
)
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.slot import Slot
from penstock.state.choice import make_backend

# Tests import the modules beside this file by name.
sys.path.insert(0, str(Path(__file__).parent))
# Those of Kafka have parts in common with tests that need a real broker.
sys.path.append(str(Path(__file__).parents[1] / "integration"))

BACKENDS = {
    "hashmap": StateSettings(),
    "rocksdb": StateSettings("rocksdb"),
    # A cache of one entry per table: nearly every access goes to the database.
    "rocksdb, no memory": StateSettings("rocksdb", managed=0),
    "rocksdb, files in checkpoints": StateSettings("rocksdb", managed=0, files_from=0),
}


@pytest.fixture(scope="module", params=list(BACKENDS))
def make_state(request):
    """Makes backends of keyed state, of every kind in turn; closes them when they are old."""
    made = deque()

    def make(context, max_parallelism, clock=None):
        settings = BACKENDS[request.param]
        made.append(make_backend(context, max_parallelism, clock or SystemClock(), settings))
        if len(made) > 40:
            made.popleft().close()
        return made[-1]

    yield make
    for backend in made:
        backend.close()


class Clock:
    """Stands still unless it is moved."""

    def __init__(self, now=1_000_000):
        self.now = now

    def now_ms(self):
        return self.now

    def monotonic_ns(self):
        return self.now * 1_000_000

    def monotonic_ms(self):
        return self.now


class Wires:
    """A slot's end of a network that a test can look into and tamper with."""

    def __init__(self, cluster, slot):
        self._cluster = cluster
        self._slot = slot

    def send(self, slot, frame):
        for kept in self._cluster.tamper(self._slot, slot, frame):
            self._cluster.inboxes[slot].append(encode_frame(kept))

    def receive(self):
        inbox = self._cluster.inboxes[self._slot]
        frames = [decode_frame(parts) for parts in inbox]
        inbox.clear()
        return frames


class Cluster:
    """All slots of one attempt, in one thread, with a JobMaster that only hands out splits."""

    ATTEMPT = 1

    def __init__(
        self,
        build,
        parallelism=1,
        store=None,
        restored=None,
        segments=None,
        share_functions=False,
        **settings,
    ):
        env = StreamExecutionEnvironment().set_parallelism(parallelism)
        build(env)
        self.graph = build_execution_graph(build_job_graph(env._program.stream_graph(), "job"))
        self.clock = Clock()
        self.told, self.io, self.done = [], deque(), set()
        self.tamper = lambda sender, receiver, frame: [frame]
        self.inboxes = [deque() for _ in range(self.graph.slots)]
        self.enumerators = {
            vertex.id: vertex.head.operator.source.create_enumerator(
                EnumeratorContext(vertex.parallelism), None if restored is None else []
            )
            for vertex in self.graph.job.vertices
            if isinstance(vertex.head.operator, SourceOperator)
        }
        deploy = Deploy(
            attempt=self.ATTEMPT,
            settings=RuntimeSettings(**settings),
            store=store,
            restored=restored or {},
            segments=segments or {},
            peers={},
        )
        # Each slot its own functions, as in processes; a test that looks into them shares them.
        program = (
            None if share_functions or self.graph.slots == 1 else cloudpickle.dumps(self.graph)
        )
        self.slots = [
            Slot(
                self.graph if program is None else pickle.loads(program),
                "job",
                slot,
                deploy,
                self._environment(slot),
            )
            for slot in range(self.graph.slots)
        ]
        for slot in self.slots:
            slot.open()

    def _environment(self, slot):
        return SlotEnvironment(
            self.clock,
            Wires(self, slot),
            self,
            self.told.append,
            lambda: None,
        )

    def submit(self, work, done):
        self.io.append((work, done))

    # --- driving ------------------------------------------------------------------------------

    def tell(self, message):
        for slot in self.slots:
            slot.handle(message)

    def turn(self, slots=None):
        """One turn of every slot, and what the rest of the world does meanwhile."""
        progressed = False
        for slot in self.slots if slots is None else [self.slots[n] for n in slots]:
            progressed = slot.turn() or progressed
        return self._answer() or progressed

    def _answer(self):
        progressed = False
        while self.io:
            work, done = self.io.popleft()
            try:
                result = work()
            except Exception as error:
                done(None, error)
            else:
                done(result, None)
            progressed = True
        for message in self.told:
            if id(message) in self.done:
                continue
            self.done.add(id(message))
            if isinstance(message, SplitRequest):
                subtask = SubtaskId(*message.subtask)
                splits = splits_for(self.enumerators[subtask.vertex], subtask.index)
                again = self.enumerators[subtask.vertex].ask_again_ms(subtask.index)
                answer = AssignSplits(self.ATTEMPT, subtask, splits, again)
            elif isinstance(message, Emitted):
                answer = EmitCredit(self.ATTEMPT, message.subtask, message.uid, 1)
            else:
                continue
            progressed = True
            self.slots[self.graph.slot_of(SubtaskId(*message.subtask))].handle(answer)
        return progressed

    def run(self, turns=10_000):
        """Turn until nothing moves."""
        for _ in range(turns):
            if not self.turn():
                return self
        raise AssertionError("it never comes to rest")

    def trigger(self, checkpoint, confirmed=0):
        self.tell(Trigger(self.ATTEMPT, checkpoint, confirmed))

    # --- looking ------------------------------------------------------------------------------

    def of(self, kind):
        return [message for message in self.told if isinstance(message, kind)]

    def collected(self, upto=float("inf")):
        """The values for the client, or those that checkpoint `upto` covers."""
        return [
            pickle.loads(value)
            for emitted in self.of(Emitted)
            if emitted.epoch <= upto
            for value in emitted.values
        ]

    def failures(self):
        return [message.error for message in self.of(Failed)]

    def snapshots(self, checkpoint):
        return {
            SubtaskId(*ack.subtask): ack.snapshot
            for ack in self.of(Acknowledge)
            if ack.checkpoint == checkpoint
        }

    def ended(self):
        return len(self.of(AtEnd)) == len(self.graph.subtasks())

    def subtask(self, vertex, index=0):
        subtask = SubtaskId(vertex, index)
        return self.slots[self.graph.slot_of(subtask)].subtasks[subtask]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope="session")
def kafka():
    """A Kafka cluster without a server."""
    from kafka_mock import MockCluster

    return MockCluster()


@pytest.fixture
def cluster():
    """Makes a cluster and runs a program on it: `cluster(build).run()`."""
    made = []

    def make(*args, **kwargs):
        made.append(Cluster(*args, **kwargs))
        return made[-1]

    yield make
    for each in made:
        for slot in each.slots:
            slot.close()
