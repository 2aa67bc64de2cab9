"""The suite for connectors sees what it is meant to see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.bulk_writer import RowWriterFactory
from penstock.connectors.client_sinks import PrintSink
from penstock.connectors.collection import CollectionSource
from penstock.connectors.file_sink import FileSinkSettings, PartFileSink
from penstock.connectors.sink import Committer, Sink, SinkWriter
from penstock.connectors.source import QueueEnumerator, Source, SourceReader
from penstock.testing.conformance import (
    ConformanceError,
    check_bounded_source,
    check_transactional_sink,
)


def test_good_connectors_pass(tmp_path: Path) -> None:
    assert check_bounded_source(CollectionSource(range(50))) == list(range(50))
    settings = FileSinkSettings(str(tmp_path), RowWriterFactory(str.encode))

    def visible() -> list[str]:
        return [path.read_text() for path in tmp_path.iterdir() if not path.name.startswith(".")]

    check_transactional_sink(lambda: PartFileSink(settings), visible, "abc")


def test_a_sink_without_a_committer_is_none() -> None:
    with pytest.raises(ConformanceError, match="no committer"):
        check_transactional_sink(PrintSink, list, "abc")


class Bad(Sink):
    """Keeps output in a folder; wrong in one way."""

    def __init__(self, folder: Path, fault: str) -> None:
        self.folder, self.fault = folder, fault

    def create_writer(self, context: Any) -> SinkWriter:
        return BadWriter(self, context.attempt)

    def create_committer(self, context: Any) -> Committer:
        return BadCommitter(self)


class BadWriter(SinkWriter):
    def __init__(self, sink: Bad, attempt: int) -> None:
        self.sink, self.attempt, self.count, self.rows = sink, attempt, 0, ""

    def write(self, value: Any) -> None:
        self.rows += value

    def prepare_commit(self) -> Callable[[], list[Any]]:
        rows, self.rows, self.count = self.rows, "", self.count + 1
        name = f"{self.attempt}-{self.count}"

        def finish() -> list[Any]:
            if not rows:
                return []
            kind = "seen" if self.sink.fault == "early" else "staged"
            (self.sink.folder / f"{kind}-{name}").write_text(rows)
            return [name]

        return finish


class BadCommitter(Committer):
    def __init__(self, sink: Bad) -> None:
        self.sink = sink

    def commit(self, committables: list[Any]) -> None:
        for name in committables:
            staged, seen = (self.sink.folder / f"{kind}-{name}" for kind in ("staged", "seen"))
            if staged.exists():
                data = staged.read_text()
                seen.write_text((seen.read_text() if seen.exists() else "") + data)
                if self.sink.fault != "twice":
                    staged.unlink()

    def abort_others(self, keep: list[Any]) -> None:
        for staged in self.sink.folder.glob("staged-*"):
            name = staged.name.removeprefix("staged-")
            if self.sink.fault == "keeps none" or name not in keep:
                staged.unlink()


@pytest.mark.parametrize("fault", ["", "early", "twice", "keeps none"])
def test_a_bad_sink_is_found_out(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.testing.conformance._WAIT_SECONDS", 0.3)

    def visible() -> list[str]:
        return [letter for path in tmp_path.glob("seen-*") for letter in path.read_text()]

    def check() -> None:
        check_transactional_sink(lambda: Bad(tmp_path, fault), visible, "abc")

    if fault:
        with pytest.raises(ConformanceError, match="readers should see"):
            check()
    else:
        check()


class Forgetful(Source):
    """Its reader's position is one record behind."""

    def create_enumerator(self, context: Any, restored: Any) -> QueueEnumerator:
        return QueueEnumerator([0] if restored is None else restored)

    def create_reader(self, context: Any) -> SourceReader:
        return ForgetfulReader()


class ForgetfulReader(SourceReader):
    next: int | None = None

    def add_splits(self, splits: list[Any]) -> None:
        (self.next,) = splits

    def poll(self, limit: int) -> list[Any] | None:
        if self.next is None or self.next >= 20:
            return None
        self.next += 2
        return [self.next - 2, self.next - 1]

    def snapshot(self) -> list[Any]:
        return [] if self.next is None else [max(0, self.next - 1)]


def test_a_source_with_a_wrong_position_is_found_out() -> None:
    with pytest.raises(ConformanceError, match="too many"):
        check_bounded_source(Forgetful())
