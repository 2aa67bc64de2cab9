"""Replay one seed of the suite and tell what happened: `python -m penstock.testing 4711 stop`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from penstock.testing.changes import ChangeScenario
from penstock.testing.live_rescales import LiveRescaleScenario
from penstock.testing.rescales import RescaleScenario
from penstock.testing.scenarios import (
    Scenario,
    UpkeepScenario,
    changelog_scenario,
    replay,
    unaligned_scenario,
)
from penstock.testing.stops import StopScenario
from penstock.testing.sweeps import SweepScenario
from penstock.testing.takeovers import TakeoverScenario

_KINDS: dict[str, Callable[[int], Scenario]] = {
    "plain": Scenario,
    "upkeep": UpkeepScenario,
    "takeover": TakeoverScenario,
    "rescale": RescaleScenario,
    "stop": StopScenario,
    "sweep": SweepScenario,
    "change": ChangeScenario,
    "live-rescale": LiveRescaleScenario,
    "unaligned": unaligned_scenario,
    "changelog": changelog_scenario,
}


def main(arguments: list[str]) -> int:
    """The exit code: 1 if the result was wrong, 2 if the arguments were."""
    seed, kind = (*arguments, "plain")[:2] if arguments else ("", "")
    if len(arguments) > 2 or not seed.isdigit() or kind not in _KINDS:
        print(f"usage: python -m penstock.testing SEED [{'|'.join(_KINDS)}]", file=sys.stderr)
        return 2
    return replay(_KINDS[kind](int(seed)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
