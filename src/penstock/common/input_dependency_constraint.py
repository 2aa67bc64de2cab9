"""InputDependencyConstraint, a name that programs still import."""

from __future__ import annotations

import enum


class InputDependencyConstraint(enum.Enum):
    """When a task of a batch job might start. Flink no longer has a setting that takes it."""

    ANY = 0
    ALL = 1
