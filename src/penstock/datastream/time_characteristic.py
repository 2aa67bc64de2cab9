"""TimeCharacteristic, which older programs set on the environment."""

from __future__ import annotations

import enum


class TimeCharacteristic(enum.Enum):
    """Which time an older program meant where it did not say."""

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
