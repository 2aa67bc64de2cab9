"""The stages that random programs are made of, each told twice: to the engine and to a model.

A stage is *confluent*: what comes out, as a multiset, depends only on what goes in, as a multiset.
Its model says so in a few lines of plain Python over the list of all records. A stage may hold
state of any kind, set timers, mutate what it was given and what it gave away: none of that may
show in the result.

Any value is a record. `number` gives each one an integer to compute with, `label` gives equal keys
one name.
"""

from penstock.testing.stages.base import (
    Key,
    Records,
    Stage,
    number,
)
from penstock.testing.stages.held import (
    HoldBack,
)
from penstock.testing.stages.keyed import (
    Alarms,
    AtEnd,
    CountUp,
    EmitState,
    Follow,
    RunningCount,
)
from penstock.testing.stages.partial import (
    Partial,
    RunningSum,
    Settle,
)
from penstock.testing.stages.stateless import (
    Box,
    Burst,
    FailOnce,
    Recycle,
    Scramble,
    Scribble,
    Sieve,
    begin_run,
)
from penstock.testing.stages.tally import (
    Tally,
)

__all__ = [
    "Alarms",
    "AtEnd",
    "Box",
    "Burst",
    "CountUp",
    "EmitState",
    "FailOnce",
    "Follow",
    "HoldBack",
    "Key",
    "Partial",
    "Records",
    "Recycle",
    "RunningCount",
    "RunningSum",
    "Scramble",
    "Scribble",
    "Settle",
    "Sieve",
    "Stage",
    "Tally",
    "begin_run",
    "number",
]
