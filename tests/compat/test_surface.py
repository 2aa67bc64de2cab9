"""PyFlink's public surface: all of it.

The surface is a list of modules, classes and members, in the file beside this one. Run with `-s` to
see what is missing, module by module.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SURFACE = Path(__file__).with_name("pyflink-surface.json")


@pytest.fixture(scope="module")
def surface() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SURFACE.read_text(encoding="utf-8"))
    return found


def names_of(content: dict[str, Any]) -> Iterator[str]:
    """Every name that a module of the surface has, dotted below the module."""
    for name, members in content.items():
        if name == "exports":
            yield from members
            continue
        yield name
        for member in (*members["methods"], *members.get("constants", ())):
            if member != "__init__":
                yield f"{name}.{member}"


def get(module: str, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def has(module: str, name: str) -> bool:
    try:
        get(module, name)
    except (AttributeError, ModuleNotFoundError):
        return False
    return True


def test_every_name_is_there(surface: dict[str, Any]) -> None:
    present = total = 0
    missing: list[str] = []
    print()
    for module, content in surface.items():
        names = list(names_of(content))
        lacking = [f"{module}.{name}" for name in names if not has(module, name)]
        missing += lacking
        present, total = present + len(names) - len(lacking), total + len(names)
        print(f"{len(names) - len(lacking):4} of {len(names):4}  {module}")
    print(f"{present} of {total} names: {100 * present / total:.1f} %")
    assert not missing, "\n".join(["missing:", *missing])


def unlike(function: Any, expected: list[str]) -> list[str]:
    """Parameters that a call in PyFlink gives and ours does not take, or the other way round.

    What PyFlink can do without may be missing, and what we can do without may be added.
    """
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return []
    required = {name for name in expected if not name.endswith("=") and not name.startswith("*")}
    known = {name.strip("*=!") for name in expected} | {"self"}
    ours = {parameter.name for parameter in parameters}
    demanded = {
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
    }
    return sorted({name.strip("!") for name in required} - ours | demanded - known)


def test_parameters_have_the_names_that_programs_give_them(surface: dict[str, Any]) -> None:
    found = [
        f"{module}.{kind}.{method}: {', '.join(names)}"
        for module, content in surface.items()
        for kind, members in content.items()
        if kind != "exports"
        for method, expected in members["methods"].items()
        if not method.endswith("__init__") and has(module, f"{kind}.{method}")
        if (names := unlike(get(module, f"{kind}.{method}"), expected))
    ]
    assert not found, "\n".join(["parameters unlike PyFlink's:", *found])


def test_the_comparison_of_parameters_sees_a_difference() -> None:
    def ours(a: int, b: int, c: int = 0, *rest: int) -> None: ...

    assert unlike(ours, ["a", "b", "!c"]) == unlike(ours, ["a", "b=", "d=", "*e"]) == []
    assert unlike(ours, ["a"]) == ["b"]
    assert unlike(ours, ["a", "b", "d"]) == ["d"]


def test_the_comparison_sees_what_is_there_and_what_is_not() -> None:
    assert has("penstock.datastream", "DataStream.map")
    assert not has("penstock.datastream", "DataStream.no_such_method")
    assert not has("penstock.no_such_module", "DataStream")
    content = {"C": {"bases": [], "methods": {"__init__": [], "m": []}, "constants": ["K"]}}
    assert list(names_of(content)) == ["C", "C.m", "C.K"]
