"""CSV and Parquet files as output: written whole, read back as they were."""

from __future__ import annotations

import csv
import datetime
import json
import re

import cloudpickle
import pytest

from penstock.common.typeinfo.base import shorten
from penstock.common.types import Row
from penstock.connectors.sink import CommitterContext, Sink, WriterContext
from penstock.connectors.source import EnumeratorContext, ReaderContext
from penstock.datastream.connectors.file_system import (
    BulkFormat,
    BulkWriter,
    BulkWriterFactory,
    CsvWriterFactory,
    FileSink,
    FileSource,
    JsonLineEncoder,
    ParquetWriterFactory,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from penstock.errors import ProgramError, RecordError

ROWS = [{"n": n, "text": f'"t", {n}\n', "list": [n] * (n % 3)} for n in range(25)]


@pytest.fixture
def write(tmp_path, clock):
    """Write records through a sink, commit, and return the files."""

    def write_all(factory, values, policy=None, commit=True):
        builder = FileSink.for_bulk_format(str(tmp_path), factory)
        if policy is not None:
            builder.with_rolling_policy(policy)
        sink = cloudpickle.loads(cloudpickle.dumps(builder.build()))
        writer = sink.create_writer(WriterContext("job", "uid", 1, 0, 1, clock, None, None))
        for value in values:
            writer.write(value)
            if isinstance(value, dict) and isinstance(value.get("list"), list):
                value["list"].append("changed after it was written")
        committables = writer.prepare_commit()()
        if commit:
            sink.create_committer(CommitterContext("job", "uid")).commit(committables)
        return sorted(tmp_path.iterdir())

    return write_all


def read(made, path):
    build = (
        FileSource.for_bulk_file_format
        if isinstance(made, BulkFormat)
        else FileSource.for_record_stream_format
    )
    source = build(made, str(path)).build()
    enumerator = source.create_enumerator(EnumeratorContext(1), None)
    reader, records = source.create_reader(ReaderContext(0, 1, None, None)), []
    while (splits := enumerator.next_splits(0)) is not None:
        reader.add_splits(splits)
        while batch := reader.poll(100):
            records += batch
    reader.close()
    return records


def copies():
    return [{**row, "list": list(row["list"])} for row in ROWS]


def test_csv_is_read_back(tmp_path, write):
    factory = CsvWriterFactory(["text", "n"])
    written = [{"n": row["n"], "text": row["text"]} for row in ROWS]
    assert len(write(factory, written)) == 1
    made = StreamFormat.csv_format(header=True, types={"n": int})
    assert read(made, tmp_path) == written


def test_every_csv_file_has_its_header(tmp_path, write):
    policy = RollingPolicy(part_size=60)
    files = write(CsvWriterFactory(["a", "b"]), [(n, "x" * 10) for n in range(30)], policy)
    assert len(files) > 5
    for file in files:
        assert file.read_bytes().startswith(b"a,b\r\n")
    records = read(StreamFormat.csv_format(header=True), tmp_path)
    assert sorted(int(record["a"]) for record in records) == list(range(30))


def test_csv_in_another_dialect_without_a_header(tmp_path, write):
    factory = CsvWriterFactory(
        ["a", "b"], header=False, charset="latin-1", delimiter=";", quoting=csv.QUOTE_ALL
    )
    [file] = write(factory, [("ü", 1)])
    assert file.read_bytes() == '"ü";"1"\r\n'.encode("latin-1")


@pytest.mark.parametrize("value", [{"a": 1}, {"a": 1, "c": 2}, (1,), "ab", 7])
def test_a_record_that_does_not_fit_the_columns_is_an_error(write, value):
    with pytest.raises(RecordError, match=re.escape(repr(value)) + "$"):
        write(CsvWriterFactory(["a", "b"]), [value])


def test_csv_that_the_character_set_has_not_is_named(write):
    values = [("a", 1), ("€", 2), ("b", 3)]
    with pytest.raises(RecordError, match=r"as latin-1: '€,2', because of '€'"):
        write(CsvWriterFactory(["text", "n"], charset="latin-1"), values)


def test_csv_that_the_dialect_cannot_say_is_named(write):
    factory = CsvWriterFactory(["a", "b"], quoting=csv.QUOTE_NONE)
    with pytest.raises(RecordError, match=r"as CSV: .*: \('x,y', 1\)"):
        write(factory, [("x,y", 1)])


def test_csv_that_cannot_be_is_refused():
    for kwargs in ({"columns": []}, {"columns": ["a"], "delimiter": "ab"}):
        with pytest.raises(ProgramError):
            CsvWriterFactory(**kwargs)
    with pytest.raises(ProgramError):
        CsvWriterFactory(["a"], charset="no-such")


def test_parquet_is_read_back(tmp_path, write):
    pa = pytest.importorskip("pyarrow")
    schema = {"n": "int64", "text": "string", "list": pa.list_(pa.int64())}
    assert len(write(ParquetWriterFactory(schema, row_group_rows=10), copies())) == 1
    assert read(BulkFormat.parquet_format(), tmp_path) == ROWS


def test_parquet_is_invisible_until_it_is_committed(tmp_path, write):
    pytest.importorskip("pyarrow")
    files = write(ParquetWriterFactory({"n": "int64"}), [{"n": 1}, {}], commit=False)
    assert [file.name.startswith(".") for file in files] == [True]
    assert read(BulkFormat.parquet_format(), tmp_path) == []
    assert read(BulkFormat.parquet_format(), files[0]) == [{"n": 1}, {"n": None}]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"n": "text"}, r"column n cannot be written as int64: 'text'"),
        ({"other": 1}, r"not: \['other'\]: {'other': 1}"),
        ([1], r"not list: \[1\]"),
        ({"n": 2**70}, r"column n cannot be written as int64: 1180591620717411303424"),
    ],
)
def test_a_record_that_does_not_fit_the_schema_is_named(write, value, shown):
    pytest.importorskip("pyarrow")
    with pytest.raises(RecordError, match=shown):
        write(ParquetWriterFactory({"n": "int64"}), [{"n": 1}, value, {"n": 3}])


def test_a_record_without_a_column_that_must_be_there_is_an_error(write):
    pa = pytest.importorskip("pyarrow")
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    with pytest.raises(RecordError, match="a record has no n"):
        write(ParquetWriterFactory(schema), [{"n": 1}, {}])


def test_a_schema_that_is_none_is_refused():
    pytest.importorskip("pyarrow")
    for schema in (None, {"n": "no such type"}, {"n": 7}):
        with pytest.raises(ProgramError):
            ParquetWriterFactory(schema)


# --- JSON lines -------------------------------------------------------------------------------


def test_json_lines_are_read_back(tmp_path, clock):
    sink = FileSink.for_row_format(str(tmp_path), JsonLineEncoder()).build()
    sink = cloudpickle.loads(cloudpickle.dumps(sink))
    writer = sink.create_writer(WriterContext("job", "uid", 1, 0, 1, clock, None, None))
    for row in ROWS:
        writer.write(row)
    sink.create_committer(CommitterContext("job", "uid")).commit(writer.prepare_commit()())
    assert read(StreamFormat.json_line_format(), tmp_path) == ROWS


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, None),
        ("line\nbreak ü", "line\nbreak ü"),
        (Row(a=1, b=Row(c=[Row(1, 2)])), {"a": 1, "b": {"c": [[1, 2]]}}),
        ((1, "x"), [1, "x"]),
    ],
)
def test_what_json_lines_look_like(value, written):
    line = JsonLineEncoder()(value)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert json.loads(line) == written


def circle():
    made = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    "value",
    [datetime.date(2026, 1, 1), {1, 2}, float("nan"), {(1, 2): 3}, "\ud800", circle(), b"x"],
    ids=["date", "set", "nan", "key", "half a character", "circle", "bytes"],
)
def test_what_json_cannot_say_is_named(value):
    with pytest.raises(RecordError, match="cannot be written as JSON: ") as error:
        JsonLineEncoder()(value)
    assert shorten(value) in str(error.value)


# --- writers of one's own ---------------------------------------------------------------------


class Counting(BulkWriterFactory):
    def create(self, write):
        return CountingWriter(write)


class CountingWriter(BulkWriter):
    def __init__(self, write):
        self.append, self.count = write, 0

    def add_element(self, value):
        self.count += 1

    def finish(self):
        self.append(f"{self.count} records".encode())


def test_a_writer_of_your_own(write):
    [file] = write(Counting(), "abc")
    assert file.read_text() == "3 records"


def test_refusals_and_the_older_name(tmp_path):
    with pytest.raises(ProgramError, match="needs a BulkWriterFactory"):
        FileSink.for_bulk_format(str(tmp_path), len)
    policy = RollingPolicy.on_checkpoint_rolling_policy()
    builder = StreamingFileSink.for_row_format(str(tmp_path), lambda value: b"x")
    sink = builder.with_rolling_policy(policy=policy).build()
    assert isinstance(sink, Sink)
    assert StreamingFileSink.for_bulk_format(str(tmp_path), Counting()).build()
