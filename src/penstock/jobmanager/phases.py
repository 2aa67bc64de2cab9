"""The phases that a JobMaster goes through."""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """What the JobMaster is waiting for."""

    CREATED = "created"
    LOOKING = "a look whether another driver has the job"
    LAUNCHING = "slots to register"
    RECOVERING = "the start point"
    RESTORING = "slots to restore their state"
    SETTLING = "the output that the checkpoint covers"
    STARTING = "slots to start"
    RUNNING = "nothing: the job runs"
    STOPPING = "slots to stop the attempt"
    UNLAUNCHING = "the launch to end"
    WAITING = "the restart delay"
    ENDED = "nothing: the job is over"
