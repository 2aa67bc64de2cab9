"""Files as source and sink, by PyFlink's names.

FileSource.for_record_stream_format(StreamFormat.text_line_format(), "logs/").build()
FileSink.for_row_format("out/", Encoder.simple_string_encoder()).build()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.serialization import Encoder
from penstock.connectors.file_sink import FileSink as _FileSink
from penstock.connectors.file_sink import line_encoder
from penstock.connectors.file_source import TextFileSource

__all__ = ["Encoder", "FileSink", "FileSource", "StreamFormat"]


class StreamFormat:
    """How a file is read as records."""

    def __init__(self, charset_name: str) -> None:
        self._charset_name = charset_name

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """One record per line."""
        return StreamFormat(charset_name)


class FileSource:
    """Makes file sources."""

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        return FileSourceBuilder(stream_format, list(paths))


class FileSourceBuilder:
    def __init__(self, stream_format: StreamFormat, paths: list[str]) -> None:
        self._format = stream_format
        self._paths = paths

    def build(self) -> TextFileSource:
        return TextFileSource(self._paths, self._format._charset_name)


class FileSink:
    """Makes exactly-once file sinks."""

    @staticmethod
    def for_row_format(
        base_path: str, encoder: Callable[[Any], bytes] = line_encoder
    ) -> FileSinkBuilder:
        return FileSinkBuilder(base_path, encoder)


class FileSinkBuilder:
    def __init__(self, base_path: str, encoder: Callable[[Any], bytes]) -> None:
        self._base_path = base_path
        self._encoder = encoder

    def build(self) -> _FileSink:
        return _FileSink(self._base_path, self._encoder)
