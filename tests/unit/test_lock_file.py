"""The lock file has one version, in range, of everything that pyproject.toml asks for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]


def asked() -> list[Requirement]:
    """What pyproject.toml asks for: to build, to run, and in every extra."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = [
        *content["build-system"]["requires"],
        *content["project"]["dependencies"],
        *(line for extra in content["project"]["optional-dependencies"].values() for line in extra),
    ]
    found = [Requirement(line) for line in lines]
    # An extra that is made of others names Penstock itself.
    return [requirement for requirement in found if requirement.name != content["project"]["name"]]


def locked() -> list[Requirement]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


def locked_for(python: str) -> dict[str, list[Requirement]]:
    """Of every package, the lines that apply to this version of Python on Linux."""
    machine = {
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "python_full_version": f"{python}.9",
        "python_version": python,
        "sys_platform": "linux",
    }
    found: dict[str, list[Requirement]] = {}
    for line in locked():
        if line.marker is None or line.marker.evaluate(machine):
            found.setdefault(canonicalize_name(line.name), []).append(line)
    return found


def version_of(line: Requirement) -> str:
    (exact,) = line.specifier
    assert exact.operator == "==", f"{line} is not one version"
    return exact.version


@pytest.mark.parametrize("python", PYTHONS)
def test_what_is_asked_for_is_locked_and_in_range(python: str) -> None:
    lock = locked_for(python)
    missing = [
        str(requirement)
        for requirement in asked()
        if not any(
            version_of(line) in requirement.specifier
            for line in lock.get(canonicalize_name(requirement.name), [])
        )
    ]
    assert missing == [], "run `make lock`"


@pytest.mark.parametrize("python", PYTHONS)
def test_a_package_has_one_version(python: str) -> None:
    lines = locked_for(python)
    assert {name: found for name, found in lines.items() if len(found) > 1} == {}
    assert all(version_of(line) for found in lines.values() for line in found)


def test_the_lock_file_names_no_place_to_load_from() -> None:
    """Everybody installs from the package index that they have configured."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert [line for line in lines if "://" in line or line.startswith("-")] == []


def test_every_python_that_the_package_claims_is_looked_at() -> None:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    prefix = "Programming Language :: Python :: 3."
    claimed = [
        f"3.{line.removeprefix(prefix)}"
        for line in content["project"]["classifiers"]
        if line.startswith(prefix)
    ]
    assert claimed == PYTHONS
