"""Text files: every line once, whatever the splits, and after a restore none again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import plain
from penstock.connectors import file_source, line_format
from penstock.connectors.file_source import FilesSource
from penstock.connectors.line_format import LineFormat
from penstock.connectors.source import EnumeratorContext, ReaderContext
from penstock.errors import ProgramError, RecordError, StorageError


def text_files(paths, charset="utf-8"):
    return FilesSource(paths, LineFormat(charset))


def stored(value):
    """Through a checkpoint's metadata and back."""
    return plain.decode(json.loads(json.dumps(plain.encode(value, "a split"))))


def splits_of(source, parallelism=1):
    enumerator = source.create_enumerator(EnumeratorContext(parallelism), None)
    splits = []
    while (more := enumerator.next_splits(0)) is not None:
        splits += more
    return splits


def reader_of(source, clock=None):
    return source.create_reader(ReaderContext(0, 1, clock, lambda: None))


def read(source, splits, limit=1000):
    """All lines of `splits`, each read by a reader of its own."""
    lines = []
    for split in splits:
        reader = reader_of(source)
        reader.add_splits([split])
        while (batch := reader.poll(limit)) is not None:
            assert 0 < len(batch) <= limit
            lines += batch
        assert reader.snapshot() == []
        reader.close()
    return lines


@pytest.fixture
def small(monkeypatch):
    """Splits and blocks of a few bytes."""

    def cut(split_bytes, block_bytes=7):
        monkeypatch.setattr(file_source, "MIN_SPLIT_BYTES", split_bytes)
        monkeypatch.setattr(file_source, "MAX_SPLIT_BYTES", split_bytes)
        monkeypatch.setattr(line_format, "_BLOCK_BYTES", block_bytes)

    return cut


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """One file, written again for every example."""
    return tmp_path_factory.mktemp("lines") / "file.txt"


def expected_lines(content):
    """What a file's lines are: ended by a newline, perhaps with a carriage return before it."""
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


contents = st.text(st.sampled_from("ab\n\r€ü "), max_size=60)


@settings(max_examples=300)
@given(contents, st.integers(1, 12), st.integers(1, 9), st.integers(1, 4))
def test_every_line_is_read_once_whatever_the_splits(scratch, content, size, block, limit):
    scratch.write_bytes(content.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_source, "MIN_SPLIT_BYTES", size)
        patch.setattr(file_source, "MAX_SPLIT_BYTES", size)
        patch.setattr(line_format, "_BLOCK_BYTES", block)
        source = text_files([str(scratch)])
        splits = splits_of(source)
        assert len(splits) == -(-len(content.encode()) // size)
        assert read(source, splits, limit) == expected_lines(content)
        assert sorted(read(source, splits[::-1], limit)) == sorted(expected_lines(content))


@settings(max_examples=300)
@given(contents, st.integers(1, 12), st.integers(1, 9), st.lists(st.integers(1, 4), max_size=8))
def test_a_restored_reader_goes_on_where_the_snapshot_was(scratch, content, size, block, polls):
    scratch.write_bytes(content.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_source, "MIN_SPLIT_BYTES", size)
        patch.setattr(file_source, "MAX_SPLIT_BYTES", size)
        patch.setattr(line_format, "_BLOCK_BYTES", block)
        source = text_files([str(scratch)])
        splits = stored(splits_of(source))
        lines = []
        for limit in polls:
            reader = reader_of(source)
            reader.add_splits(splits)
            lines += reader.poll(limit) or []
            splits = stored(reader.snapshot())
            reader.close()
        assert lines + read(source, splits) == expected_lines(content)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\n\n", ["one", ""]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\ntwo", ["one", "two"]),
        (b"one\r\r\n", ["one\r"]),
        (b"a\rb\n", ["a\rb"]),
        ("ü\u2028x\x0bé\n".encode(), ["ü\u2028x\x0bé"]),
    ],
)
def test_line_ends(tmp_path, content, lines):
    (tmp_path / "f").write_bytes(content)
    source = text_files([str(tmp_path / "f")])
    assert read(source, splits_of(source)) == lines


def test_a_line_longer_than_splits_and_blocks(tmp_path, small):
    small(10, 16)
    content = ["x" * 1000, "y", "z" * 500]
    (tmp_path / "f").write_text("\n".join(content))
    source = text_files([str(tmp_path / "f")])
    splits = splits_of(source)
    assert len(splits) > 100
    assert read(source, splits) == content


def test_splits_are_made_for_the_readers_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(file_source, "MIN_SPLIT_BYTES", 1)
    (tmp_path / "f").write_bytes(b"x\n" * 500)
    source = text_files([str(tmp_path / "f")])
    assert 4 * 3 - 1 <= len(splits_of(source, parallelism=3)) <= 4 * 3 + 1


def test_a_small_file_is_one_split(tmp_path):
    (tmp_path / "f").write_bytes(b"x\n" * 500)
    assert len(splits_of(text_files([str(tmp_path / "f")]), parallelism=8)) == 1


def test_an_empty_file_has_no_split(tmp_path):
    (tmp_path / "f").write_bytes(b"")
    assert splits_of(text_files([str(tmp_path / "f")])) == []


def test_the_files_of_a_folder_in_order_without_hidden_ones(tmp_path):
    for name in ("b", "a", ".hidden", "_SUCCESS", ".part-x.inprogress"):
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "folder").mkdir()
    source = text_files([f"file://{tmp_path}"])
    assert read(source, splits_of(source)) == ["a", "b"]


def test_an_enumerator_goes_on_with_what_is_left(tmp_path, small):
    small(2)
    (tmp_path / "f").write_bytes(b"a\nb\nc\n")
    source = text_files([str(tmp_path / "f")])
    enumerator = source.create_enumerator(EnumeratorContext(1), None)
    first = enumerator.next_splits(0)
    again = source.create_enumerator(EnumeratorContext(1), stored(enumerator.snapshot()))
    rest = []
    while (more := again.next_splits(0)) is not None:
        rest += more
    assert read(source, first + rest) == ["a", "b", "c"]


# --- refusals ---------------------------------------------------------------------------------


def test_a_missing_file_is_refused_where_the_program_is_written(tmp_path):
    with pytest.raises(ProgramError, match=f"there is no file or folder {tmp_path}/none"):
        text_files([f"{tmp_path}/none"])


def test_a_file_that_disappears_later_is_named(tmp_path):
    (tmp_path / "f").write_bytes(b"a\n")
    source = text_files([str(tmp_path / "f")])
    splits = splits_of(source)
    (tmp_path / "f").unlink()
    with pytest.raises(StorageError, match=f"cannot read {tmp_path}/f: No such file"):
        read(source, splits)


def test_a_file_that_is_cut_short_later_is_an_error(tmp_path):
    (tmp_path / "f").write_bytes(b"a\nb\n")
    source = text_files([str(tmp_path / "f")])
    splits = splits_of(source)
    (tmp_path / "f").write_bytes(b"a\n")
    with pytest.raises(StorageError, match=f"{tmp_path}/f has become shorter .* 2 bytes are gone"):
        read(source, splits)


def test_bytes_that_are_no_text_are_named_with_their_place(tmp_path):
    (tmp_path / "f").write_bytes(b"fine\n\xff\xfe\n")
    source = text_files([str(tmp_path / "f")])
    with pytest.raises(RecordError, match=rf"{tmp_path}/f, at byte 5: a line is not utf-8"):
        read(source, splits_of(source))


def test_another_charset_is_read(tmp_path):
    (tmp_path / "f").write_bytes("Größe\n".encode("latin-1"))
    source = text_files([str(tmp_path / "f")], "latin-1")
    assert read(source, splits_of(source)) == ["Größe"]


@pytest.mark.parametrize("charset", ["utf-16", "utf-32-le", "no-such-charset"])
def test_a_charset_that_has_no_lines_is_refused(tmp_path, charset):
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(ProgramError, match=charset):
        text_files([str(tmp_path / "f")], charset)
