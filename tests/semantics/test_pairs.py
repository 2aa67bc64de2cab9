"""Every feature meets every fault: in some run the feature acts after the fault, and all is well.

A feature *acts* when its code does what it is there for: a timer comes, state is restored from the
files of a backend, segments are merged. That a program could do so, or that a fault could have
happened, counts for nothing; nor does a run whose result is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.checkpoint.store import CheckpointStore
from penstock.connectors.file_sink import _FileCommitter
from penstock.datastream.window import CountEvictor
from penstock.runtime.async_operator import RuntimeAsync
from penstock.runtime.async_queue import Call
from penstock.runtime.change_log import ChangeLog
from penstock.runtime.gate import InputGate
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.runtime.segment_chain import SegmentChain
from penstock.runtime.windowing.emission import LateRecords
from penstock.state.operator_state import OperatorStateBackend
from penstock.state.ttl import _ExpiringState
from penstock.testing.call_programs import Service
from penstock.testing.clock_programs import Remind
from penstock.testing.event_programs import EventCase, _Bounds, _Later
from penstock.testing.event_scenarios import EventScenario
from penstock.testing.faults import FaultRates
from penstock.testing.function_scenarios import FunctionScenario
from penstock.testing.kinds import KINDS
from penstock.testing.scenarios import Scenario
from penstock.testing.stages import Alarms, AtEnd
from penstock.testing.takeovers import Fate, TakeoverScenario

Pair = tuple[str, str]
"""A feature and a fault."""
Make = Callable[[int], Scenario | None]
"""The scenario of a seed, if that is one of those that are wanted."""

Features = dict[str, tuple[type, str, Callable[..., bool]]]
FEATURES: Features = {
    "a window fires": (_Bounds, "__call__", lambda *_: True),
    "a timer by the time of a record comes": (_Later, "on_timer", lambda *_: True),
    "a window is evicted": (CountEvictor, "evict_before", lambda *_: True),
    "a record is late": (LateRecords, "met", lambda *_: True),
    "an event timer comes": (Alarms, "on_timer", lambda *_: True),
    "event time ends": (AtEnd, "on_timer", lambda *_: True),
    "hashmap is restored": (
        *(RuntimeKeyedFunction, "restore"),
        lambda result, self, *_: "HashMap" in type(self.state).__name__,
    ),
    "rocksdb is restored": (
        *(RuntimeKeyedFunction, "restore"),
        lambda result, self, *_: "HashMap" not in type(self.state).__name__,
    ),
    "changes are logged": (ChangeLog, "write", lambda result, self: bool(self._under_way)),
    "segments are merged": (
        *(SegmentChain, "end_compaction"),
        lambda result, self, old, new: new is not None,
    ),
    "records under way are restored": (
        *(InputGate, "_poll_restored"),
        lambda result, *_: bool(result),
    ),
    "operator state is restored": (OperatorStateBackend, "restore", lambda *_: True),
    "output is committed": (_FileCommitter, "commit", lambda result, self, values: bool(values)),
    "an old checkpoint is deleted": (CheckpointStore, "discard", lambda *_: True),
}
"""A method, and whether a call of it, by its result and arguments, did something."""
OF_FUNCTIONS: Features = {
    "a value expires": (_ExpiringState, "_drop", lambda *_: True),
    "a timer by the clock comes": (Remind, "on_timer", lambda *_: True),
    "a call is answered": (Call, "end", lambda result, self, answer: isinstance(answer, list)),
    "a call runs into its timeout": (Service, "timeout", lambda *_: True),
    "calls are made again": (RuntimeAsync, "open", lambda result, self: bool(self.restored)),
}
"""What functions do in programs about them."""

FAULTS = {
    "a slot is killed": "killed slot",
    "a slot is frozen": "froze slot",
    "a frame is lost": "lost a frame",
    "something is slow": "nothing moves",
    "a checkpoint is given up": "gave checkpoint",
    "storage does not answer": "storage error",
    "a call is made twice": "twice",
    "a slot dies in a call": "crash ",
}
"""By what is in the log of a run."""
FATES = {
    Fate.DEAD: "a driver is dead",
    Fate.PAUSED: "a driver was paused",
    Fate.ALIVE: "two drivers are at work",
}


class Watch:
    """Notes which features act after which faults, in the run that is under way."""

    def __init__(self) -> None:
        self.scenario: Scenario | None = None
        self.met: set[Pair] = set()

    def acted(self, feature: str) -> None:
        assert self.scenario is not None
        log = self.scenario.filesystem.budget.log
        for fault, word in FAULTS.items():
            if any(word in entry for entry in log):
                self.met.add((feature, fault))
        if isinstance(self.scenario, TakeoverScenario):
            self.met |= {(feature, FATES[fate]) for fate in self.scenario.fates}


@contextmanager
def watching() -> Iterator[Watch]:
    """Note what acts inside the block."""
    watch = Watch()

    def watched(feature: str, owner: type, name: str, did: Callable[..., bool]) -> Any:
        method = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            if did(result, *arguments):
                watch.acted(feature)
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        for feature, (owner, name, did) in {**FEATURES, **OF_FUNCTIONS}.items():
            patch.setattr(owner, name, watched(feature, owner, name, did))
        yield watch


def meetings(scenarios: Iterable[Scenario], wanted: set[Pair]) -> set[Pair]:
    """The pairs that runs with a right result have met; no more runs when all are there."""
    found: set[Pair] = set()
    for scenario in scenarios:
        with watching() as watch:
            watch.scenario = scenario
            scenario.run().verify()
        found |= watch.met
        if wanted <= found:
            break
    return found


def pairs(features: Iterable[str]) -> set[Pair]:
    return {(feature, fault) for feature in features for fault in (*FAULTS, *FATES.values())}


def by_event_time(kind: str, rates: FaultRates) -> Make:
    """Programs of one kind."""
    return lambda n: EventScenario(n, rates) if EventCase.random(n).kind == kind else None


def unaligned_takeover(seed: int) -> Scenario | None:
    scenario = TakeoverScenario(seed)
    unaligned = scenario.job.checkpoints.overtakes_after_ms is not None
    return scenario if unaligned and scenario.checkpointing else None


PROGRAMS = ("takeover", "changelog", "unaligned", "event", "event")
LOSSY = FaultRates(lost_frame=0.01, budget=3)
DEADLY = FaultRates(storage_crash=0.02, budget=3)
ALL = FaultRates(
    *(0.01, 0.05, 0.1, 0.03, 0.01),
    expiry=0.002,
    crash=0.001,
    crash_soon=0.1,
    freeze=0.0005,
    lost_frame=0.003,
    slow=0.001,
    budget=9,
)
"""Some of everything."""
RARE: dict[Pair, Make] = {
    ("a timer by the time of a record comes", "a frame is lost"): by_event_time("timer", LOSSY),
    ("a timer by the time of a record comes", "a slot dies in a call"): by_event_time(
        "timer", DEADLY
    ),
    ("a window is evicted", "a frame is lost"): by_event_time("evictor", LOSSY),
    ("a window is evicted", "two drivers are at work"): by_event_time("evictor", FaultRates()),
    ("changes are logged", "a frame is lost"): lambda n: Scenario(n, LOSSY, changelog=True),
    ("records under way are restored", "a driver was paused"): unaligned_takeover,
}
"""Pairs that the programs above seldom meet, each with scenarios that do."""
PAIRS = pairs(FEATURES) - RARE.keys()


@pytest.mark.full
@pytest.mark.timeout(1500)
def test_every_feature_acts_after_every_fault() -> None:
    numbers = (seed * len(PROGRAMS) + n for seed in range(400) for n in range(len(PROGRAMS)))
    scenarios = (KINDS[PROGRAMS[number % len(PROGRAMS)]](number) for number in numbers)
    missing = PAIRS - meetings(scenarios, PAIRS)
    assert not missing, f"never met in a run with a right result: {sorted(missing)}"


@pytest.mark.full
@pytest.mark.parametrize("pair", RARE, ids=" after ".join)
def test_a_pair_that_is_rare_occurs(pair: Pair) -> None:
    scenarios = (scenario for seed in range(2000) if (scenario := RARE[pair](seed)) is not None)
    assert pair in meetings(scenarios, {pair})


@pytest.mark.full
def test_functions_act_after_every_fault() -> None:
    wanted = pairs(OF_FUNCTIONS)
    missing = wanted - meetings((FunctionScenario(seed, ALL) for seed in range(400)), wanted)
    assert not missing, f"never met in a run with a right result: {sorted(missing)}"
