"""What is in the wheel and in the sdist."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from environments import LOCK, ROOT, Packages, uv

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("packages")]


def names_in(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_has_the_package_and_nothing_else(packages: Packages) -> None:
    names = names_in(packages.wheel)
    assert "penstock/py.typed" in names
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"penstock"}
    modules = {path.relative_to(ROOT / "src").as_posix() for path in ROOT.glob("src/**/*.py")}
    assert modules == {name for name in names if name.endswith(".py")}


def test_the_checkout_and_the_sdist_make_the_same_wheel(packages: Packages, tmp_path: Path) -> None:
    done = uv("build", "--wheel", "--build-constraints", LOCK, "--out-dir", tmp_path, ROOT)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert names_in(wheel) == names_in(packages.wheel)
