"""A folder under `src/penstock` is a room; this file says which room may import which.

Imports are read from the source, wherever they stand: at the top of a module, inside a function,
under `TYPE_CHECKING`, or as a literal `import_module("penstock...")`. A single module at the top
level (`errors`, `demo`) is a room of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "penstock"

BASE = {"common", "errors", "kept"}
ENGINE = BASE | {
    "checkpoint",
    "connectors",
    "control",
    "graph",
    "jobmanager",
    "metrics",
    "network",
    "runtime",
    "spark",
    "state",
}
FRONTS = ENGINE | {"__init__", "datastream", "inspection", "rest", "state_api"}

ALLOWED: dict[str, set[str]] = {
    "absent": set(),
    "errors": set(),
    "kept": set(),
    "common": {"errors", "kept"},
    "connectors": BASE | {"metrics"},
    "state": BASE,
    "metrics": BASE,
    "network": BASE,
    "control": BASE,
    "checkpoint": BASE,
    "graph": BASE | {"connectors"},
    "runtime": BASE | {"checkpoint", "connectors", "graph", "metrics", "network", "state"},
    "jobmanager": BASE | {"checkpoint", "connectors", "graph", "network"},
    "spark": BASE | {"graph", "jobmanager", "network", "runtime"},
    "rest": BASE | {"checkpoint", "graph", "jobmanager"},
    "inspection": BASE | {"checkpoint", "jobmanager", "state"},
    "state_api": BASE | {"checkpoint", "inspection", "spark", "state"},
    "datastream": ENGINE,
    "__init__": BASE | {"absent", "datastream"},
    "demo": FRONTS,
    "testing": FRONTS,
    "cli": FRONTS | {"absent", "demo", "testing"},
    "__main__": {"cli"},
}

# Third-party packages that only some rooms may import.
RESERVED: dict[str, set[str]] = {"pyspark": {"spark"}, "py4j": {"spark"}}


class Import(NamedTuple):
    line: int
    target: str


def imports_of(source: str, module: str, *, is_package: bool) -> Iterator[Import]:
    """The absolute dotted names that `module` imports, with the line of each."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            for alias in node.names:
                yield Import(node.lineno, f"{base}.{alias.name}")
        elif isinstance(node, ast.Call) and _is_import_call(node.func):
            match node.args:
                case [ast.Constant(value=str(name)), *_]:
                    yield Import(node.lineno, name)


def _is_import_call(func: ast.expr) -> bool:
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", None)
    return name in {"import_module", "__import__"}


def room_of(target: str) -> str | None:
    """The room that a dotted name belongs to; None when it is not Penstock's.

    A name taken from the package itself (`from penstock import __version__`) is `__init__`'s.
    """
    top, _, rest = target.partition(".")
    if top != "penstock":
        return None
    room = rest.partition(".")[0]
    return room if room in ALLOWED else "__init__"


def violations(source: str, module: str, path: str, *, is_package: bool = False) -> list[str]:
    """One message for each import in `source` that the tables do not allow."""
    room = "__init__" if module == "penstock" else module.split(".")[1]
    if room not in ALLOWED:
        return [f"{path}: room {room} is not in ALLOWED: add it, with the rooms it may import"]
    found = []
    for line, target in imports_of(source, module, is_package=is_package):
        other = room_of(target)
        owners = RESERVED.get(target.partition(".")[0])
        if other is not None and other != room and other not in ALLOWED[room]:
            found.append(
                f"{path}:{line} imports {target}: room {room} may not import room {other}"
                f" (it may import: {', '.join(sorted(ALLOWED[room])) or 'no other room'})"
            )
        elif owners is not None and room not in owners:
            found.append(
                f"{path}:{line} imports {target}: room {room} may not import it,"
                f" only {', '.join(sorted(owners))} may"
            )
    return found


def modules() -> Iterator[tuple[Path, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_import_follows_the_arrows() -> None:
    found = [
        message
        for path, module in modules()
        for message in violations(
            path.read_text(encoding="utf-8"),
            module,
            path.relative_to(ROOT).as_posix(),
            is_package=path.name == "__init__.py",
        )
    ]
    assert not found, "\n".join(["imports against the arrows:", *found])


def test_the_source_is_where_this_test_looks() -> None:
    assert any(modules()), f"no Python module under {PACKAGE}: the arrows hold vacuously"


def test_the_arrows_have_no_cycle() -> None:
    try:
        TopologicalSorter(ALLOWED).prepare()
    except CycleError as error:
        pytest.fail(f"rooms import each other in a circle: {' <- '.join(error.args[1])}")


def test_the_table_names_only_rooms_that_it_lists() -> None:
    unknown = set().union(*ALLOWED.values(), *RESERVED.values()) - set(ALLOWED)
    assert not unknown, f"rooms without a line in ALLOWED: {sorted(unknown)}"


def test_only_the_command_line_may_import_testing() -> None:
    """For `run --debug`."""
    assert [room for room, others in ALLOWED.items() if "testing" in others] == ["cli"]


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("penstock.graph.nodes", "import penstock.runtime.slot", "room runtime"),
        ("penstock.graph.nodes", "from penstock import runtime", "room runtime"),
        ("penstock.graph.nodes", "from penstock.runtime import slot", "room runtime"),
        ("penstock.graph.nodes", "from ..runtime import slot", "room runtime"),
        ("penstock.graph.nodes", "from .. import runtime", "room runtime"),
        ("penstock.graph.nodes", "def f():\n    import penstock.state", "room state"),
        ("penstock.graph.nodes", "from penstock import __version__", "room __init__"),
        ("penstock.state.heap", "import_module('penstock.spark.session')", "room spark"),
        ("penstock.state.heap", "importlib.import_module('penstock.spark')", "room spark"),
        ("penstock.demo.job", "from penstock.testing import simulate", "room testing"),
        ("penstock.runtime.slot", "import pyspark", "only spark may"),
        ("penstock.runtime.slot", "from pyspark.sql import Row", "only spark may"),
        ("penstock.attic.old", "import os", "room attic is not in ALLOWED"),
    ],
)
def test_the_checker_sees_a_forbidden_import(module: str, source: str, expected: str) -> None:
    [message] = violations(source, module, "fake.py")
    assert message.startswith("fake.py")
    assert expected in message


def test_a_message_says_where_what_and_why() -> None:
    [message] = violations("\nimport penstock.graph\n", "penstock.common.time", "common/time.py")
    assert message == (
        "common/time.py:2 imports penstock.graph: room common may not import room graph"
        " (it may import: errors, kept)"
    )


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("penstock.graph.nodes", "from penstock.common.time import Time"),
        ("penstock.graph.nodes", "from . import edges"),
        ("penstock.graph.nodes", "from .edges import Edge"),
        ("penstock.graph.nodes", "from ..errors import PenstockError"),
        ("penstock.graph.nodes", "import os, penstocks, zmq"),
        ("penstock.spark.session", "from pyspark.sql import SparkSession"),
        ("penstock.cli.run", "from penstock.testing import simulate"),
    ],
)
def test_the_checker_lets_an_allowed_import_pass(module: str, source: str) -> None:
    assert violations(source, module, "fake.py") == []


def test_a_relative_import_in_a_package_starts_from_the_package() -> None:
    source = "from ..runtime import slot"
    [message] = violations(source, "penstock.graph", "graph/__init__.py", is_package=True)
    assert "room graph may not import room runtime" in message
    assert violations("from .common import x", "penstock", "__init__.py", is_package=True) == []
