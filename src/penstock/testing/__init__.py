"""Tools to test Penstock programs, and Penstock itself, without a cluster.

For programs: `OperatorHarness` feeds one function, or a few, record by record and lets a test look
at output, state and time; `local_environment` runs a whole program in this process, as a seed
decides, with faults if asked for.

For Penstock: `simulator` runs a whole job of many slots: one seed decides every interleaving and
every fault, and replays them exactly. `scenarios` lets the seed decide the program and its
settings too: `programs` grows it from stages, with a model of what must come out. `spark_cluster`
starts a real cluster to kill.
"""

from penstock.testing.faults import FaultRates
from penstock.testing.local_environment import LocalEnvironment, local_environment
from penstock.testing.operator_harness import HarnessSnapshot, OperatorHarness

__all__ = [
    "FaultRates",
    "HarnessSnapshot",
    "LocalEnvironment",
    "OperatorHarness",
    "local_environment",
]
