"""The programs under `examples/` run as they are and say what they should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.timeout(150)
def test_the_fraud_counter_trips_once_for_the_busy_card() -> None:
    lines = run("fraud_counter.py")
    assert [line.partition("> ")[2] for line in lines] == [
        "card-00: more than 10 payments within a minute"
    ]


@pytest.mark.timeout(150)
def test_rules_take_effect_while_the_job_runs() -> None:
    refusals = [
        re.fullmatch(r"\d> (.+): (\d+) is above (\d+) .*", line)
        for line in run("rules_on_the_side.py")
    ]
    seen = {(found[1], int(found[3])) for found in refusals if found}
    assert all(refusals)
    assert ("tea house", 800) in seen
    assert seen <= {("tea house", 500), ("tea house", 800), ("bakery", 300)}
    assert all(int(found[2]) > int(found[3]) for found in refusals if found)
