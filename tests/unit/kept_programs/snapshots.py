"""Snapshots that are not savepoints: checkpoints of every form, built upon one another.

They are made of programs whose results come at the end of the input: what an earlier checkpoint
than the kept one committed is not in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kept_programs.program import program
from kept_programs.states import Remember, by_seven, remembered
from kept_programs.values import kept, types
from kept_programs.windows import (
    SIZE,
    in_sessions,
    in_windows,
    sessions_with_lateness,
    shown,
    tumbling_with_lateness,
)
from penstock.common import Row
from penstock.datastream import DataStream, TimeWindow

ROCKSDB = {"state.backend.type": "rocksdb"}
FILES = {**ROCKSDB, "state.backend.rocksdb.checkpoint.files-from": "0"}
CHANGELOG = {"state.backend.changelog.enabled": "true", "penstock.changelog.interval": "1 ms"}
COMPRESSED = {"execution.checkpointing.snapshot-compression": "true"}
UNALIGNED = {"execution.checkpointing.unaligned.enabled": "true"}


def handles(snapshot: Path) -> list[dict[str, Any]]:
    """The segments that a checkpoint names."""
    content = json.loads((snapshot / "_metadata").read_bytes())["content"]
    subtasks = [s for vertex in content["vertices"].values() for s in vertex["subtasks"]]
    operators = [operator for subtask in subtasks for operator in subtask["operators"].values()]
    return [handle for operator in operators for handle in operator["segments"]]


def has_deltas(snapshot: Path) -> bool:
    """Whether checkpoints before it have written a part of its state."""
    own = snapshot.name.removeprefix("chk-")
    attempts = {handle["path"].split("/")[-1].split("-")[1] for handle in handles(snapshot)}
    return len(attempts) > 1 and own in attempts


def has_files(snapshot: Path) -> bool:
    return any(handle["file"] for handle in handles(snapshot))


def has_files_and_deltas(snapshot: Path) -> bool:
    return has_files(snapshot) and any(not handle["database"] for handle in handles(snapshot))


def has_log(snapshot: Path) -> bool:
    return any("-log-" in handle["path"] for handle in handles(snapshot))


def has_log_upon_files(snapshot: Path) -> bool:
    return has_log(snapshot) and has_files(snapshot)


@program(remembered, checkpoints=(20, 40, 50), good=has_deltas)
def deltas(numbers: DataStream) -> DataStream:
    return numbers.key_by(by_seven).process(Remember()).uid("remember")


@program(remembered, checkpoints=(20, 40, 50), settings=ROCKSDB, good=has_deltas)
def deltas_on_rocksdb(numbers: DataStream) -> DataStream:
    return deltas(numbers)


@program(in_sessions, checkpoints=(10, 35, 60), good=has_deltas)
def deltas_of_sessions(numbers: DataStream) -> DataStream:
    return sessions_with_lateness(numbers)


@program(kept, before=12, after=20, checkpoints=(12,), settings=FILES, good=has_files)
def rocksdb_files(numbers: DataStream) -> DataStream:
    return types(numbers)


@program(remembered, checkpoints=(45, 50), settings=FILES, good=has_files_and_deltas)
def rocksdb_files_and_deltas(numbers: DataStream) -> DataStream:
    return deltas(numbers)


@program(in_windows(SIZE, SIZE, shown), checkpoints=(20, 50), settings=FILES, good=has_files)
def rocksdb_files_of_windows(numbers: DataStream) -> DataStream:
    return tumbling_with_lateness(numbers)


@program(remembered, checkpoints=(20, 35, 50), settings=COMPRESSED, good=has_deltas)
def compressed_deltas(numbers: DataStream) -> DataStream:
    return deltas(numbers)


@program(remembered, settings=COMPRESSED)
def compressed(numbers: DataStream) -> DataStream:
    return deltas(numbers)


@program(remembered, checkpoints=(20, 50), settings=CHANGELOG, good=has_log)
def changelog(numbers: DataStream) -> DataStream:
    return deltas(numbers)


@program(in_sessions, checkpoints=(20, 50), settings={**CHANGELOG, **ROCKSDB}, good=has_log)
def changelog_on_rocksdb(numbers: DataStream) -> DataStream:
    return sessions_with_lateness(numbers)


@program(
    lambda numbers: remembered(numbers, keys=41),
    checkpoints=(82, 86),
    after=120,
    settings={**CHANGELOG, **FILES},
    good=has_log_upon_files,
)
def changelog_upon_rocksdb_files(numbers: DataStream) -> DataStream:
    # So many keys that what changes is little beside the files, which are written anew otherwise.
    return numbers.key_by(lambda n: n % 41).process(Remember()).uid("remember")


def in_a_window(number: int) -> Row:
    return Row(n=number, window=TimeWindow(number, number + 1))


def has_records_in_flight(snapshot: Path) -> bool:
    shared = snapshot.parent / "shared"
    return any(b"TimeWindow" in path.read_bytes() for path in shared.glob("*-channels-of-*"))


@program(
    remembered,
    checkpoints=(50,),
    settings=UNALIGNED,
    good=has_records_in_flight,
    parallelisms=(2,),
)
def in_flight(numbers: DataStream) -> DataStream:
    rows = numbers.map(in_a_window).uid("rows")
    starts = rows.rebalance().map(lambda row: row["window"].start).uid("starts")
    return starts.key_by(by_seven).process(Remember()).uid("remember")
