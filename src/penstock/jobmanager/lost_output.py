"""What to do when a checkpoint covers output that can never be committed.

A broker or a database may lose what was prepared: it timed out, somebody rolled it back, the server
is another one. The state of the checkpoint says that the records are written, and they are not.

* If nothing else that the checkpoint covers is visible yet, the checkpoint is withdrawn and the job
  goes on from the one before, which produces the lost records again.
* If something is, going back would repeat it, and going on would leave records out. That is not
  ours to choose: the job stops, once, and names the two ways and the option that chooses one.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from penstock.checkpoint.metadata import CheckpointMetadata
from penstock.checkpoint.settings import LostOutput
from penstock.common import config_options as options
from penstock.common.plain import Plain
from penstock.errors import LostOutputError
from penstock.jobmanager.committing import Committables, name_of


class WayOut(Enum):
    """How the job goes on."""

    GO_BACK = "from the checkpoint before"
    SKIP = "without the lost records"
    STOP = "not before the user has chosen"


def way_out(choice: LostOutput, error: LostOutputError, older: CheckpointMetadata | None) -> WayOut:
    """How to go on from a checkpoint of which something is lost, with `older` before it."""
    if choice is LostOutput.SKIP:
        return WayOut.SKIP
    if older is None:
        return WayOut.STOP
    # What the older one covers too is committed from there as well.
    before = _names(value for values in older.committables.values() for value in values)
    repeats = _names(error.visible) - before
    return WayOut.GO_BACK if choice is LostOutput.REPEAT or not repeats else WayOut.STOP


def without(covered: Committables, lost: Iterable[Plain]) -> Committables:
    """What is covered and not lost."""
    names = _names(lost)
    return {
        uid: tuple(value for value in values if name_of(value) not in names)
        for uid, values in covered.items()
    }


def unchosen(
    error: LostOutputError, checkpoint: int, older: CheckpointMetadata | None
) -> LostOutputError:
    """The error that stops the job and names the ways to go on."""
    repeat = "there is no older one to go back to"
    if older is not None:
        repeat = (
            f"or to repeat, to go on from checkpoint {older.checkpoint}, so that what checkpoint "
            f"{checkpoint} has committed comes again"
        )
    return LostOutputError(
        f"{error.message}; checkpoint {checkpoint} counts them as written: set "
        f"{options.LOST_OUTPUT.key} to skip, to go on without them, {repeat}",
        error.lost,
        error.visible,
    )


def _names(values: Iterable[Plain]) -> set[str]:
    return {name_of(value) for value in values}
