"""Two inputs, side outputs and broadcast state under faults: the answer is that of a quiet run."""

from __future__ import annotations

from typing import Any

import pytest
from planted_bugs import finds
from seed_frame import chunks, replayable

from penstock.common import Types
from penstock.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    OutputTag,
    ProcessFunction,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.state.broadcast import BroadcastBackend
from penstock.testing import local_environment

ODD = OutputTag("odd")
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
KEYS = "abcdefg"
LEFT = [(key, number) for number in range(60) for key in KEYS[number % 7]]
RIGHT = [(key, number) for number in range(40) for key in KEYS[number % 5]]
CHANGES = [("x", 1), ("y", 2), ("x", None), ("z", 3), ("y", 20)]


class Pair(KeyedCoProcessFunction):
    """Every left record with every right record of its key."""

    def open(self, runtime_context: Any) -> None:
        self._left = runtime_context.get_list_state(ListStateDescriptor("left", Types.LONG()))
        self._right = runtime_context.get_list_state(ListStateDescriptor("right", Types.LONG()))

    def process_element1(self, value: Any, ctx: Any) -> Any:
        self._left.add(value[1])
        for other in self._right.get():
            yield value[0], value[1], other

    def process_element2(self, value: Any, ctx: Any) -> Any:
        self._right.add(value[1])
        for other in self._left.get():
            yield value[0], other, value[1]


class Sort(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        if value[1] % 2:
            yield ODD, value
        else:
            yield value


class Judge(KeyedBroadcastProcessFunction):
    """Says at the end of the input what every key saw, and which rules hold."""

    def open(self, runtime_context: Any) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> None:
        self._total.update((self._total.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(1)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        name, limit = value
        rules = ctx.get_broadcast_state(RULES)
        if limit is None:
            rules.remove(name)
        else:
            rules.put(name, limit)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        rules = sorted(ctx.get_broadcast_state(RULES).items())
        yield ctx.get_current_key(), self._total.value(), rules


def key(record: Any) -> Any:
    return record[0]


def pairs(env: Any) -> Any:
    left, right = env.from_collection(LEFT), env.from_collection(RIGHT).rebalance()
    return left.connect(right).key_by(key, key).process(Pair())


PAIRS = sorted((k, n, m) for k, n in LEFT for other, m in RIGHT if other == k)


def sides(env: Any) -> Any:
    sorted_out = env.from_collection(LEFT).rebalance().process(Sort())
    odd = sorted_out.get_side_output(ODD).map(lambda record: ("odd", *record))
    return sorted_out.map(lambda record: ("even", *record)).union(odd.rebalance())


SIDES = sorted(("odd" if n % 2 else "even", k, n) for k, n in LEFT)


def judged(env: Any) -> Any:
    rules = env.from_collection(CHANGES).broadcast(RULES)
    return env.from_collection(LEFT).key_by(key).connect(rules).process(Judge())


JUDGED = sorted((k, sum(n for o, n in LEFT if o == k), [("y", 20), ("z", 3)]) for k in KEYS)


def results(program: Any, seed: int) -> list[Any]:
    with local_environment(seed=seed, faults=True) as env:
        env.set_parallelism(1 + seed % 3)
        return sorted(program(env).execute_and_collect())


@pytest.mark.parametrize("seeds", chunks(20, 140, size=40))
@pytest.mark.parametrize(
    ("program", "expected"), [(pairs, PAIRS), (sides, SIDES), (judged, JUDGED)]
)
def test_faults_change_nothing(program: Any, expected: list[Any], seeds: range) -> None:
    for seed in seeds:
        with replayable(seed):
            assert results(program, seed) == expected


def rules_are_not_restored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BroadcastBackend, "restore", lambda *_: None)


def test_some_seed_finds_the_bug_of_rules_that_are_not_restored() -> None:
    rules = lambda seed: None if results(judged, seed) == JUDGED else "other rules"  # noqa: E731
    finds(rules_are_not_restored, "other rules", rules, range(150))
