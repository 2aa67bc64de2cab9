"""The site of the documentation builds without a warning, and its reference is complete."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import pytest

import penstock.datastream.connectors

# The site is built once, by one process.
pytestmark = pytest.mark.xdist_group("site")

ROOT = Path(__file__).resolve().parents[2]
FRONTS = [
    "penstock.common",
    "penstock.connectors",
    "penstock.datastream",
    "penstock.datastream.connectors",
    *(
        f"penstock.datastream.connectors.{module.name}"
        for module in pkgutil.iter_modules(penstock.datastream.connectors.__path__)
    ),
    "penstock.datastream.functions",
    "penstock.datastream.interval_join",
    "penstock.datastream.window",
    "penstock.datastream.state",
    "penstock.metrics",
    "penstock.state_api",
    "penstock.testing",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: what is not said is not counted, and strictness is the counting of warnings.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    # Without the notice about the theme's successor, which is no warning about the pages.
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_picture_of_a_page_is_there(site: Path) -> None:
    missing = [
        f"{page.relative_to(site)}: {picture}"
        for page in site.rglob("*.html")
        for picture in re.findall(r'<img[^>]* src="([^":]+)"', page.read_text())
        if not (page.parent / picture).exists()
    ]
    assert missing == []


def test_the_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r'<(?:script|link rel="stylesheet"|img)[^>]*(?:src|href)="(https?:[^"]+)"')
    assert {url for page in site.rglob("*.html") for url in loaded.findall(page.read_text())} == (
        set()
    )


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    """A name that two modules export may stand under either."""
    public = {
        f"{front}.{name}": getattr(module, name)
        for front in FRONTS
        for module in [importlib.import_module(front)]
        for name in module.__all__
    }
    data = (site / "objects.inv").read_bytes()
    # Four lines of plain text, then one object per line, compressed.
    lines = zlib.decompress(data.split(b"\n", 4)[4]).decode().splitlines()
    shown = {id(found) for line in lines if (found := _find(line.split(" ")[0])) is not None}
    assert [name for name, value in public.items() if id(value) not in shown] == []


def _find(path: str) -> object | None:
    """The object at the top level of a module that a dotted path names."""
    module, _, name = path.rpartition(".")
    found = getattr(sys.modules.get(module), name, None)
    return None if isinstance(found, ModuleType) else found
