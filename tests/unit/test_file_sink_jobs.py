"""What a whole job makes of a file sink that cannot write: its error, and what can be seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    JsonLineEncoder,
    RollingPolicy,
)
from penstock.errors import JobFailedError, StorageError
from penstock.testing.local_environment import LocalEnvironment, local_environment

SETTINGS = {"restart-strategy.type": "none", "execution.checkpointing.interval": "10 ms"}


@pytest.fixture
def env() -> Iterator[LocalEnvironment]:
    with local_environment(seed=5, configuration=Configuration.from_dict(SETTINGS)) as made:
        yield made


def visible(env: LocalEnvironment) -> dict[str, bytes]:
    files = env.filesystem.files.items()
    out = {path: data for path, data in files if path.startswith("/out/")}
    assert not [path for path in out if path.startswith("/out/.")], "something is left over"
    return out


def fill_up(env: LocalEnvironment, room: int) -> None:
    """From now on the sink's files take so many bytes together."""
    append, left = env.filesystem.append, [room]

    class Filling:
        def __init__(self, path: str) -> None:
            self._path, self._stream = path, append(path)
            self.sync, self.close = self._stream.sync, self._stream.close

        def write(self, data: bytes) -> None:
            left[0] -= len(data)
            if left[0] < 0:
                # Half of it fits.
                self._stream.write(data[: len(data) // 2])
                raise StorageError(f"cannot write {self._path}: No space left on device")
            self._stream.write(data)

    env.filesystem.append = Filling  # type: ignore[method-assign, assignment]


def test_a_disk_that_fills_up_shows_no_half_file(env: LocalEnvironment) -> None:
    fill_up(env, 150)
    builder = FileSink.for_row_format(f"{env.storage}/out", JsonLineEncoder())
    sink = builder.with_rolling_policy(RollingPolicy(part_size=20)).build()
    env.from_collection([f"{n:06}" for n in range(400)]).sink_to(sink)
    with pytest.raises(JobFailedError, match=r"cannot write /out/\.part-.*No space left"):
        env.execute()
    for path, data in visible(env).items():
        assert data.endswith(b'"\n') and len(data) % len(b'"000000"\n') == 0, path


def test_a_disk_that_has_room_again_gets_every_record_once() -> None:
    settings = {**SETTINGS, "restart-strategy.type": "fixed-delay"}
    settings |= {"restart-strategy.fixed-delay.attempts": "3"}
    with local_environment(seed=6, configuration=Configuration.from_dict(settings)) as env:
        append, refused = env.filesystem.append, []

        def full_once(path: str) -> Any:
            if not refused:
                refused.append(path)
                raise StorageError(f"cannot open {path}: No space left on device")
            return append(path)

        env.filesystem.append = full_once  # type: ignore[method-assign]
        sink = FileSink.for_row_format(f"{env.storage}/out").build()
        env.from_collection(range(100)).sink_to(sink)
        env.execute()
        lines = [int(line) for data in visible(env).values() for line in data.split()]
    assert refused and sorted(lines) == list(range(100))


def test_a_record_that_cannot_be_written_is_named(env: LocalEnvironment) -> None:
    sink = FileSink.for_row_format(f"{env.storage}/out", JsonLineEncoder()).build()
    env.from_collection([1, {2}]).sink_to(sink).name("files")
    with pytest.raises(JobFailedError, match=r"cannot be written as JSON: .*\{2\}"):
        env.execute()
    assert visible(env) == {}


class Upwards(BucketAssigner):
    def get_bucket_id(self, element: Any, context: Any) -> str:
        return "../elsewhere"


def test_a_bucket_outside_of_the_directory_fails_the_job(env: LocalEnvironment) -> None:
    builder = FileSink.for_row_format(f"{env.storage}/out")
    env.from_collection([1]).sink_to(builder.with_bucket_assigner(Upwards()).build())
    with pytest.raises(JobFailedError, match=r"'\.\./elsewhere' is not a path below"):
        env.execute()
    assert not [path for path in env.filesystem.files if "elsewhere" in path]


def test_two_sinks_of_one_job_share_a_directory() -> None:
    with local_environment(seed=7, faults=True) as env:
        numbers = env.from_collection(range(50))
        for mark in "ab":
            sink = FileSink.for_row_format(
                f"{env.storage}/out", lambda n, mark=mark: f"{mark}{n}\n".encode()
            )
            numbers.sink_to(sink.build())
        env.execute()
        lines = [line for data in visible(env).values() for line in data.decode().split()]
    assert sorted(lines) == sorted(f"{mark}{n}" for mark in "ab" for n in range(50))
