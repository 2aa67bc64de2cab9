"""How RocksDB is set up: what the keys `state.backend.rocksdb.*` say, in RocksDB's own terms."""

from __future__ import annotations

from typing import Any

from penstock.common.settings import RocksTuning, StateSettings

_SMALLEST_BUFFER = 64 << 10
_LEVELS = 7


def rocks_options(settings: StateSettings) -> Any:
    """The options of a database."""
    # Imported where it is used: only those who choose this backend need the package.
    from rocksdict import Options

    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(_tables(settings))
    options.set_write_buffer_size(max(settings.write_buffer(), _SMALLEST_BUFFER))
    options.set_max_write_buffer_number(settings.write_buffers)
    _predefined(options, settings)
    _compaction(options, settings.tuning)
    _files(options, settings.tuning)
    merges = settings.merges_files and settings.tuning.compaction_style != "NONE"
    options.set_disable_auto_compactions(not merges)
    options.enable_statistics()
    return options


def _tables(settings: StateSettings) -> Any:
    from rocksdict import BlockBasedIndexType, BlockBasedOptions, Cache

    tuning = settings.tuning
    tables = BlockBasedOptions()
    tables.set_block_cache(Cache(settings.block_cache()))
    tables.set_cache_index_and_filter_blocks(True)
    if tuning.bloom_filter:
        tables.set_bloom_filter(round(tuning.bloom_bits), False)
    if tuning.block_size is not None:
        tables.set_block_size(tuning.block_size)
    if tuning.metadata_block_size is not None:
        tables.set_metadata_block_size(tuning.metadata_block_size)
    if tuning.partitioned:
        tables.set_index_type(BlockBasedIndexType.two_level_index_search())
        tables.set_partition_filters(True)
    return tables


def _predefined(options: Any, settings: StateSettings) -> None:
    """Fit RocksDB to the kind of disk that it works on, as Flink's predefined options do."""
    kind = settings.predefined_options
    if kind == "DEFAULT":
        return
    options.increase_parallelism(4)
    # Keeping all files open saves looking their index up again.
    options.set_max_open_files(-1)
    if kind.startswith("SPINNING_DISK"):
        options.set_compaction_readahead_size(4 << 20)
        options.set_level_compaction_dynamic_level_bytes(True)
    if kind == "SPINNING_DISK_OPTIMIZED_HIGH_MEM":
        options.set_target_file_size_base(256 << 20)
        options.set_max_bytes_for_level_base(1 << 30)
        options.set_min_write_buffer_number_to_merge(min(3, settings.write_buffers))


def _compaction(options: Any, tuning: RocksTuning) -> None:
    from rocksdict import DBCompactionStyle, DBCompressionType

    if tuning.compaction_style == "UNIVERSAL":
        options.set_compaction_style(DBCompactionStyle.universal())
    if tuning.dynamic_levels is not None:
        options.set_level_compaction_dynamic_level_bytes(tuning.dynamic_levels)
    if tuning.file_size is not None:
        options.set_target_file_size_base(tuning.file_size)
    if tuning.level_size is not None:
        options.set_max_bytes_for_level_base(tuning.level_size)
    if tuning.compression:
        kinds = [getattr(DBCompressionType, kind)() for kind in tuning.compression]
        # RocksDB needs one for every level; what is not said is as the last that is.
        options.set_compression_per_level((kinds + [kinds[-1]] * _LEVELS)[:_LEVELS])
    if tuning.threads is not None:
        options.increase_parallelism(tuning.threads)
    if tuning.buffers_to_merge is not None:
        options.set_min_write_buffer_number_to_merge(tuning.buffers_to_merge)


def _files(options: Any, tuning: RocksTuning) -> None:
    if tuning.open_files is not None:
        options.set_max_open_files(tuning.open_files)
    if tuning.log_dir is not None:
        options.set_db_log_dir(tuning.log_dir)
    if tuning.log_files is not None:
        options.set_keep_log_file_num(tuning.log_files)
    if tuning.log_size is not None:
        options.set_max_log_file_size(tuning.log_size)
