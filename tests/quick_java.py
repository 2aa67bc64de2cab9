"""JVMs of tests live for seconds: they start with flags, and with an archive, that make that cheap.

Most of what a driver on Spark costs in a test is the start of its JVM: it loads ten thousand
classes and compiles what it will never run again. With the first compiler alone it takes half the
processor time, and a quarter with an archive of the classes as they are once they are loaded
(https://openjdk.org/jeps/350). `python tests/quick_java.py` makes the archive, inside the virtual
environment; without one tests only take longer.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.errors import NoJavaError
from penstock.spark.java import ensure_java

_FOUND = "PENSTOCK_TESTS_JAVA_FLAGS"
FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"

_JOB = """
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
keyed = env.from_collection(range(100)).key_by(lambda n: n % 7)
print(sum(keyed.map(lambda n: n).execute_and_collect()))
"""


def archive() -> Path:
    """Where the archive is: one for this Java and this Spark."""
    ensure_java()
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    version = subprocess.run([java, "-version"], capture_output=True, check=True).stderr
    pyspark = importlib.util.find_spec("pyspark")
    facts = f"{version!r} {pyspark and pyspark.origin}"
    return Path(sys.prefix, f"spark-{hashlib.sha256(facts.encode()).hexdigest()[:12]}.jsa")


def flags() -> str:
    """The flags for a JVM of Spark's that a test starts: a driver, an executor, a Worker."""
    # Whoever started this process may have found them.
    if _FOUND not in os.environ:
        os.environ[_FOUND] = _flags()
    return os.environ[_FOUND]


def _flags() -> str:
    try:
        path = archive()
    except NoJavaError:
        return FLAGS
    # A file that does not fit any more is passed over; nothing need be said about that.
    return f"{FLAGS} -XX:SharedArchiveFile={path} -Xlog:disable" if path.exists() else FLAGS


def use() -> None:
    """Let every driver that this process or a child of it starts have the flags."""
    chosen = flags()
    os.environ.setdefault("SPARK_SUBMIT_OPTS", chosen)
    os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", chosen)
    # The JVM that works out the command line of the other one.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", FLAGS)


def make() -> None:
    """Make the archive, by a small job on Spark, unless it is there."""
    path = archive()
    if path.exists():
        return
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder, path.name)
        subprocess.run(
            [sys.executable, "-c", _JOB],
            env={**os.environ, "SPARK_SUBMIT_OPTS": f"{FLAGS} -XX:ArchiveClassesAtExit={made}"},
            capture_output=True,
            check=False,
        )
        # Some Javas come without the archive of their own classes that another builds upon.
        if made.exists():
            made.replace(path)


if __name__ == "__main__":
    make()
