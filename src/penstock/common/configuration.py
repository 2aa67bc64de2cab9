"""Configuration: keys and values, as strings, by PyFlink's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Configuration:
    """A set of configuration values."""

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, str] = dict(other._values) if other is not None else {}

    @staticmethod
    def from_dict(map: Mapping[str, Any]) -> Configuration:
        """A configuration with these values."""
        configuration = Configuration()
        for key, value in map.items():
            configuration.set_string(key, _text(value))
        return configuration

    def get_string(self, key: str, default_value: str) -> str:
        return self._values.get(key, default_value)

    def set_string(self, key: str, value: str) -> Configuration:
        self._values[key] = value
        return self

    def get_integer(self, key: str, default_value: int) -> int:
        return int(self._values.get(key, default_value))

    def set_integer(self, key: str, value: int) -> Configuration:
        return self.set_string(key, str(value))

    def get_boolean(self, key: str, default_value: bool) -> bool:
        return self._values.get(key, _text(default_value)).lower() == "true"

    def set_boolean(self, key: str, value: bool) -> Configuration:
        return self.set_string(key, _text(value))

    def contains_key(self, key: str) -> bool:
        return key in self._values

    def key_set(self) -> set[str]:
        return set(self._values)

    def add_all(self, other: Configuration) -> Configuration:
        self._values.update(other._values)
        return self

    def to_dict(self) -> dict[str, str]:
        return dict(self._values)

    def __repr__(self) -> str:
        return f"Configuration({self._values})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
