"""Which tests run, what a skip means, and what is said at the end of a run.

| command | tests |
|---|---|
| `pytest` | those of `make test`: all that are marked neither `full` nor `long` |
| `pytest --rest` | those marked `full`: what `make test-all` has besides |
| `pytest --all` | both |
| `pytest --rest --long` | also those marked `long`, which are repetition for its own sake |
| `pytest tests/faults/test_kills.py` | all of a file that is named, whatever their marks |

In CI, and where all tests are asked for:

* a test that skips has failed: it proved nothing;
* tests by seeds, and Hypothesis, begin at another number each time. The header of the run says
  which, and how to begin there again.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import quick_java
from hypothesis import settings

TESTS = Path(__file__).parent
ALLOWED_SKIP = "this machine has no "
"""A skip whose reason begins like this is allowed: what is missing cannot be had everywhere."""

SUBJECTS = {
    "faults": "kills",
    "hosts": "several hosts",
    "integration": "servers",
    "packages": "packages",
    "semantics": "long simulations",
    "spark": "clusters",
    "unit": "the slowest of the unit tests",
}
"""What tests that did not run are about, by their folder."""

# Whoever uses Flink too may have variables set that name its configuration; tests do not read it.
for variable in ("PENSTOCK_CONF_DIR", "FLINK_CONF_DIR"):
    os.environ.pop(variable, None)
quick_java.use()
# A shell lets what it starts in the background ignore Ctrl-C, and so would all drivers of tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FRESH = "PENSTOCK_FRESH_SEED"

# A failure says what reproduces it, in CI too, where Hypothesis would not vary its examples. On a
# busy machine an example may take long without anything being wrong.
settings.register_profile("penstock", deadline=None, print_blob=True, derandomize=False)
settings.load_profile("penstock")

_not_run: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="also run the tests marked `full`")
    parser.addoption("--rest", action="store_true", help="run only the tests marked `full`")
    parser.addoption("--long", action="store_true", help="also run the tests marked `long`")


def _is_strict(config: pytest.Config) -> bool:
    return bool(os.environ.get("CI") or config.getoption("--all") or config.getoption("--rest"))


# --- where randomness begins ------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # Workers of pytest-xdist are children, and find the number in their environment.
    if FRESH not in os.environ and _is_strict(config):
        os.environ[FRESH] = str(random.SystemRandom().randrange(10**6, 10**9))
    if FRESH in os.environ and config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = os.environ[FRESH]


def pytest_report_header(config: pytest.Config) -> list[str]:
    if FRESH not in os.environ:
        return []
    seed, given = os.environ[FRESH], shlex.join(config.invocation_params.args)
    return [f"fresh seeds from {seed}; again: {FRESH}={seed} python -m pytest {given}"]


# --- which tests run --------------------------------------------------------------------------


def _runs(item: pytest.Item, config: pytest.Config) -> bool:
    if item.get_closest_marker("long") and not config.getoption("--long"):
        return False
    if item.get_closest_marker("full") or item.get_closest_marker("long"):
        return bool(config.getoption("--all") or config.getoption("--rest"))
    return not config.getoption("--rest")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if any(".py" in argument for argument in config.args):
        return
    left_out = [item for item in items if not _runs(item, config)]
    for item in left_out:
        if item.get_closest_marker("full") and not config.getoption("--rest"):
            _not_run[_subject(item)] += 1
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if _runs(item, config)]


def _subject(item: pytest.Item) -> str:
    mark = item.get_closest_marker("full")
    if mark is not None and mark.args:
        return str(mark.args[0])
    return SUBJECTS.get(item.path.relative_to(TESTS).parts[0], "others")


# --- what is said at the end ------------------------------------------------------------------


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["not_run"] = dict(_not_run)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process that ran some of the tests has ended; each of them has seen all tests."""
    for subject, count in getattr(node, "workeroutput", {}).get("not_run", {}).items():
        _not_run[subject] = count


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of the run."""
    if _not_run and not hasattr(config, "workeroutput"):
        subjects = ", ".join(subject for subject, _ in _not_run.most_common())
        count = sum(_not_run.values())
        writer = config.get_terminal_writer()
        writer.line(f"not run here: {count} tests ({subjects}): make test-all")


# --- skips -----------------------------------------------------------------------------------


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()
    if report.skipped and _is_strict(item.config) and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(ALLOWED_SKIP):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} was skipped, so it proves nothing: {reason}"
