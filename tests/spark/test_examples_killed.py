"""The example programs on real Spark, with a slot killed half-way: the results are the same.

The UPI program is the demo's (`test_examples`) and Kafka's (`tests/integration/test_upi.py`); the
running average, whose socket cannot be asked again, is in `test_examples` too.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from example_parts import check_refusals, expected_alarms, fraud, refused
from job_parts import environment, running, slot_pids

from penstock.datastream import DataStream, StreamExecutionEnvironment


def killed(
    program: Callable[[StreamExecutionEnvironment, float], DataStream], folder: Path
) -> list[Any]:
    """What the program gives when a slot is killed after the second checkpoint."""
    env = environment(2, folder, "200 ms")
    results = program(env, 150).execute_and_collect()
    now = running(results.job_client, checkpoints=2)
    os.kill(slot_pids(now)[-1], signal.SIGKILL)
    found = list(results)
    assert results.job_client.progress().restarts >= 1
    return found


@pytest.mark.usefixtures("session")
def test_the_fraud_counter(tmp_path: Path) -> None:
    assert Counter(killed(fraud, tmp_path / "checkpoints")) == expected_alarms()


@pytest.mark.usefixtures("session")
def test_rules_on_the_side(tmp_path: Path) -> None:
    check_refusals(killed(refused, tmp_path / "checkpoints"))
