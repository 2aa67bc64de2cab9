"""DataFrames from tasks, and tasks on DataFrames: Spark's side of state tables.

A task is a picklable object that is called where an executor is. What it does is not Spark's
concern; which columns its rows have is.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame as DataFrame
from pyspark.sql import SparkSession
from pyspark.sql import types as spark

from penstock.common.typeinfo import TypeInformation
from penstock.errors import PenstockError, ProgramError, TypeMismatchError
from penstock.spark.columns import column_type, declared_type, from_column, to_column
from penstock.spark.session import session_for
from penstock.spark.settings import is_local
from penstock.spark.shipping import search_path_for

Columns = Sequence[tuple[str, TypeInformation]]
"""The names of columns with the types of their values."""


def current_session() -> SparkSession:
    """The session of this process, made if there is none."""
    return session_for(None, "penstock state", {})


def frame_of(
    session: SparkSession,
    tasks: Sequence[Callable[[], Iterable[Sequence[Any]]]],
    columns: Columns,
) -> DataFrame:
    """The rows that all tasks give, one Spark task for each; they run when the frame is used."""
    schema = spark.StructType(
        [spark.StructField(name, column_type(kind)) for name, kind in columns]
    )
    if not tasks:
        return session.createDataFrame([], schema)
    rows = _spread(session, tasks).mapPartitions(_there(session, _Rows(tuple(columns))))
    # Not verified: every value was converted to its column.
    return session.createDataFrame(rows, schema, verifySchema=False)


def run_tasks(session: SparkSession, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each of the tasks gives; an error of Penstock's that one raises is raised here."""
    if not tasks:
        return []
    return _collected(_spread(session, tasks).mapPartitions(_there(session, _Results())))


def run_on_frame(
    session: SparkSession,
    frame: DataFrame,
    columns: Columns,
    place: Callable[[Sequence[Any]], int],
    parts: int,
    work: Callable[[int, Iterator[Sequence[Any]]], Any],
) -> list[Any]:
    """Bring each row of `frame` to the part that `place` says; what `work` gives for every part.

    `place` and `work` are given rows of these columns, with values of these types.
    """
    names = [name for name, _ in columns]
    rows = _few(session, frame.select(*names).rdd)
    placing = _Placing(place, tuple(kind for _, kind in columns))
    # The function is Spark's own: it is looked up before anything of ours can be imported.
    placed = rows.mapPartitions(_there(session, placing)).partitionBy(parts, int)
    return _collected(placed.mapPartitionsWithIndex(_there_at(session, _Working(work))))


def types_of(frame: DataFrame, names: Sequence[str], what: str) -> dict[str, TypeInformation]:
    """The types that values of these columns have; ProgramError if a column is missing."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ProgramError(
            f"{what} needs the columns {', '.join(names)}, and the DataFrame has "
            f"{', '.join(frame.columns) or 'none'}"
        )
    return {name: declared_type(frame.schema[name].dataType) for name in names}


def _few(session: SparkSession, rows: RDD[Any]) -> RDD[Any]:
    """In local mode, no more parts than the machine has cores.

    A session has more of them there, for slots that mostly wait; these work.
    """
    cores = os.cpu_count() or 1
    if is_local(str(session.sparkContext.master)) and rows.getNumPartitions() > cores:
        return rows.coalesce(cores)
    return rows


def _spread(session: SparkSession, tasks: Sequence[Any]) -> RDD[bytes]:
    pickled = [pickle.dumps(task, protocol=5) for task in tasks]
    return session.sparkContext.parallelize(pickled, len(pickled))


def _there(
    session: SparkSession, work: Callable[[Iterable[Any]], Iterable[Any]]
) -> Callable[[Iterable[Any]], Iterable[Any]]:
    at = _there_at(session, work)
    return lambda rows: at(None, rows)


def _there_at(session: SparkSession, work: Any) -> Callable[[Any, Iterable[Any]], Iterable[Any]]:
    """The function for Spark: nested, so that it is pickled by value and finds Penstock itself."""
    pickled = pickle.dumps(work, protocol=5)
    search_path = search_path_for(session.sparkContext)

    def body(index: Any, rows: Iterable[Any]) -> Iterable[Any]:
        import pickle
        import sys

        others = [entry for entry in sys.path if entry not in search_path]
        sys.path[:] = [*search_path, *others]
        work = pickle.loads(pickled)
        return work(rows) if index is None else work(index, rows)  # type: ignore[no-any-return]

    return body


def _collected(results: RDD[Any]) -> list[Any]:
    """What the tasks gave. Errors come as values: Spark would wrap them into a page of Java."""
    collected = [pickle.loads(result) for result in results.collect()]
    for result in collected:
        if isinstance(result, PenstockError):
            raise result
    return collected


class _Rows:
    """Tasks in, rows for Spark out."""

    def __init__(self, columns: tuple[tuple[str, TypeInformation], ...]) -> None:
        self._columns = columns

    def __call__(self, tasks: Iterable[bytes]) -> Iterator[tuple[Any, ...]]:
        converts = [to_column(kind) for _, kind in self._columns]
        for task in tasks:
            for row in pickle.loads(task)():
                try:
                    converted = tuple(c(value) for c, value in zip(converts, row, strict=True))
                except TypeMismatchError:
                    raise self._blamed(row) from None
                yield converted

    def _blamed(self, row: Sequence[Any]) -> TypeMismatchError:
        for (name, kind), value in zip(self._columns, row, strict=True):
            try:
                to_column(kind)(value)
            except TypeMismatchError as error:
                return error.inside(f"column {name}")
        raise AssertionError("a conversion is not a pure function: its failure did not repeat")


class _Results:
    """Tasks in, what they give out, pickled."""

    def __call__(self, tasks: Iterable[bytes]) -> Iterator[bytes]:
        for task in tasks:
            yield _result(pickle.loads(task))


class _Placing:
    """Spark's rows in, (part, pickled row) out; an error takes the place of a row.

    Pickled here: what Spark pickles it unpickles before Penstock can be imported.
    """

    def __init__(
        self, place: Callable[[Sequence[Any]], int], kinds: tuple[TypeInformation, ...]
    ) -> None:
        self._place = place
        self._kinds = kinds

    def __call__(self, rows: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        converts = [from_column(kind) for kind in self._kinds]
        for row in rows:
            try:
                values = tuple(c(value) for c, value in zip(converts, row, strict=True))
                yield self._place(values), pickle.dumps(values, protocol=5)
            except PenstockError as error:
                yield 0, pickle.dumps(error, protocol=5)


class _Working:
    """(part, pickled row) in, what the work on a part gives out, pickled."""

    def __init__(self, work: Callable[[int, Iterator[Sequence[Any]]], Any]) -> None:
        self._work = work

    def __call__(self, index: int, rows: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
        yield _result(lambda: self._work(index, _checked(rows)))


def _checked(rows: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
    for _, pickled in rows:
        row = pickle.loads(pickled)
        if isinstance(row, PenstockError):
            raise row
        yield row


def _result(work: Callable[[], Any]) -> bytes:
    try:
        return pickle.dumps(work(), protocol=5)
    except PenstockError as error:
        return pickle.dumps(error, protocol=5)
