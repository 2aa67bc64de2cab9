"""Tests by seeds share a frame, which they import by its name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand failures on purpose need not be logged."""
    caplog.set_level("CRITICAL", logger="penstock")
