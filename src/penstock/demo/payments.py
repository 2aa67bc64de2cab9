"""The demo's payments: eight minutes of event time, out of order, some of them far too late."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

PAYMENTS = 48_000
PER_SECOND = 4_000
MERCHANTS = ["Chai Point", "BigBasket", "IRCTC", "Apollo", "BookMyShow", "Udupi Cafe", "Metro"]
BEGIN_MS = 1_760_000_040_000
"""A full minute."""
STEP_MS = 10
MINUTE_MS = 60_000
MINUTES = PAYMENTS * STEP_MS // MINUTE_MS
LATE_EVERY = 1_000
LATE_MS = 3 * MINUTE_MS
"""Phones that were off: so much later do their payments arrive than they were made."""


def payment(number: int) -> str:
    """Payment `number` as JSON; the same every time, so that the result can be checked."""
    mixed = (number * 2654435761) & 0xFFFFFFFF
    made = BEGIN_MS + number * STEP_MS - mixed % 2_000
    if number % LATE_EVERY == LATE_EVERY - 1:
        made -= LATE_MS
    merchant = MERCHANTS[(mixed >> 16) % len(MERCHANTS)]
    return json.dumps({"id": number, "merchant": merchant, "ts_ms": max(BEGIN_MS, made)})


def minute_of(ts_ms: int) -> int:
    """The number of the minute, from 0 on."""
    return (ts_ms - BEGIN_MS) // MINUTE_MS


def expected(late: Iterable[dict[str, Any]]) -> Counter[tuple[str, int]]:
    """Payments per merchant and minute from a plain loop, without those that came too late."""
    counts: Counter[tuple[str, int]] = Counter()
    for number in range(PAYMENTS):
        made = json.loads(payment(number))
        counts[made["merchant"], minute_of(made["ts_ms"])] += 1
    for made in late:
        counts[made["merchant"], minute_of(made["ts_ms"])] -= 1
    return +counts
