"""When a file sink ends a file and begins the next, and what its files are called."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import ProgramError


@dataclass(frozen=True)
class RollingPolicy:
    """Ends a file at a size, an age, or after a time without records; at checkpoints in any case.

    Files end at every checkpoint because that is what makes them visible. So these are upper
    limits: a file may be smaller and younger, never much larger or older. Why no file goes on over
    a checkpoint is in docs/adr/0011.
    """

    part_size: int | None = None
    rollover_interval: int | None = None
    inactivity_interval: int | None = None

    def __post_init__(self) -> None:
        for name in ("part_size", "rollover_interval", "inactivity_interval"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ProgramError(f"{name} must be more than 0, not {value}")

    @staticmethod
    def default_rolling_policy(
        part_size: int = 128 << 20,
        rollover_interval: int = 60_000,
        inactivity_interval: int = 60_000,
    ) -> RollingPolicy:
        """At `part_size` bytes, or after so many milliseconds, or at a checkpoint."""
        return RollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> RollingPolicy:
        """At checkpoints only."""
        return RollingPolicy()

    def too_old(self, now_ms: int, begun_ms: int, last_ms: int) -> bool:
        """Whether a file begun and last written at these times ends now."""
        age, rest = self.rollover_interval, self.inactivity_interval
        return (age is not None and now_ms - begun_ms >= age) or (
            rest is not None and now_ms - last_ms >= rest
        )


@dataclass(frozen=True)
class OutputFileConfig:
    """The beginning and the end of the names of a sink's files."""

    part_prefix: str = "part"
    part_suffix: str = ""

    def __post_init__(self) -> None:
        for text in (self.part_prefix, self.part_suffix):
            if "/" in text or "\0" in text:
                raise ProgramError(f"{text!r} cannot be part of a file's name")
        if not self.part_prefix or self.part_prefix.startswith((".", "_")):
            raise ProgramError(
                f"{self.part_prefix!r} is no part prefix: it must be a name that does not begin "
                "with a dot or an underscore, because Spark and others pass over such files"
            )
        if self.part_suffix.endswith("._COPYING_"):
            raise ProgramError("Spark passes over files that end in ._COPYING_")

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Starts from `part` without an end."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """What names begin with."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """What names end with."""
        return self.part_suffix

    class OutputFileConfigBuilder:
        """Builds an OutputFileConfig."""

        def __init__(self) -> None:
            self._prefix = "part"
            self._suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """What names begin with."""
            self._prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """What names end with, for example ``.csv``."""
            self._suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """The configuration."""
            return OutputFileConfig(self._prefix, self._suffix)
