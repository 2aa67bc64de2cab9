"""The functions of the example programs with inputs whose results a plain loop knows.

The fraud counter's depend on when watermarks come: here one follows every payment. A refusal's
depends on which rules have arrived: here they come long before the payments that are compared.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from penstock.common import WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator, WatermarkOutput
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PAYMENTS, DISORDER_MS, MINUTE_MS = 900, 5_000, 60_000
RULES_IN = 600
"""Payments from this one on meet the last rules."""


def example(name: str) -> ModuleType:
    """An example as a module, which travels to slots by value."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    return module


class EveryRecord(WatermarkGenerator):
    """A watermark after every record."""

    def __init__(self) -> None:
        self._latest = 0

    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        self._latest = max(self._latest, timestamp)
        output.emit_watermark(max(0, self._latest - DISORDER_MS - 1))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


# --- fraud counter ----------------------------------------------------------------------------


def card_payment(number: int) -> dict[str, Any]:
    """Two busy cards among forty; up to four seconds out of order."""
    mixed = (number * 2654435761) & 0xFFFFFFFF
    card = number % 3 if number % 3 < 2 else 3 + mixed % 40
    return {"card": f"card-{card:02}", "ts_ms": 10_000 + number * 500 - mixed % 4_000}


def fraud(env: StreamExecutionEnvironment, rate: float) -> DataStream:
    """The alarms; one reader, so that watermarks and payments have one order."""
    strategy = WatermarkStrategy.for_generator(EveryRecord).with_timestamp_assigner(
        lambda payment, _: payment["ts_ms"]
    )
    source = DataGeneratorSource(card_payment, PAYMENTS, rate)
    payments = env.from_source(source, strategy, "payments").set_parallelism(1)
    alarms: DataStream = example("fraud_counter").alarms(payments)
    return alarms


def expected_alarms() -> Counter[str]:
    alarms: Counter[str] = Counter()
    counts: dict[str, int] = {}
    timers: dict[str, int] = {}
    latest = 0
    for number in range(PAYMENTS):
        payment = card_payment(number)
        card, at = payment["card"], payment["ts_ms"]
        counts[card] = counts.get(card, 0) + 1
        if counts[card] == 1:
            timers[card] = at + MINUTE_MS
        if counts[card] == 11:
            alarms[f"{card}: more than 10 payments within a minute"] += 1
        latest = max(latest, at)
        for due in [c for c, time in timers.items() if time <= latest - DISORDER_MS - 1]:
            del timers[due], counts[due]
    return alarms


# --- rules on the side ------------------------------------------------------------------------


def shop_payment(number: int) -> tuple[str, int]:
    merchant = ("tea house", "bakery", "book shop")[number % 3]
    return merchant, 100 + 37 * number % 901


def refused(env: StreamExecutionEnvironment, rate: float) -> DataStream:
    module, none = example("rules_on_the_side"), WatermarkStrategy.no_watermarks()
    changes, count = list(module.CHANGES), len(module.CHANGES)
    source = DataGeneratorSource(lambda n: changes[n], count, rate_per_second=rate)
    rules = env.from_source(source, none, "rules").set_parallelism(1)
    paid = DataGeneratorSource(shop_payment, PAYMENTS, rate)
    refusals: DataStream = module.refusals(env.from_source(paid, none, "payments"), rules)
    return refusals


def check_refusals(lines: list[str]) -> None:
    """Each refusal once and numbered, and all those that the last rules ask for."""
    seen: dict[str, list[tuple[int, int, int]]] = {}
    for line in lines:
        found = re.fullmatch(r"(.+): (\d+) is above (\d+) \(refused so far: (\d+)\)", line)
        assert found is not None, line
        amount, limit, number = map(int, found.groups()[1:])
        assert amount > limit
        seen.setdefault(found[1], []).append((number, amount, limit))
    for refusals in seen.values():
        assert sorted(number for number, _, _ in refusals) == list(range(1, len(refusals) + 1))
    limits = {merchant: {limit for _, _, limit in some} for merchant, some in seen.items()}
    assert limits.get("tea house", set()) <= {500, 800} and limits.get("bakery", set()) <= {300}
    assert "book shop" not in seen
    last = Counter(
        amount
        for merchant, amount in map(shop_payment, range(RULES_IN, PAYMENTS))
        if merchant == "tea house" and amount > 800
    )
    assert last <= Counter(amount for _, amount, _ in seen["tea house"])
