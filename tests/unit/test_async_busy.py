"""A subtask that waits for its asynchronous calls is busy: it is they that take the time."""

from __future__ import annotations

import pytest

from penstock.common import Time
from penstock.connectors.client_sinks import CollectSink
from penstock.datastream import AsyncDataStream, AsyncFunction


class Ask(AsyncFunction):
    async def async_invoke(self, value):
        return [value]


@pytest.mark.parametrize(("capacity", "busy_ms"), [(1, 1_000), (10, 0)], ids=["full", "room left"])
def test_calls_are_work_while_no_more_can_be_begun(cluster, capacity, busy_ms):
    def build(env):
        asked = AsyncDataStream.unordered_wait(
            env.from_collection([1, 2, 3]), Ask(), Time.hours(1), capacity
        )
        asked.uid("asks").sink_to(CollectSink())

    running = cluster(build)
    running.submit = lambda work, done: None  # no call ever returns
    for _ in range(20):
        running.turn()
    [slot] = running.slots
    [task] = [t for t in slot.subtasks.values() if "asks" in [o.node.uid for o in t.operators]]
    before = task.metrics().busy_ns
    running.clock.now += 1_000
    assert (task.metrics().busy_ns - before) // 1_000_000 == busy_ms
