"""Settings and where they came from: a file, the program, the command line; later wins.

>>> file = {"parallelism.default": Setting("2", "penstock.yaml:1")}
>>> program = settings_of({"state.checkpoints.dir": "/data", "parallelism.default": "4"}, "program")
>>> for key, setting in in_force(file, program).items():
...     print(key, setting.value, setting.origin)
parallelism.default 4 program
execution.checkpointing.dir /data program
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.common.config_options import canonical_key, check_keys
from penstock.common.flink_keys import is_present


@dataclass(frozen=True)
class Setting:
    """A value and who gave it, in words for people."""

    value: str
    origin: str


Settings = Mapping[str, Setting]
"""Settings by key. The keys are canonical, so that layers can be laid over each other."""


def settings_of(values: Mapping[str, str], origin: str) -> dict[str, Setting]:
    """`values` as one layer; ConfigurationError for an unknown key."""
    check_keys(values)
    # Of several spellings Flink's present one wins, else the key itself: it comes last.
    aliases_first = sorted(values, key=lambda key: (is_present(key), key == canonical_key(key)))
    return {canonical_key(key): Setting(values[key], origin) for key in aliases_first}


def in_force(*layers: Settings) -> dict[str, Setting]:
    """What holds when later layers win over earlier ones."""
    merged: dict[str, Setting] = {}
    for layer in layers:
        merged.update(layer)
    return merged


def values_of(settings: Settings) -> dict[str, str]:
    """The values alone."""
    return {key: setting.value for key, setting in settings.items()}
