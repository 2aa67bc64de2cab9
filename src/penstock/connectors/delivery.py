"""What a sink promises: the choice that sinks of servers offer."""

from __future__ import annotations

from enum import Enum


class DeliveryGuarantee(Enum):
    """What a sink promises when something fails."""

    EXACTLY_ONCE = 0
    """Each record is visible once, when a checkpoint that covers it is complete."""
    AT_LEAST_ONCE = 1
    """None is lost; after a failure some may come again."""
    NONE = 2
    """Records may be lost, and may come again."""
