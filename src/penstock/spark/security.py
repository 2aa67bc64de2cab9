"""Whether a cluster keeps its secrets: programs, records of Spark, and the keys of CURVE.

Slots speak to each other and to the driver through CURVE. Its keys travel with the launch, through
Spark, so they are as secret as what Spark sends.
"""

from __future__ import annotations

import functools
import logging

from pyspark.sql import SparkSession

from penstock.errors import SparkLaunchError
from penstock.spark.settings import is_on_this_machine

log = logging.getLogger(__name__)

_REQUIRE = "penstock.require-secure-cluster"


def weakness(master: str, conf: dict[str, str]) -> str | None:
    """What of a session on `master` travels in the clear, and what to add; None: nothing does."""
    missing = []
    if conf.get("spark.authenticate") != "true":
        missing.append("spark.authenticate=true")
    if "true" not in (conf.get("spark.network.crypto.enabled"), conf.get("spark.ssl.rpc.enabled")):
        missing.append("spark.network.crypto.enabled=true")
    if not missing or is_on_this_machine(master):
        return None
    return (
        f"on {master} the program, and the keys that slots encrypt records with, travel in the "
        f"clear: add {' and '.join(missing)} to the settings of the cluster and of the session"
    )


def check_security(session: SparkSession, required: bool) -> None:
    """Warn about a session where secrets travel in the clear; SparkLaunchError if `required`."""
    context = session.sparkContext
    found = weakness(str(context.master), dict(context.getConf().getAll()))
    if found is None:
        return
    if required:
        raise SparkLaunchError(f"{found}, or leave out {_REQUIRE}")
    _warn(found)


@functools.cache
def _warn(what: str) -> None:
    """Once is enough."""
    log.warning("%s (%s: true makes this an error)", what, _REQUIRE)
