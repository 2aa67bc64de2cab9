"""Files as source and sink, by PyFlink's names.

Both are made by builders:

    FileSource.for_record_stream_format(StreamFormat.text_line_format(), "logs/").build()
    FileSink.for_row_format("out/", Encoder.simple_string_encoder()).build()
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.common.serialization import Encoder
from penstock.connectors.bulk_writer import BulkWriter, BulkWriterFactory, RowWriterFactory
from penstock.connectors.csv_format import CsvFormat
from penstock.connectors.csv_writer import CsvWriterFactory
from penstock.connectors.file_buckets import BucketAssigner, BucketContext
from penstock.connectors.file_compaction import FileCompactor, FileCompactStrategy
from penstock.connectors.file_encoders import JsonLineEncoder
from penstock.connectors.file_format import FileFormat
from penstock.connectors.file_rolling import OutputFileConfig, RollingPolicy
from penstock.connectors.file_sink import FileSinkSettings, PartFileSink
from penstock.connectors.file_source import FilesSource
from penstock.connectors.json_format import JsonLinesFormat
from penstock.connectors.line_format import LineFormat
from penstock.connectors.parquet_format import ParquetFormat
from penstock.connectors.parquet_writer import ParquetWriterFactory
from penstock.datastream.connectors.base import StreamTransformer, SupportsPreprocessing
from penstock.errors import ProgramError

__all__ = [
    "BucketAssigner",
    "BucketContext",
    "BulkFormat",
    "BulkWriter",
    "BulkWriterFactory",
    "CsvWriterFactory",
    "Encoder",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "JsonLineEncoder",
    "OutputFileConfig",
    "ParquetWriterFactory",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]


# --- formats ----------------------------------------------------------------------------------


class StreamFormat:
    """Formats that are read record by record."""

    def __init__(self, file_format: FileFormat) -> None:
        self._format = file_format

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """One record per line, without its end."""
        return StreamFormat(LineFormat(charset_name))

    @staticmethod
    def json_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """One JSON value per line; the record is the value."""
        return StreamFormat(JsonLinesFormat(charset_name))

    @staticmethod
    def csv_format(
        columns: Sequence[str] | None = None,
        header: bool = False,
        types: Mapping[str, Callable[[str], Any]] | None = None,
        quoted_newlines: bool = True,
        charset_name: str = "UTF-8",
        dialect: Any = "excel",
        **parameters: Any,
    ) -> StreamFormat:
        """Rows of CSV: dicts by column, or lists of strings where columns have no names.

        `header`: the first row of each file names its columns; `columns` then picks some of them,
        and names them all where there is no header. `types` gives functions for columns that are
        not text, for example ``{"amount": float}``. `dialect` and `parameters` are those of
        Python's `csv`. With ``quoted_newlines=False`` large files are split between readers.
        """
        return StreamFormat(
            CsvFormat(columns, header, types, quoted_newlines, charset_name, dialect, **parameters)
        )


class BulkFormat:
    """Formats that are read in larger pieces."""

    def __init__(self, file_format: FileFormat) -> None:
        self._format = file_format

    @staticmethod
    def parquet_format(columns: Sequence[str] | None = None) -> BulkFormat:
        """Rows of Parquet files, as dicts by column; needs pyarrow (``penstock[parquet]``)."""
        return BulkFormat(ParquetFormat(columns))


# --- source -----------------------------------------------------------------------------------


class FileEnumeratorProvider:
    """Ways of cutting files into splits."""

    def __init__(self, whole_files: bool) -> None:
        self._whole_files = whole_files

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Large files are read by several readers where the format allows it; the default."""
        return FileEnumeratorProvider(whole_files=False)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """A file is read by one reader, from its beginning to its end."""
        return FileEnumeratorProvider(whole_files=True)


class FileSplitAssignerProvider:
    """Ways of handing splits to readers."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """A split goes to the reader that asks first: a mounted file is as near to all of them."""
        return FileSplitAssignerProvider()


class FileSource(FilesSource):
    """Reads files and folders; made by its builders."""

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Read `paths`, files or folders, in a format of records."""
        if not isinstance(stream_format, StreamFormat):
            raise ProgramError(
                f"for_record_stream_format() needs a StreamFormat, not a "
                f"{type(stream_format).__name__}"
            )
        return FileSourceBuilder(stream_format._format, list(paths))

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Read `paths`, files or folders, in a bulk format."""
        if not isinstance(bulk_format, BulkFormat):
            raise ProgramError(
                f"for_bulk_file_format() needs a BulkFormat, not a {type(bulk_format).__name__}"
            )
        return FileSourceBuilder(bulk_format._format, list(paths))


class FileSourceBuilder:
    """Builds a FileSource."""

    def __init__(self, file_format: FileFormat, paths: list[str]) -> None:
        self._format = file_format
        self._paths = paths
        self._interval_ms: int | None = None
        self._whole_files = False

    def monitor_continuously(self, discovery_interval: Any) -> FileSourceBuilder:
        """Never end: look for new files at this interval, a Duration or a number of seconds."""
        self._interval_ms = _milliseconds(discovery_interval)
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """End with the files that are there when the job starts; the default."""
        self._interval_ms = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """How files are cut into splits."""
        if not isinstance(file_enumerator, FileEnumeratorProvider):
            raise ProgramError(
                f"set_file_enumerator() needs one of FileEnumeratorProvider, not a "
                f"{type(file_enumerator).__name__}"
            )
        self._whole_files = file_enumerator._whole_files
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """How splits are handed to readers; there is one way, see FileSplitAssignerProvider."""
        if not isinstance(split_assigner, FileSplitAssignerProvider):
            raise ProgramError(
                f"set_split_assigner() needs one of FileSplitAssignerProvider, not a "
                f"{type(split_assigner).__name__}"
            )
        return self

    def build(self) -> FileSource:
        """The source."""
        return FileSource(self._paths, self._format, self._whole_files, self._interval_ms)


def _milliseconds(interval: Any) -> int:
    if isinstance(interval, datetime.timedelta):
        return round(interval.total_seconds() * 1000)
    if isinstance(interval, int | float) and not isinstance(interval, bool):
        return round(interval * 1000)
    to_millis = getattr(interval, "to_millis", None)
    if to_millis is None:
        raise ProgramError(
            f"an interval is a Duration or a number of seconds, not a {type(interval).__name__}"
        )
    return int(to_millis())


def _absolute(path: str) -> str:
    """A path that means the same in every process, whatever its working directory."""
    return path if "://" in path else os.path.abspath(os.path.expanduser(path))


# --- sink -------------------------------------------------------------------------------------


class FileSink(PartFileSink, SupportsPreprocessing):
    """Writes files, exactly once; made by its builders."""

    def get_transformer(self) -> StreamTransformer | None:
        """None: its writers take any stream."""
        return None

    class BaseBuilder:
        """Settings of every file sink."""

        def __init__(self, settings: FileSinkSettings) -> None:
            self._settings = settings

        def with_bucket_check_interval(self, interval: int) -> FileSink.BaseBuilder:
            """How often, in milliseconds, the ages of open files are looked at."""
            if interval <= 0:
                raise ProgramError(f"buckets cannot be checked every {interval} ms")
            return self._with(check_interval_ms=interval)

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSink.BaseBuilder:
            """Which folder a record goes to; without it, all go to the base path."""
            if not hasattr(bucket_assigner, "get_bucket_id"):
                raise ProgramError(
                    f"with_bucket_assigner() needs an object with a method get_bucket_id, not a "
                    f"{type(bucket_assigner).__name__}"
                )
            return self._with(buckets=bucket_assigner)

        def with_output_file_config(
            self, output_file_config: OutputFileConfig
        ) -> FileSink.BaseBuilder:
            """What files are called."""
            return self._with(names=output_file_config)

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.BaseBuilder:
            """When a file ends, at the latest; it ends at a checkpoint in any case."""
            if not isinstance(rolling_policy, RollingPolicy):
                raise ProgramError(
                    f"with_rolling_policy() needs a RollingPolicy, not a "
                    f"{type(rolling_policy).__name__}"
                )
            return self._with(rolling=rolling_policy)

        def enable_compact(
            self, strategy: FileCompactStrategy, compactor: FileCompactor
        ) -> FileSink.BaseBuilder:
            """Merge small files before they become visible; when `strategy` says."""
            for value, kind in ((strategy, FileCompactStrategy), (compactor, FileCompactor)):
                if not isinstance(value, kind):
                    raise ProgramError(
                        f"enable_compact() needs a {kind.__name__}, not a {type(value).__name__}"
                    )
            if compactor.merges and not isinstance(self._settings.writers, RowWriterFactory):
                raise ProgramError(
                    "files of a bulk format have a beginning and an end and cannot be "
                    "concatenated: use a row format, or the identical_file_compactor()"
                )
            if self._settings.directory.partition("://")[0] in ("s3", "s3a"):
                raise ProgramError(
                    "enable_compact(): parts on S3 are uploads and cannot be merged; take "
                    "checkpoints less often for larger files"
                )
            return self._with(compaction=(strategy, compactor))

        def disable_compact(self) -> FileSink.BaseBuilder:
            """Every file becomes visible as it is, with its checkpoint; the default."""
            return self._with(compaction=None)

        def build(self) -> FileSink:
            """The sink."""
            return FileSink(self._settings)

        def _with(self, **changes: Any) -> FileSink.BaseBuilder:
            self._settings = replace(self._settings, **changes)
            return self

    class RowFormatBuilder(BaseBuilder):
        """Builds a sink whose files are its records, one after another."""

    class BulkFormatBuilder(BaseBuilder):
        """Builds a sink whose files are written as a whole, with headers and footers."""

    @staticmethod
    def for_row_format(
        base_path: str, encoder: Encoder | Callable[[Any], bytes] | None = None
    ) -> FileSink.RowFormatBuilder:
        """Records encoded one by one: by an Encoder, a function to bytes, or as lines of text."""
        encoder = encoder if encoder is not None else Encoder.simple_string_encoder()
        encode = getattr(encoder, "encode", encoder)
        if not callable(encode):
            raise ProgramError(
                f"for_row_format() needs an Encoder or a function, not a {type(encoder).__name__}"
            )
        policy = RollingPolicy.default_rolling_policy()
        settings = FileSinkSettings(_absolute(base_path), RowWriterFactory(encode), rolling=policy)
        return FileSink.RowFormatBuilder(settings)

    @staticmethod
    def for_bulk_format(
        base_path: str, writer_factory: BulkWriterFactory
    ) -> FileSink.BulkFormatBuilder:
        """Files written by the writers of a BulkWriterFactory."""
        if not isinstance(writer_factory, BulkWriterFactory):
            raise ProgramError(
                f"for_bulk_format() needs a BulkWriterFactory, not a "
                f"{type(writer_factory).__name__}"
            )
        return FileSink.BulkFormatBuilder(FileSinkSettings(_absolute(base_path), writer_factory))


class StreamingFileSink(PartFileSink):
    """The older name of FileSink, for programs that use it with `add_sink`."""

    class BaseBuilder(FileSink.BaseBuilder):
        """Settings of every file sink."""

        def with_rolling_policy(self, policy: RollingPolicy) -> FileSink.BaseBuilder:
            """When a file ends, at the latest; it ends at a checkpoint in any case."""
            return super().with_rolling_policy(policy)

    class DefaultRowFormatBuilder(BaseBuilder):
        """Builds a sink whose files are its records, one after another."""

    class DefaultBulkFormatBuilder(BaseBuilder):
        """Builds a sink whose files are written as a whole, with headers and footers."""

    @staticmethod
    def for_row_format(
        base_path: str, encoder: Encoder | Callable[[Any], bytes]
    ) -> StreamingFileSink.DefaultRowFormatBuilder:
        """As `FileSink.for_row_format`."""
        settings = FileSink.for_row_format(base_path, encoder)._settings
        return StreamingFileSink.DefaultRowFormatBuilder(settings)

    @staticmethod
    def for_bulk_format(
        base_path: str, writer_factory: BulkWriterFactory
    ) -> StreamingFileSink.DefaultBulkFormatBuilder:
        """As `FileSink.for_bulk_format`."""
        settings = FileSink.for_bulk_format(base_path, writer_factory)._settings
        return StreamingFileSink.DefaultBulkFormatBuilder(settings)
