"""Asynchronous calls on real Spark: all of a slot in one event loop, beside the slot's own."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

from penstock.common import Time
from penstock.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment


class Where(AsyncFunction):
    """Adds in which process, loop and thread it was called."""

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0.001)
        loop = id(asyncio.get_running_loop())
        return [(*value, (os.getpid(), loop, threading.get_ident()))]


def test_one_event_loop_per_slot(session: object) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    stream = env.from_collection([(n,) for n in range(40)]).rebalance()
    once = AsyncDataStream.unordered_wait(stream, Where(), Time.seconds(30), 5)
    twice = AsyncDataStream.ordered_wait(once, Where(), Time.seconds(30), 5)
    found = list(twice.execute_and_collect())
    assert sorted(value for value, _, _ in found) == list(range(40))
    places = {(first, second) for _, first, second in found}
    by_process = {place[0]: place for pair in places for place in pair}
    assert len(by_process) == 2
    assert all(place == by_process[place[0]] for pair in places for place in pair)
