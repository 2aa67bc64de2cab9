"""Which backend a job has: by the configuration, and by the objects of older programs."""

from __future__ import annotations

import pytest

from penstock.common import Configuration
from penstock.common.config_options import parse_memory
from penstock.common.settings import StateSettings
from penstock.datastream import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StreamExecutionEnvironment,
)
from penstock.datastream.assembly import assemble
from penstock.errors import ConfigurationError, JavaOnlyError, ProgramError


def state_settings(**values):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.from_collection([1]).print()
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in values.items()}
    return assemble(env._program, keys, "job").settings.state


def test_the_keys_say_which_and_how():
    assert state_settings() == StateSettings(transfer_threads=4)
    assert state_settings(state__backend="rocksdb").backend == "rocksdb"
    settings = state_settings(
        state__backend__type="rocksdb",
        state__backend__rocksdb__localdir="/mnt/fast",
        state__backend__rocksdb__block__cache_size="8 mb",
        state__backend__rocksdb__writebuffer__size="1mb",
        state__backend__rocksdb__writebuffer__count="3",
        state__backend__rocksdb__checkpoint__files_from="5 mb",
        taskmanager__memory__managed__size="64mb",
    )
    mb = 1 << 20
    assert settings == StateSettings(
        "rocksdb", "/mnt/fast", 64 * mb, 8 * mb, mb, 3, files_from=5 * mb, transfer_threads=4
    )


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("state__backend", "filesystem", "expected hashmap or rocksdb"),
        ("taskmanager__memory__managed__size", "much", "expected a size such as 64 mb"),
        ("state__backend__rocksdb__writebuffer__count", "0", "at least 1"),
    ],
)
def test_what_cannot_be_is_refused(key, value, hint):
    with pytest.raises(ConfigurationError, match=hint):
        state_settings(**{key: value})


def test_sizes_have_units():
    found = [parse_memory(text) for text in ("12", "1 kb", "2m", "3 gb", "1 TB")]
    assert found == [12, 1 << 10, 2 << 20, 3 << 30, 1 << 40]


def test_memory_is_shared_by_operators_and_by_what_needs_it():
    settings = StateSettings("rocksdb", managed=800).shared_by(2)
    assert (settings.objects(), settings.block_cache(), settings.write_buffer()) == (200, 100, 50)
    explicit = StateSettings("rocksdb", None, 800, 7, 9)
    assert (explicit.block_cache(), explicit.write_buffer()) == (7, 9)


def test_an_object_of_an_older_program_sets_the_keys():
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    backend = EmbeddedRocksDBStateBackend(enable_incremental_checkpointing=False)
    backend.set_db_storage_paths("/mnt/fast")
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    with pytest.warns(DeprecationWarning, match=r"state\.backend\.type"):
        env.set_state_backend(backend)
    assert backend.configuration().items() <= env._values().items()
    assert backend.get_db_storage_paths() == ["/mnt/fast"]
    assert backend.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED
    assert not backend.is_incremental_checkpoints_enabled()
    with pytest.warns(DeprecationWarning, match="set_state_backend"):
        env.set_state_backend(HashMapStateBackend())
    assert env._values()["state.backend.type"] == "hashmap"


def test_what_has_no_meaning_here_says_so():
    backend = EmbeddedRocksDBStateBackend()
    assert backend.is_incremental_checkpoints_enabled()
    assert backend.get_predefined_options() is PredefinedOptions.DEFAULT
    assert backend.get_number_of_transfer_threads() == 4
    with pytest.raises(JavaOnlyError, match="EmbeddedRocksDBStateBackend"):
        CustomStateBackend()
    with pytest.raises(JavaOnlyError, match=r"state\.backend\.rocksdb"):
        backend.set_options("com.example.Factory")
    with pytest.raises(ProgramError, match="at least 1"):
        backend.set_number_of_transfer_threads(0)


def test_an_object_can_name_several_disks_and_threads():
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths("/a", "/b")
    backend.set_number_of_transfer_threads(2)
    assert backend.get_db_storage_paths() == ["/a", "/b"]
    assert backend.get_number_of_transfer_threads() == 2
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    with pytest.warns(DeprecationWarning, match="set_state_backend"):
        env.set_state_backend(backend)
    env.from_collection([1]).print()
    settings = env._assemble(None).settings.state
    assert (settings.local_dirs, settings.transfer_threads) == (("/a", "/b"), 2)
