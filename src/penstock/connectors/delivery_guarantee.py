"""What a sink promises about records after a failure."""

from __future__ import annotations

import enum


class DeliveryGuarantee(enum.Enum):
    """How often a record is written when the job had to restart."""

    EXACTLY_ONCE = "exactly-once"
    """Once: what is not covered by a checkpoint never becomes visible."""

    AT_LEAST_ONCE = "at-least-once"
    """Once or more often: records since the last checkpoint are written again."""

    NONE = "none"
    """Perhaps not at all: what was being written when the job failed may be lost."""
