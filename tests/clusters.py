"""Settings of sessions whose executors are processes of their own.

Spark keeps what belongs to a local cluster in a folder named by the second in which it started, so
two of them must not start at once: their tests are in the group `local-cluster`, which one process
runs one after another.
"""

from __future__ import annotations

import pytest
import quick_java

EXECUTORS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": quick_java.flags(),
}

one_at_a_time = pytest.mark.xdist_group("local-cluster")


def local_cluster(executors: int, cores: int) -> dict[str, str]:
    """The settings of a session with so many executors of so many cores each."""
    return {"spark.master": f"local-cluster[{executors},{cores},1024]", **EXECUTORS}
