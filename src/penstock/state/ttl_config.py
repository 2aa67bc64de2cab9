"""Time to live: when the entries of a state expire, and how they are cleaned up.

>>> from penstock.common.time import Duration
>>> config = StateTtlConfig.new_builder(Duration.of_hours(1)).never_return_expired().build()
>>> config.get_ttl().to_millis(), config.get_update_type().name
(3600000, 'OnCreateAndWrite')
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar

from penstock.common.time import Duration, Time
from penstock.errors import ProgramError

DEFAULT_CLEANUP_SIZE = 5


class StateTtlConfig:
    """How long entries of a state live; made by `StateTtlConfig.new_builder(ttl)`."""

    class UpdateType(Enum):
        """What makes an entry live anew."""

        Disabled = 0
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(Enum):
        """Whether an entry that has expired can still be read until it is cleaned up."""

        ReturnExpiredIfNotCleanedUp = 0
        NeverReturnExpired = 1

    class TtlTimeCharacteristic(Enum):
        """By which time entries expire."""

        ProcessingTime = 0

    class CleanupStrategies:
        """How expired entries that nobody reads are removed."""

        class Strategies(Enum):
            """The names of the strategies."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        class IncrementalCleanupStrategy:
            """A few entries are looked at with every access to the state."""

            def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
                if cleanup_size < 1:
                    raise ProgramError(
                        f"cleanup_incrementally: {cleanup_size} entries per step; it must be at "
                        "least 1"
                    )
                self._cleanup_size = cleanup_size
                self._every_record = run_cleanup_for_every_record

            def get_cleanup_size(self) -> int:
                """How many entries a step looks at."""
                return self._cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                """Whether every record takes a step too, also one that leaves the state alone."""
                return self._every_record

        class RocksdbCompactFilterCleanupStrategy:
            """Flink's filter in RocksDB's compaction.

            RocksDB lets no Python code take part in a compaction: in Penstock entries are removed
            in incremental steps instead, on this backend as on the other.
            """

            def __init__(
                self,
                query_time_after_num_entries: int,
                periodic_compaction_time: Duration | None = None,
            ) -> None:
                self._query_time_after = query_time_after_num_entries
                self._periodic = periodic_compaction_time or Duration.of_days(30)

            def get_query_time_after_num_entries(self) -> int:
                """As it was given."""
                return self._query_time_after

            def get_periodic_compaction_time(self) -> Duration:
                """As it was given; 30 days if it was not."""
                return self._periodic

        class EmptyCleanupStrategy:
            """A strategy that has nothing to set."""

        EMPTY_STRATEGY: ClassVar[Any] = EmptyCleanupStrategy()

        def __init__(
            self, strategies: Mapping[Any, Any], is_cleanup_in_background: bool = True
        ) -> None:
            self._strategies = dict(strategies)
            self._in_background = is_cleanup_in_background

        def is_cleanup_in_background(self) -> bool:
            """Whether entries are removed in small steps though no strategy asks for it."""
            return self._in_background

        def in_full_snapshot(self) -> bool:
            """Whether expired entries are left out of full snapshots."""
            return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

        def get_incremental_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy | None:
            """The steps that entries are removed in; None if they are not."""
            default = (
                self.IncrementalCleanupStrategy(DEFAULT_CLEANUP_SIZE, False)
                if self._in_background
                else None
            )
            return self._strategies.get(self.Strategies.INCREMENTAL_CLEANUP, default)

        def get_rocksdb_compact_filter_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy | None:
            """What was given for RocksDB; None if nothing was."""
            return self._strategies.get(self.Strategies.ROCKSDB_COMPACTION_FILTER)

    class Builder:
        """Collects the settings of a `StateTtlConfig`."""

        def __init__(self, ttl: Duration | Time) -> None:
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._time = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._in_background = True
            self._strategies: dict[Any, Any] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            """What makes an entry live anew; `OnCreateAndWrite` if nothing is said."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Writing an entry makes it live anew."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Writing and reading an entry make it live anew."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(
            self, state_visibility: StateTtlConfig.StateVisibility
        ) -> StateTtlConfig.Builder:
            """Whether expired entries are read; `NeverReturnExpired` if nothing is said."""
            self._visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """An expired entry can be read once more if it is still there."""
            visibility = StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
            return self.set_state_visibility(visibility)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """An expired entry is as good as gone."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            """By which time entries expire: processing time is what there is."""
            self._time = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Entries expire by processing time."""
            return self.set_ttl_time_characteristic(
                StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            )

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Leave expired entries out of full snapshots."""
            cleanup = StateTtlConfig.CleanupStrategies
            self._strategies[cleanup.Strategies.FULL_STATE_SCAN_SNAPSHOT] = cleanup.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Look at `cleanup_size` entries per access, and per record if that is said."""
            cleanup = StateTtlConfig.CleanupStrategies
            self._strategies[cleanup.Strategies.INCREMENTAL_CLEANUP] = (
                cleanup.IncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self,
            query_time_after_num_entries: int,
            periodic_compaction_time: Duration | None = None,
        ) -> StateTtlConfig.Builder:
            """Clean up in the background on RocksDB: in incremental steps, as elsewhere."""
            cleanup = StateTtlConfig.CleanupStrategies
            self._strategies[cleanup.Strategies.ROCKSDB_COMPACTION_FILTER] = (
                cleanup.RocksdbCompactFilterCleanupStrategy(
                    query_time_after_num_entries, periodic_compaction_time
                )
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Remove an expired entry only when it is read, unless a strategy asks for more."""
            self._in_background = False
            return self

        def set_ttl(self, ttl: Duration | Time) -> StateTtlConfig.Builder:
            """How long an entry lives."""
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """The configuration."""
            cleanup = StateTtlConfig.CleanupStrategies(self._strategies, self._in_background)
            return StateTtlConfig(
                self._update_type, self._visibility, self._time, self._ttl, cleanup
            )

    def __init__(
        self,
        update_type: StateTtlConfig.UpdateType,
        state_visibility: StateTtlConfig.StateVisibility,
        ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic,
        ttl: Duration | Time,
        cleanup_strategies: StateTtlConfig.CleanupStrategies,
    ) -> None:
        self._update_type = update_type
        self._visibility = state_visibility
        self._time = ttl_time_characteristic
        self._ttl = ttl
        self._cleanup = cleanup_strategies
        if self.milliseconds() < 1:
            raise ProgramError("a time to live must be at least one millisecond")

    @staticmethod
    def new_builder(ttl: Duration | Time) -> StateTtlConfig.Builder:
        """Begin with how long entries live."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> StateTtlConfig.UpdateType:
        """What makes an entry live anew."""
        return self._update_type

    def get_state_visibility(self) -> StateTtlConfig.StateVisibility:
        """Whether expired entries can be read."""
        return self._visibility

    def get_ttl(self) -> Duration | Time:
        """How long an entry lives, as it was given."""
        return self._ttl

    def milliseconds(self) -> int:
        """How long an entry lives, in milliseconds."""
        ttl = self._ttl
        return ttl.to_milliseconds() if isinstance(ttl, Time) else ttl.to_millis()

    def get_ttl_time_characteristic(self) -> StateTtlConfig.TtlTimeCharacteristic:
        """By which time entries expire."""
        return self._time

    def is_enabled(self) -> bool:
        """Whether entries expire at all."""
        return self._update_type is not StateTtlConfig.UpdateType.Disabled

    def get_cleanup_strategies(self) -> StateTtlConfig.CleanupStrategies:
        """How expired entries are removed."""
        return self._cleanup
