"""CSV, JSON lines and Parquet: every record once, where it goes on, and what cannot be read."""

from __future__ import annotations

import csv
import io
import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import plain
from penstock.connectors import file_source, line_format, parquet_format
from penstock.connectors.source import EnumeratorContext, ReaderContext
from penstock.datastream.connectors.file_system import (
    BulkFormat,
    FileEnumeratorProvider,
    FileSource,
    FileSplitAssignerProvider,
    StreamFormat,
)
from penstock.errors import ProgramError, RecordError, StorageError


def stored(value):
    return plain.decode(json.loads(json.dumps(plain.encode(value, "a split"))))


def source_of(made, *paths):
    paths = [str(path) for path in paths]
    if isinstance(made, BulkFormat):
        return FileSource.for_bulk_file_format(made, *paths).build()
    return FileSource.for_record_stream_format(made, *paths).build()


def splits_of(source, parallelism=1):
    enumerator = source.create_enumerator(EnumeratorContext(parallelism), None)
    splits = []
    while (more := enumerator.next_splits(0)) is not None:
        splits += more
    return stored(splits)


def read(source, splits=None, limit=3, restart=False):
    """All records, split by split; with `restart` by a new reader after every poll."""
    records = []
    for split in splits_of(source) if splits is None else splits:
        left = [split]
        while left:
            reader = source.create_reader(ReaderContext(0, 1, None, lambda: None))
            reader.add_splits(left)
            while (batch := reader.poll(limit)) is not None:
                assert 0 < len(batch) <= limit
                records += batch
                if restart:
                    break
            left = stored(reader.snapshot())
            reader.close()
    return records


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(file_source, "MIN_SPLIT_BYTES", 11)
    monkeypatch.setattr(file_source, "MAX_SPLIT_BYTES", 11)
    monkeypatch.setattr(line_format, "_BLOCK_BYTES", 7)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("formats") / "file"


# --- JSON lines -------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [False, True])
def test_json_lines(tmp_path, small, restart):
    values = [{"a": n, "b": ["ü", None, 1.5]} for n in range(9)]
    text = "\n\n".join(json.dumps(value, ensure_ascii=False) for value in values)
    (tmp_path / "f").write_text(f"{text}\n \n")
    source = source_of(StreamFormat.json_line_format(), tmp_path)
    assert len(splits_of(source)) > 5
    assert read(source, restart=restart) == values


def test_a_line_that_is_no_json_is_named(tmp_path, small):
    (tmp_path / "f").write_text('{"a": 1}\n\n{"a": 2}\n{"a": 3' + "x" * 1000 + "\n")
    source = source_of(StreamFormat.json_line_format(), tmp_path)
    with pytest.raises(RecordError) as caught:
        read(source)
    message = caught.value.message
    assert message.startswith(f"{tmp_path}/f, line 4: a line is not JSON: ")
    assert '{"a": 3xxx' in message and len(message) < 600 and "characters)" in message


# --- CSV --------------------------------------------------------------------------------------

fields = st.text(st.sampled_from('ab",\n ü;'), max_size=6)
tables = st.lists(st.lists(fields, min_size=2, max_size=2), max_size=8)


@settings(max_examples=200)
@given(tables, st.integers(1, 4), st.booleans(), st.booleans())
def test_csv_with_whatever_is_in_it(scratch, rows, limit, header, restart):
    text = io.StringIO()
    csv.writer(text).writerows([["x", "y"], *rows] if header else rows)
    scratch.write_bytes(text.getvalue().encode())
    columns = None if header else ["x", "y"]
    source = source_of(StreamFormat.csv_format(columns, header=header), scratch)
    assert len(splits_of(source)) == 1
    expected = [{"x": x, "y": y} for x, y in rows]
    assert read(source, limit=limit, restart=restart) == expected


@settings(max_examples=200)
@given(tables, st.integers(1, 30), st.booleans(), st.booleans())
def test_csv_in_lines_is_split(scratch, rows, size, header, restart):
    rows = [[field.replace("\n", "") for field in row] for row in rows]
    text = io.StringIO()
    csv.writer(text).writerows([["x", "y"], *rows] if header else rows)
    scratch.write_bytes(text.getvalue().encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_source, "MIN_SPLIT_BYTES", size)
        patch.setattr(file_source, "MAX_SPLIT_BYTES", size)
        columns = None if header else ["x", "y"]
        made = StreamFormat.csv_format(columns, header=header, quoted_newlines=False)
        source = source_of(made, scratch)
        assert len(splits_of(source)) == -(-len(text.getvalue().encode()) // size)
        assert read(source, restart=restart) == [{"x": x, "y": y} for x, y in rows]


@pytest.mark.parametrize("quoted_newlines", [True, False])
def test_csv_columns_types_and_dialects(tmp_path, quoted_newlines):
    (tmp_path / "f").write_text("id;amount;'no;te'\n1;2.5;'a;b'\n\n2;3;c\n")
    made = StreamFormat.csv_format(
        ["amount", "id"],
        header=True,
        types={"amount": float, "id": int},
        quoted_newlines=quoted_newlines,
        delimiter=";",
        quotechar="'",
    )
    records = read(source_of(made, tmp_path))
    assert records == [{"amount": 2.5, "id": 1}, {"amount": 3.0, "id": 2}]
    assert list(records[0]) == ["amount", "id"]


def test_csv_without_names_gives_lists(tmp_path):
    (tmp_path / "f").write_text('a,"b\nc"\nd\n')
    assert read(source_of(StreamFormat.csv_format(), tmp_path)) == [["a", "b\nc"], ["d"]]


@pytest.mark.parametrize("quoted_newlines", [True, False])
@pytest.mark.parametrize("restart", [True, False])
def test_csv_of_a_spreadsheet(tmp_path, quoted_newlines, restart):
    (tmp_path / "f").write_bytes('"ä",y\r\n1,2\r\n3,4\r\n'.encode("utf-8-sig"))
    made = StreamFormat.csv_format(header=True, quoted_newlines=quoted_newlines)
    records = read(source_of(made, tmp_path), limit=1, restart=restart)
    assert records == [{"ä": "1", "y": "2"}, {"ä": "3", "y": "4"}]


@pytest.mark.parametrize("content", ["", "x,y\n", "x,y"])
@pytest.mark.parametrize("quoted_newlines", [True, False])
def test_csv_without_records(tmp_path, content, quoted_newlines):
    (tmp_path / "f").write_text(content)
    made = StreamFormat.csv_format(header=True, quoted_newlines=quoted_newlines)
    assert read(source_of(made, tmp_path)) == []


@pytest.mark.parametrize("quoted_newlines", [True, False])
@pytest.mark.parametrize(
    ("content", "kwargs", "hint"),
    [
        ("x,y\n1,2\n3\n", {"header": True}, "line 3: .*a row has 1 fields and not 2: .*3"),
        ("1,2\n1,2,3\n", {"columns": "xy"}, "line 2: .*3 fields and not 2"),
        ("x\n1\ntwo\n", {"header": True, "types": {"x": int}}, "line 3: .*column x .*'two'"),
        ("x\n1\n", {"header": True, "columns": "xz"}, "line 1: the header has no column z"),
        ("x,x\n1,2\n", {"header": True}, "line 1: two columns have the same name"),
        ('a\n"b\n', {}, "line 2: .*not CSV: unexpected end of data"),
        ('a\n"b"c\n', {}, "line 2: .*not CSV: "),
    ],
)
def test_bad_csv_is_named(tmp_path, content, kwargs, hint, quoted_newlines):
    (tmp_path / "f").write_text(content)
    made = StreamFormat.csv_format(**kwargs, quoted_newlines=quoted_newlines)
    with pytest.raises(RecordError, match=f"{tmp_path}/f, {hint}"):
        read(source_of(made, tmp_path), limit=10)


@pytest.mark.parametrize("quoted_newlines", [True, False])
def test_csv_that_is_no_text(tmp_path, quoted_newlines):
    (tmp_path / "f").write_bytes(b"a\n\xff\n")
    with pytest.raises(RecordError, match=r"f, .*is not UTF-8"):
        read(source_of(StreamFormat.csv_format(quoted_newlines=quoted_newlines), tmp_path))


@pytest.mark.parametrize(
    "kwargs",
    [
        {"dialect": "no-such"},
        {"delimiter": "ab"},
        {"no_such_parameter": 1},
        {"charset_name": "utf-16"},
        {"types": {"x": int}},
        {"types": {"x": int}, "columns": ["y"]},
    ],
)
def test_a_csv_format_that_cannot_be_is_refused(kwargs):
    with pytest.raises(ProgramError):
        StreamFormat.csv_format(**kwargs)


# --- Parquet ----------------------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    made = [{"n": n, "text": f"t{n}", "list": [n] * (n % 3)} for n in range(50)]
    pq.write_table(pa.Table.from_pylist(made), tmp_path / "f.parquet", row_group_size=20)
    return made


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("limit", [1, 7, 100])
def test_parquet_by_row_groups(tmp_path, rows, restart, limit, monkeypatch):
    monkeypatch.setattr(parquet_format, "_BATCH", 8)
    source = source_of(BulkFormat.parquet_format(), tmp_path)
    assert len(splits_of(source)) == 3
    assert read(source, limit=limit, restart=restart) == rows


@pytest.mark.parametrize("restart", [False, True])
def test_a_parquet_file_as_one_split(tmp_path, rows, restart):
    builder = FileSource.for_bulk_file_format(BulkFormat.parquet_format(["n"]), str(tmp_path))
    whole = FileEnumeratorProvider.default_non_splittable_file_enumerator()
    source = builder.set_file_enumerator(whole).build()
    assert len(splits_of(source)) == 1
    assert read(source, restart=restart) == [{"n": row["n"]} for row in rows]


def test_bad_parquet_is_named(tmp_path, rows):
    with pytest.raises(RecordError, match=r"f.parquet has no column nope"):
        read(source_of(BulkFormat.parquet_format(["n", "nope"]), tmp_path))
    (tmp_path / "f.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(RecordError, match=r"f.parquet is not a Parquet file"):
        splits_of(source_of(BulkFormat.parquet_format(), tmp_path))


def test_a_damaged_row_group_is_named(tmp_path, rows):
    source = source_of(BulkFormat.parquet_format(), tmp_path)
    splits = splits_of(source)
    data = bytearray((tmp_path / "f.parquet").read_bytes())
    data[4:200] = b"\xff" * 196
    (tmp_path / "f.parquet").write_bytes(data)
    with pytest.raises(RecordError, match=r"f.parquet, row group 0, row 0: cannot be read"):
        read(source, splits)


def test_without_pyarrow_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ProgramError, match=r"pip install 'penstock\[parquet\]'$"):
        BulkFormat.parquet_format()


# --- the builder ------------------------------------------------------------------------------


def test_a_file_that_must_not_be_split(tmp_path, small):
    (tmp_path / "f").write_text("line\n" * 20)
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    assert len(splits_of(builder.build())) > 5
    whole = FileEnumeratorProvider.default_non_splittable_file_enumerator()
    source = builder.set_file_enumerator(whole).build()
    assert len(splits_of(source)) == 1 and len(read(source)) == 20
    split = FileEnumeratorProvider.default_splittable_file_enumerator()
    assigner = FileSplitAssignerProvider.locality_aware_split_assigner()
    source = builder.set_file_enumerator(split).set_split_assigner(assigner).build()
    assert len(splits_of(source)) > 5 and len(read(source)) == 20


@pytest.mark.parametrize(
    "build",
    [
        lambda path: FileSource.for_record_stream_format("text", path),
        lambda path: FileSource.for_bulk_file_format(StreamFormat.text_line_format(), path),
        lambda path: lines(path).set_file_enumerator("one"),
        lambda path: lines(path).set_split_assigner("one"),
        lambda path: lines(path).monitor_continuously("1 s"),
        lambda path: lines(path).monitor_continuously(0).build(),
        lambda path: lines().build(),
    ],
)
def test_what_a_builder_does_not_know_is_refused(tmp_path, build):
    with pytest.raises(ProgramError):
        build(str(tmp_path))


def lines(*paths):
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), *paths)


@pytest.mark.parametrize("made", [StreamFormat.csv_format(), StreamFormat.json_line_format()])
def test_a_file_that_disappears_is_named(tmp_path, made):
    (tmp_path / "f").write_text("1\n")
    source = source_of(made, tmp_path)
    splits = splits_of(source)
    (tmp_path / "f").unlink()
    with pytest.raises(StorageError, match=f"cannot read {tmp_path}/f: No such file"):
        read(source, splits)
