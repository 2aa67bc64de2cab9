"""Every error that Penstock raises, in one tree.

An error says what was wrong, where, and what to do; it carries a stable ``code`` for programs to
match on, and it survives pickling, because most errors are born in a slot on another machine and
shown in the driver.

>>> raise CorruptCheckpointError("chk-7/_metadata is cut short")
Traceback (most recent call last):
    ...
penstock.errors.CorruptCheckpointError: chk-7/_metadata is cut short
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class PenstockError(Exception):
    """The root: catch this to catch everything Penstock raises on purpose."""

    code = "PENSTOCK"
    lasting = False
    """Whether another attempt would only meet it again: then the job is not restarted."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def summary(self) -> str:
        """What happened, in one line."""
        return self.message.split("\n", 1)[0]


# --- the program or its settings are wrong: nothing was started -------------------------------


class ProgramError(PenstockError):
    """The program cannot be turned into a job."""

    code = "PROGRAM"


class InvalidParallelismError(ProgramError):
    """A parallelism is below one or above the maximum parallelism."""

    code = "PARALLELISM"


class DuplicateNameError(ProgramError):
    """A uid is used twice. (Names may be: operators with one name have uids of their own.)"""

    code = "DUPLICATE_NAME"


class JavaOnlyError(ProgramError):
    """A name of PyFlink that stands for something in Java, of which there is none here."""

    code = "JAVA_ONLY"


class ConfigurationError(PenstockError):
    """A configuration key is unknown or its value cannot be read."""

    code = "CONFIGURATION"


class NoJavaError(PenstockError):
    """Spark needs Java and none was found."""

    code = "NO_JAVA"


class NotEnoughSlotsError(PenstockError):
    """The Spark cluster has fewer free cores than the job has slots."""

    code = "NOT_ENOUGH_SLOTS"


class SparkLaunchError(PenstockError):
    """Spark ended the tasks that carry the slots."""

    code = "SPARK_LAUNCH"

    def __init__(self, message: str, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class AddressError(PenstockError):
    """A driver or a slot cannot listen at the address, or on the ports, that it is to have."""

    code = "ADDRESS"


# --- a record, a key or a function is wrong: the attempt fails --------------------------------


class UnsupportedKeyError(PenstockError):
    """A key has no stable encoding (a list, a NaN, an object of unknown type)."""

    code = "UNSUPPORTED_KEY"


class RecordError(PenstockError):
    """A record cannot be read from its source, or it cannot be sent: not pickled, or too large."""

    code = "RECORD"

    def __init__(self, message: str, place: str | None = None, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting
        self.place = place
        """Where a record that cannot be read is: a file and a line, for example."""

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.message, self.place, self.lasting))

    def redacted(self) -> RecordError:
        """The same without anything of the record's content, for those who know the place."""
        if self.place is None:
            return self
        return type(self)(f"{self.place}: a record cannot be read (redacted)", self.place)


class TypeMismatchError(PenstockError, TypeError):
    """A value does not fit the type that was declared for it."""

    code = "TYPE_MISMATCH"

    def __init__(self, message: str, path: str = "", shown: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        """Where inside the record: ``items[3].price``; empty for the record itself.

        It may name keys of maps, which are data of the user's too.
        """
        self.shown = shown
        """The value, shortened; apart from the message, so that it can be left out."""

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.message, self.path, self.shown))

    def inside(self, step: str) -> TypeMismatchError:
        """The same error, seen from the value that holds this one as ``step``."""
        separator = "." if self.path and not self.path.startswith("[") else ""
        return type(self)(self.message, step + separator + self.path, self.shown)

    def summary(self) -> str:
        return str(self)

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        value = f": {self.shown}" if self.shown is not None else ""
        return f"{where}{self.message}{value}"


class TimestampError(PenstockError):
    """A record's time is not one."""

    code = "TIMESTAMP"


class ResultShapeError(PenstockError):
    """A user function returned something of the wrong shape."""

    code = "RESULT_SHAPE"


class LateRecordError(PenstockError):
    """A record came after all its windows were closed, and the job is to fail then."""

    code = "LATE_RECORD"


class StateError(PenstockError):
    """State was used in a way that has no meaning, for example outside a keyed function."""

    code = "STATE"


class IncompatibleStateError(StateError):
    """State was saved with a type that cannot become the one that is declared now."""

    code = "INCOMPATIBLE_STATE"


# --- something broke while running: the restart strategy decides -------------------------------


class SlotLostError(PenstockError):
    """A slot's process died, fell silent or never arrived."""

    code = "SLOT_LOST"


class ChannelBrokenError(PenstockError):
    """Frames between two slots were lost, or a peer disappeared."""

    code = "CHANNEL_BROKEN"


class StorageError(PenstockError):
    """A file system refused an operation."""

    code = "STORAGE"


class CorruptCheckpointError(StorageError):
    """A checkpoint file is cut short, altered, or of an unknown version."""

    code = "CORRUPT_CHECKPOINT"


class SupersededError(PenstockError):
    """Another driver has taken this job id over."""

    code = "SUPERSEDED"


class CheckpointError(PenstockError):
    """A checkpoint was not completed, or more of them failed than the job is to bear."""

    code = "CHECKPOINT"


class CheckpointDirectoryError(StorageError):
    """The checkpoint directory cannot be used."""

    code = "CHECKPOINT_DIRECTORY"


class CheckpointFormatError(StorageError):
    """A checkpoint was written by a newer version of Penstock."""

    code = "CHECKPOINT_FORMAT"


class RescaleError(PenstockError):
    """A running job does not change its parallelism; it goes on as before."""

    code = "RESCALE"


class ControlError(PenstockError):
    """A running job could not be reached, or refused what was asked of it."""

    code = "CONTROL"


class RefusedError(PenstockError):
    """A server refuses something, and would do so again; no restart follows."""

    code = "REFUSED"


class SourceError(PenstockError):
    """A source cannot be read: a server refused the connection or broke it off."""

    code = "SOURCE"


class SourceMissingError(SourceError):
    """What a source reads, such as a topic or a partition, is not there, or not there any more."""

    code = "SOURCE_MISSING"


class SourceRefusedError(SourceError, RefusedError):
    """What a source reads is refused to it, or is not what its positions belong to, for good."""

    code = "SOURCE_REFUSED"


class SinkError(PenstockError):
    """A sink could not prepare or commit its output."""

    code = "SINK"


class LostOutputError(SinkError):
    """A checkpoint covers output that can never be committed."""

    code = "LOST_OUTPUT"

    def __init__(
        self, message: str, lost: Iterable[object] = (), visible: Iterable[object] = ()
    ) -> None:
        super().__init__(message)
        self.lost = tuple(lost)
        """The committables that cannot be committed."""
        self.visible = tuple(visible)
        """Those of the same commit that are committed, or may be: nobody knows."""


class SinkRefusedError(SinkError, RefusedError):
    """A server refuses a sink's output or its user, for good."""

    code = "SINK_REFUSED"


# --- how a job ended --------------------------------------------------------------------------


@dataclass(frozen=True)
class FailureOrigin:
    """Where in the program a failure arose."""

    operator: str
    subtask: int
    parallelism: int
    record: str | None = None

    def __str__(self) -> str:
        where = f"operator {self.operator!r}, subtask {self.subtask + 1}/{self.parallelism}"
        return where if self.record is None else f"{where}, record {self.record}"


class UserFunctionError(PenstockError):
    """A user's function raised: its own frames first, then where in the program it was."""

    code = "USER_FUNCTION"

    def __init__(self, message: str, user_traceback: str, origin: FailureOrigin) -> None:
        super().__init__(message)
        self.user_traceback = user_traceback
        self.origin = origin

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.message, self.user_traceback, self.origin))

    def summary(self) -> str:
        return f"{super().summary()}; in {self.origin}"

    def __str__(self) -> str:
        return f"{self.message}\n{self.user_traceback.rstrip()}\n  in {self.origin}"


class JobFailedError(PenstockError):
    """The job ended in failure; ``__cause__`` is what failed it."""

    code = "JOB_FAILED"


class JobCancelledError(PenstockError):
    """The job was cancelled while its result was awaited."""

    code = "JOB_CANCELLED"
