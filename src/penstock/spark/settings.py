"""The settings of a session that Penstock makes: a pure function from what the user asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

LOG4J_FILE = Path(__file__).with_name("quiet-log4j2.properties")

_ALWAYS = {
    # A slot that dies must not be started again behind the JobMaster's back: it decides.
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
    # Spark refuses barrier stages under dynamic allocation.
    "spark.dynamicAllocation.enabled": "false",
    # Say within seconds, not ten minutes, that there are too few cores.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "3",
    # How long a cancelled Python task may live on before it is killed (default 2 s).
    "spark.python.task.killTimeout": "100ms",
    "spark.python.worker.faulthandler.enabled": "true",
    # With Unix sockets, every worker that was idle for a minute leaves a traceback on the terminal.
    "spark.python.unix.domain.socket.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.api.mode": "classic",
}

# A frozen executor is noticed after 12 s instead of 160 s. Not in local mode, where there is no
# other machine to lose and a laptop that slept would lose its session.
_ON_A_CLUSTER = {
    "spark.executor.heartbeatInterval": "2s",
    "spark.network.timeout": "12s",
    "spark.network.timeoutInterval": "2s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "12000",
}

_ON_THIS_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def default_master() -> str:
    """`local[N]` with more logical cores than the machine has.

    A slot holds its core for as long as the job lives, mostly waiting; the spare ones let several
    jobs, and ordinary Spark jobs beside them, run in the same session.
    """
    return f"local[{max(32, 4 * (os.cpu_count() or 1))}]"


def is_local(master: str) -> bool:
    """Whether everything runs inside the driver's JVM (`local`, `local[4]`, `local[*, 2]`)."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def is_on_this_machine(master: str) -> bool:
    """Whether slots surely run on the driver's machine: local, local-cluster, a loopback master."""
    if is_local(master) or master.startswith("local-cluster["):
        return True
    return urlsplit(master).hostname in ("127.0.0.1", "localhost", "::1")


def session_settings(master: str, user: Mapping[str, str]) -> dict[str, str]:
    """All settings for a new session on `master`. The user's go before ours."""
    settings = dict(_ALWAYS)
    if not is_local(master):
        settings.update(_ON_A_CLUSTER)
    if is_on_this_machine(master):
        settings.update(_ON_THIS_MACHINE)
    settings.update(user)
    settings["spark.master"] = master
    settings["spark.driver.extraJavaOptions"] = _java_options(
        user.get("spark.driver.extraJavaOptions", "")
    )
    return settings


def _java_options(user: str) -> str:
    if "log4j2.configurationFile" in user:
        return user
    return f"{user} -Dlog4j2.configurationFile={LOG4J_FILE.as_uri()}".strip()
