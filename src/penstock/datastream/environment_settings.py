"""The settings of an environment, by PyFlink's names: views of its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.common import config_options as options
from penstock.common.config_layers import values_of
from penstock.common.configuration import Configuration
from penstock.common.execution_config import ExecutionConfig
from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.deprecation import deprecated
from penstock.datastream.execution_mode import RuntimeExecutionMode
from penstock.datastream.slot_sharing_group import SlotSharingGroup, group_name
from penstock.datastream.state_backend import StateBackend
from penstock.datastream.streams import FOREVER_MS
from penstock.datastream.time_characteristic import TimeCharacteristic
from penstock.errors import ProgramError

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.datastream.program import Program
    from penstock.datastream.program_configuration import ProgramConfiguration


class SettingsOfEnvironment:
    """What can be set for all jobs of an environment: each setting is a key of configuration."""

    _configuration: ProgramConfiguration
    _program: Program

    def configure(self, configuration: Configuration) -> None:
        """Take over these values."""
        self._configuration.add_all(configuration)

    def get_config(self) -> ExecutionConfig:
        """The settings of the execution: a view, through which they can be changed."""
        return ExecutionConfig(self._configuration)

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The settings of checkpoints: a view, through which they can be changed."""
        return CheckpointConfig(self._configuration)

    def set_parallelism(self, parallelism: int) -> Self:
        """The parallelism of operators that set none."""
        self.get_config().set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """The parallelism of operators that set none."""
        return self.get_config().get_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """The number of key groups, and so the highest parallelism of a keyed operator."""
        self.get_config().set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups."""
        return self.get_config().get_max_parallelism()

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """STREAMING, the only mode so far; others are a ConfigurationError."""
        options.RUNTIME_MODE.read({options.RUNTIME_MODE.key: execution_mode.name})
        return self._set(options.RUNTIME_MODE, execution_mode.name)

    @deprecated("set the key state.backend.type")
    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """What holds keyed state."""
        for key, value in state_backend.configuration().items():
            self._configuration.set_string(key, value)
        return self

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Whether changes of keyed state are written as they happen, between checkpoints."""
        return self._set(options.CHANGELOG, enabled)

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Whether they are; None: nothing was said about it, and they are not."""
        said = options.CHANGELOG.key in self._values()
        return self._configuration.get(options.CHANGELOG) if said else None

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """How long a buffer may gather while its subtask is busy; -1: until it is full.

        Before a slot sleeps all buffers leave, whatever is set here.
        """
        if timeout_millis == -1:
            timeout_millis = FOREVER_MS
        return self._set(options.BUFFER_TIMEOUT, timeout_millis)

    def get_buffer_timeout(self) -> int:
        """How many milliseconds a buffer may gather while its subtask is busy; -1: until full."""
        timeout = self._configuration.get(options.BUFFER_TIMEOUT)
        if not self._configuration.get(options.BUFFER_TIMEOUT_ENABLED):
            return -1
        return -1 if timeout == FOREVER_MS else timeout

    def disable_operator_chaining(self) -> Self:
        """Every operator in a loop of its own."""
        return self._set(options.OPERATOR_CHAINING, False)

    def is_chaining_enabled(self) -> bool:
        """Whether operators are fused into one loop where they can be."""
        return self._configuration.get(options.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether operators are fused whose max parallelism differs."""
        return self._configuration.get(options.CHAIN_UNLIKE)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Give the slots of a group the managed memory that it says.

        ProgramError for anything but a group; what a group cannot have is refused by its builder.
        """
        if not isinstance(slot_sharing_group, SlotSharingGroup):
            raise ProgramError(
                "register_slot_sharing_group() needs a SlotSharingGroup, not a "
                f"{type(slot_sharing_group).__name__}"
            )
        group_name(slot_sharing_group, self._program)
        return self

    def enable_checkpointing(
        self, interval: int, mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    ) -> Self:
        """A checkpoint every `interval` milliseconds."""
        self.get_checkpoint_config().set_checkpointing_mode(mode).set_checkpoint_interval(interval)
        return self

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Where savepoints go whose caller does not say."""
        return self._set(options.SAVEPOINT_DIRECTORY, directory)

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints go whose caller does not say; None: nowhere."""
        return options.SAVEPOINT_DIRECTORY.read(self._values())

    def get_checkpoint_interval(self) -> int:
        """Milliseconds from the start of one checkpoint to the next; -1 without checkpoints."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE, or AT_LEAST_ONCE."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """The same, by the name that Flink gives it now."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether barriers may overtake records that wait."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Never: see `CheckpointConfig.is_force_unaligned_checkpoints`."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    @deprecated("set restart-strategy.type and the keys below it in the Configuration")
    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> Self:
        """What follows a failure."""
        restart_strategy_configuration.apply_to(self._configuration)
        return self

    @deprecated("say with window assigners and timers which time is meant")
    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Event time and processing time are both always there, so for these it changes nothing.

        ProgramError for ingestion time, which sources would have to assign.
        """
        if characteristic is TimeCharacteristic.IngestionTime:
            raise ProgramError("there is no ingestion time: use event time or processing time")

    def _set(self, option: options.Option[Any], value: Any) -> Self:
        self._configuration.set(option, value)
        return self

    def _values(self) -> dict[str, str]:
        return values_of(self._configuration.settings())
