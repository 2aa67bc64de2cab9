"""Configuration: keys and values, by PyFlink's name.

Values are kept as text, however they were set, so that what a program sets reads the same as what
stands in a file.

>>> configuration = Configuration().set_integer("parallelism.default", 2)
>>> configuration.get_string("parallelism.default", "1")
'2'
>>> Configuration().add_all(configuration, "a.").to_dict()
{'a.parallelism.default': '2'}
"""

from __future__ import annotations

import base64
import builtins
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from penstock.common.config_options import Option, parse_boolean, parse_int
from penstock.common.list_values import parse_list
from penstock.errors import ConfigurationError

T = TypeVar("T")


class Configuration:
    """A set of configuration values. What cannot be read as asked is a ConfigurationError."""

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, str] = dict(other._values) if other is not None else {}
        self._typed: dict[str, Any] = dict(other._typed) if other is not None else {}
        """What was set as something else than text, for `add_all_to_dict`."""

    @staticmethod
    def from_dict(map: Mapping[str, Any]) -> Configuration:
        """A configuration with these values."""
        configuration = Configuration()
        for key, value in map.items():
            configuration.set_string(key, _text(value))
        return configuration

    def get(self, option: Option[T]) -> T:
        """The value of an option: as it was set, under any of its names, or its default."""
        return option.read(self._values)

    def set(self, option: Option[T], value: T) -> Configuration:
        """Set an option; None unsets it. What other names of it were set to is forgotten."""
        for key in (option.key, *option.aliases):
            self.remove_config(key)
        return self if value is None else self.set_string(option.key, _text(value))

    def get_string(self, key: str, default_value: str) -> str:
        """The value of a key, or the default."""
        return self._values.get(key, default_value)

    def set_string(self, key: str, value: str) -> Configuration:
        """Set a key."""
        self._values[key] = value
        self._typed.pop(key, None)
        return self

    def _set_typed(self, key: str, text: str, value: Any) -> Configuration:
        self.set_string(key, text)
        self._typed[key] = value
        return self

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """The items of a list, written as in YAML or separated by semicolons; of None none."""
        if value is None:
            return []
        try:
            return parse_list(value)
        except ValueError as error:
            raise ConfigurationError(str(error)) from error

    def get_integer(self, key: str, default_value: int) -> int:
        """The value of a key as a whole number, or the default."""
        return self._read(key, parse_int, default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a key to a whole number."""
        return self._set_typed(key, str(value), value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """The value of a key as a boolean, or the default."""
        return self._read(key, parse_boolean, default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a key to true or false."""
        return self._set_typed(key, _text(value), value)

    def get_float(self, key: str, default_value: float) -> float:
        """The value of a key as a float, or the default."""
        return self._read(key, float, default_value)

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a key to a float."""
        return self._set_typed(key, str(value), value)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """The bytes under a key, or the default."""
        return self._read(key, _bytes, default_value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set a key to bytes, kept as base64."""
        return self._set_typed(key, base64.b64encode(value).decode("ascii"), bytes(value))

    def contains_key(self, key: str) -> bool:
        """Whether the key is set."""
        return key in self._values

    def remove_config(self, key: str) -> bool:
        """Unset a key; whether it was set."""
        self._typed.pop(key, None)
        return self._values.pop(key, None) is not None

    def key_set(self) -> builtins.set[str]:
        """All keys that are set."""
        return builtins.set(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Take over all values of another configuration, under keys with this prefix."""
        for key, value in other.to_dict().items():
            self.set_string((prefix or "") + key, value)
        for key, typed in other._typed.items():
            self._typed[(prefix or "") + key] = typed
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Put all values into a dict, each as what it was set as: `set_integer` as an int."""
        target_dict.update(self._values)
        target_dict.update(self._typed)

    def to_dict(self) -> dict[str, str]:
        """All values by key, in a dict of their own."""
        return dict(self._values)

    def _read(self, key: str, parse: Callable[[str], T], default: T) -> T:
        if key not in self._values:
            return default
        try:
            return parse(self._values[key])
        except ValueError as error:
            raise ConfigurationError(f"{key}: {self._values[key]!r}: {error}") from error

    def __repr__(self) -> str:
        return f"Configuration({self._values})"

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={value}" for key, value in self._values.items()) + "}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    def __hash__(self) -> int:
        # As PyFlink's: it changes with the values.
        return hash(frozenset(self._values.items()))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bytes(text: str) -> bytearray:
    return bytearray(base64.b64decode(text, validate=True))
