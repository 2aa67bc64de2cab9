"""The configuration of a program: what it sets itself, read together with file and command line."""

from __future__ import annotations

from typing import TypeVar

from penstock.common.config_layers import Settings, in_force, settings_of, values_of
from penstock.common.config_options import Option
from penstock.common.configuration import Configuration
from penstock.datastream import invocation

T = TypeVar("T")

_ORIGIN = "program"


class ProgramConfiguration(Configuration):
    """Holds what the program sets; `get` tells what is in force, which may be another's word."""

    def __init__(self, file: Settings) -> None:
        super().__init__()
        self._file = file

    def get(self, option: Option[T]) -> T:
        return option.read(values_of(self.settings()))

    def add_all(self, other: Configuration, prefix: str | None = None) -> ProgramConfiguration:
        """Take over values, under their own names whatever spelling was used."""
        given = {(prefix or "") + key: value for key, value in other.to_dict().items()}
        for key, setting in settings_of(given, _ORIGIN).items():
            self.set_string(key, setting.value)
        return self

    def settings(self) -> Settings:
        """Everything that is in force, with its origin."""
        own = settings_of(self.to_dict(), _ORIGIN)
        return in_force(self._file, own, invocation.current().overrides)
