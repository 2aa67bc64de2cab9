"""The example programs under faults: each alarm and each refusal once, as in a quiet run."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "spark"))

from example_parts import check_refusals, expected_alarms, fraud, refused

from penstock.testing import FaultRates, local_environment

FAULTS = FaultRates(crash=0.002, crash_soon=0.3, storage_error=0.003, budget=4)
SEEDS = range(8)


def test_the_fraud_counter() -> None:
    restored = 0
    for seed in SEEDS:
        with local_environment(seed, FAULTS) as env:
            env.set_parallelism(1 + seed % 3)
            alarms = Counter(fraud(env, rate=500).execute_and_collect())
            restored += bool(env.simulation.restored)
        assert alarms == expected_alarms(), seed
    assert restored >= 2, "too few of the jobs went back to a checkpoint"


def test_rules_on_the_side() -> None:
    restored = 0
    for seed in SEEDS:
        with local_environment(seed, FAULTS) as env:
            env.set_parallelism(1 + seed % 3)
            check_refusals(list(refused(env, rate=500).execute_and_collect()))
            restored += bool(env.simulation.restored)
    assert restored >= 2, "too few of the jobs went back to a checkpoint"


def test_the_model_knows_that_alarms_are_cleared() -> None:
    alarms = expected_alarms()
    assert len(alarms) == 2 and min(alarms.values()) > 1
