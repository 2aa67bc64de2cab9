"""A job that counts by key into files, in the simulator: tests of savepoints stop and start it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from patience import PATIENCE

from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.testing import local_environment
from penstock.testing.local_environment import LocalEnvironment

BELOW = "execution.checkpointing."
NUMBERS = 10_000
"""So many that a job is still at it when a test has seen what it waits for."""
KEYS = 7


def environment(**more: str) -> Any:
    values = {BELOW + "interval": "10 ms", **{k.replace("_", "."): v for k, v in more.items()}}
    return local_environment(seed=3, configuration=Configuration.from_dict(values))


def totals(
    env: LocalEnvironment,
    numbers: int,
    parallelism: int = 2,
    restore: str | None = None,
    out: str = "out",
    **more: str,
) -> Any:
    """Start a job that writes the running count of every key to files."""
    env._configuration.set_string(BELOW + "dir", f"{env.storage}/checkpoints")
    for key, value in more.items():
        env._configuration.set_string(key, value)
    if restore is not None:
        env._configuration.set_string("execution.state-recovery.path", restore)
    env.set_parallelism(parallelism)
    source = NumberSequenceSource(0, numbers - 1)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("source")
    ones = stream.map(lambda n: (n % KEYS, 1)).uid("ones")
    counts = ones.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    files = FileSink.for_row_format(f"{env.storage}/{out}", as_line).build()
    counts.uid("counts").sink_to(files).uid("files")
    return env.execute_async("totals")


def as_line(value: Any) -> bytes:
    return f"{value[0]} {value[1]}\n".encode()


def written(env: LocalEnvironment, out: str = "out") -> list[str]:
    """All lines that are committed."""
    return sorted(
        line
        for path, data in env.filesystem.files.items()
        if path.startswith(f"/{out}/") and not path.rsplit("/", 1)[1].startswith(".")
        for line in data.decode().splitlines()
    )


def expected(numbers: int) -> list[str]:
    counts = Counter(n % KEYS for n in range(numbers))
    return sorted(f"{key} {i + 1}" for key, count in counts.items() for i in range(count))


def after_some(job: Any, checkpoints: int = 2) -> None:
    while job.progress().completed_checkpoints < checkpoints:
        assert not job.get_job_execution_result().done(), "it ended before that"


def stopped(env: LocalEnvironment) -> str:
    """A savepoint with which a job was stopped before its end."""
    job = totals(env, NUMBERS)
    after_some(job)
    path: str = job.stop_with_savepoint(False, f"{env.storage}/savepoints").result(PATIENCE)
    job.get_job_execution_result().result(PATIENCE)
    return path
