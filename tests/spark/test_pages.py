"""Every block of Python in the documentation runs as it stands, on Spark."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def blocks() -> list[pytest.ParameterSet]:
    """All blocks but those that need no Spark, which the unit tests run."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            line = text[: match.start(1)].count("\n")
            if "penstock.testing" not in match[1]:
                name = f"{page.relative_to(ROOT)}:{line + 1}"
                found.append(pytest.param("\n" * line + match[1], id=name))
    return found


@pytest.mark.parametrize("code", blocks())
def test_it_runs(
    code: str, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # As a script: functions and classes of the main module travel by value.
    script = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", script)
    exec(compile(code, "<page>", "exec"), vars(script))
