"""Files of a job whose slots are killed, read by Spark at every moment: never a half one.

The job writes the same records as JSON, as CSV and as Parquet, in files that roll, into folders.
While it runs and slots die, whatever can be seen is read, again and again.
"""

from __future__ import annotations

import csv
import json
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from job_parts import (
    Count,
    Ticker,
    check_counts,
    environment,
    key_of,
    running,
    slot_pids,
    ticked,
)
from patience import PATIENCE, until
from pyspark.sql import DataFrame, SparkSession

from penstock.common import JobClient, WatermarkStrategy
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    CsvWriterFactory,
    FileSink,
    JsonLineEncoder,
    ParquetWriterFactory,
    RollingPolicy,
)

pytestmark = pytest.mark.full("kills")

parquet = pytest.importorskip("pyarrow.parquet")

KILLS = 3
SEED = 12
COLUMNS = ["key", "count", "number"]
Rows = list[tuple[int, ...]]


class ByKey(BucketAssigner):
    def get_bucket_id(self, element: Any, context: Any) -> str:
        return f"parity={element['key'] % 2}/half"


def as_dict(counted: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip(COLUMNS, counted, strict=True))


def start(folder: Path) -> JobClient:
    env = environment(2, folder / "checkpoints", "1 s")
    ticks = env.from_source(
        Ticker(folder / "stop", 500), WatermarkStrategy.no_watermarks(), "ticks"
    )
    stream = ticks.set_parallelism(2).key_by(key_of).process(Count()).map(as_dict)
    small = RollingPolicy(part_size=4_000)
    rows = FileSink.for_row_format(str(folder / "json"), JsonLineEncoder())
    stream.sink_to(rows.with_rolling_policy(small).with_bucket_assigner(ByKey()).build())
    table = FileSink.for_bulk_format(str(folder / "csv"), CsvWriterFactory(COLUMNS))
    stream.sink_to(table.with_rolling_policy(small).build())
    schema = dict.fromkeys(COLUMNS, "int64")
    columns = FileSink.for_bulk_format(str(folder / "parquet"), ParquetWriterFactory(schema))
    stream.sink_to(columns.with_bucket_assigner(ByKey()).build())
    return env.execute_async("three formats")


# --- reading file by file ---------------------------------------------------------------------


def _json(path: Path) -> Rows:
    text = path.read_text()
    assert text.endswith("\n")
    return [tuple(json.loads(line)[name] for name in COLUMNS) for line in text.splitlines()]


def _csv(path: Path) -> Rows:
    text = path.read_text()
    assert text.endswith("\n")
    header, *rows = csv.reader(text.splitlines())
    assert header == COLUMNS
    return [tuple(map(int, row)) for row in rows]


def _parquet(path: Path) -> Rows:
    # As a file by itself: its folders' names are not to become columns.
    with path.open("rb") as file:
        rows = parquet.read_table(file).to_pylist()
    return [tuple(row[name] for name in COLUMNS) for row in rows]


FORMATS: dict[str, Callable[[Path], Rows]] = {"json": _json, "csv": _csv, "parquet": _parquet}


class Reader:
    """Reads whatever can be seen; a file that was seen must stay as it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.seen: dict[Path, Rows] = {}
        self._sizes: dict[Path, int] = {}

    def look(self) -> None:
        for name, parse in FORMATS.items():
            for path in visible(self._folder / name):
                size = path.stat().st_size
                if path in self.seen:
                    assert size == self._sizes[path], f"{path} changed"
                    continue
                self.seen[path], self._sizes[path] = parse(path), size
                assert self.seen[path], f"{path} is empty"
        assert all(path.exists() for path in self.seen), "what was visible is gone"


def visible(folder: Path) -> Iterator[Path]:
    """The files that Spark would read."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        yield from (Path(parent, name) for name in names if not name.startswith((".", "_")))


# --- reading by Spark -------------------------------------------------------------------------


def frames(session: SparkSession, folder: Path) -> dict[str, DataFrame]:
    schema = "key long, count long, number long"
    # A file that does not parse is an error, not a row of nulls.
    reader = session.read.schema(schema).option("recursiveFileLookup", True)
    strict = reader.option("mode", "FAILFAST").option("header", True)
    return {
        "json": strict.json(str(folder / "json")),
        "csv": strict.csv(str(folder / "csv")),
        "parquet": strict.parquet(str(folder / "parquet")),
    }


def rows_by_spark(session: SparkSession, folder: Path) -> dict[str, Rows]:
    return {
        name: [(row["key"], row["count"], row["number"]) for row in frame.collect()]
        for name, frame in frames(session, folder).items()
    }


def test_a_directory_is_whole_at_every_moment(session: SparkSession, tmp_path: Path) -> None:
    chance, reader = random.Random(SEED), Reader(tmp_path)
    job = start(tmp_path)
    before = running(job, checkpoints=1)
    for name in FORMATS:
        until(lambda name=name: any(visible(tmp_path / name)), f"the first {name} is out")
    for _ in range(KILLS):
        reader.look()
        for name, rows in rows_by_spark(session, tmp_path).items():
            assert rows and len(set(rows)) == len(rows), f"{name}: a record came twice"
        os.kill(chance.choice(slot_pids(before)), signal.SIGKILL)

        def next_attempt(last: int = before.attempt) -> bool:
            reader.look()
            return bool(job.progress().attempt > last)  # type: ignore[attr-defined]

        until(next_attempt, "the job starts again")
        completed = before.completed_checkpoints + chance.randrange(1, 3)
        before = running(job, before.attempt + 1, completed)
    (tmp_path / "stop").touch()
    job.get_job_execution_result().result(timeout=PATIENCE)
    reader.look()

    written = rows_by_spark(session, tmp_path)
    made = ticked(tmp_path / "stop")
    assert len(made) > 500
    for rows in written.values():
        check_counts(rows, made)
    assert sum(map(len, reader.seen.values())) == 3 * len(made)
    left = [path for name in FORMATS for path in (tmp_path / name).rglob(".*")]
    assert not left, "dead attempts leave nothing behind"
