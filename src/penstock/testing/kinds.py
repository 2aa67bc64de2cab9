"""The kinds of scenarios by the names that `python -m penstock.testing SEED KIND` knows."""

from __future__ import annotations

from collections.abc import Callable

from penstock.testing.changes import ChangeScenario
from penstock.testing.event_scenarios import EventScenario
from penstock.testing.function_scenarios import FunctionScenario
from penstock.testing.live_rescales import LiveRescaleScenario
from penstock.testing.planned_deaths import PlannedDeathScenario
from penstock.testing.rescales import RescaleScenario
from penstock.testing.scenarios import (
    Scenario,
    UpkeepScenario,
    changelog_scenario,
    unaligned_scenario,
)
from penstock.testing.slowdowns import SlowdownScenario
from penstock.testing.stops import StopScenario
from penstock.testing.sweeps import SweepScenario
from penstock.testing.takeovers import TakeoverScenario
from penstock.testing.transactions.scenarios import SinkScenario

KINDS: dict[str, Callable[[int], Scenario]] = {
    "plain": Scenario,
    "upkeep": UpkeepScenario,
    "takeover": TakeoverScenario,
    "rescale": RescaleScenario,
    "stop": StopScenario,
    "sweep": SweepScenario,
    "change": ChangeScenario,
    "live-rescale": LiveRescaleScenario,
    "planned-death": PlannedDeathScenario,
    "event": EventScenario,
    "function": FunctionScenario,
    "unaligned": unaligned_scenario,
    "changelog": changelog_scenario,
    "slowdown": SlowdownScenario,
    "transactions": SinkScenario,
}
