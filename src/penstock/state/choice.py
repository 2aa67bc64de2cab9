"""Which backend holds keyed state: the one that the configuration names."""

from __future__ import annotations

import importlib.util

from penstock.common.clock import Clock
from penstock.common.settings import StateSettings
from penstock.errors import ConfigurationError
from penstock.state.backend import KeyedStateBackend
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.rocksdb import RocksDBBackend


def make_backend(
    key_context: KeyContext, max_parallelism: int, clock: Clock, settings: StateSettings
) -> KeyedStateBackend:
    """An empty backend for one operator in one subtask."""
    if settings.backend == "rocksdb":
        check_available(settings.backend)
        return RocksDBBackend(key_context, max_parallelism, clock, settings)
    return HashMapBackend(key_context, max_parallelism, clock)


def check_available(backend: str) -> None:
    """ConfigurationError if this Python lacks what the backend needs."""
    if backend == "rocksdb" and importlib.util.find_spec("rocksdict") is None:
        raise ConfigurationError(
            "state.backend.type: rocksdb needs the package rocksdict, which is not installed; "
            'pip install "penstock[rocksdb]", here and where slots run'
        )
