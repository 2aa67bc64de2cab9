"""The `--long` option: tests marked `long` run only when it is given.

Whoever uses Flink too may have variables set that name its configuration; tests do not read it.
"""

from __future__ import annotations

import os

import pytest

for variable in ("PENSTOCK_CONF_DIR", "FLINK_CONF_DIR"):
    os.environ.pop(variable, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked `long`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    skip = pytest.mark.skip(reason="takes minutes; enable with --long")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(skip)
