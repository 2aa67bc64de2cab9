"""JSON lines: every line is a JSON value, and the value is the record."""

from __future__ import annotations

import json
from typing import Any

from penstock.connectors.file_format import bad_record
from penstock.connectors.line_format import LineFormat, LineReader
from penstock.connectors.source import SourceReader


class JsonLinesFormat(LineFormat):
    """One JSON value per line; lines of white space are passed over."""

    def create_reader(self) -> SourceReader:
        return _JsonLinesReader(self._charset)


class _JsonLinesReader(LineReader):
    def poll(self, limit: int) -> list[Any] | None:
        while (lines := super().poll(limit)) is not None:
            # An empty list would say that there is nothing just now.
            if records := self._parsed(lines):
                return records
        return None

    def _parsed(self, lines: list[str]) -> list[Any]:
        records: list[Any] = []
        for index, line in enumerate(lines):
            if not line or line.isspace():
                continue
            try:
                records.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                place = self._place_of(self._next - len(lines) + index)
                raise bad_record(*place, f"a line is not JSON: {error}", line) from error
        return records
