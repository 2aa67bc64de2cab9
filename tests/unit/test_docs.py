"""The documentation says what the code says: keys, errors, names, links, and code that compiles."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

import penstock.common
import penstock.connectors
import penstock.datastream
import penstock.datastream.connectors
import penstock.datastream.functions
import penstock.datastream.interval_join
import penstock.datastream.state
import penstock.datastream.window
import penstock.metrics
import penstock.state_api
import penstock.testing
from penstock.cli import main as cli
from penstock.common.config_options import OPTIONS, Option
from penstock.common.config_reference import MEANINGS, default_text, table
from penstock.common.flink_keys import flink_keys
from penstock.errors import PenstockError

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FRONTS = [
    penstock.common,
    penstock.connectors,
    penstock.datastream,
    penstock.datastream.state,
    penstock.metrics,
    penstock.state_api,
    penstock.testing,
]
# The reference holds these as well; the guides need not mention every name in them.
IN_THE_REFERENCE = [
    *FRONTS,
    penstock.datastream.connectors,
    *(
        importlib.import_module(f"penstock.datastream.connectors.{module.name}")
        for module in pkgutil.iter_modules(penstock.datastream.connectors.__path__)
    ),
    penstock.datastream.functions,
    penstock.datastream.interval_join,
    penstock.datastream.window,
]


def code_blocks(holding: str = "") -> list[pytest.ParameterSet]:
    """The blocks of Python in all pages; only those that hold a string, if one is given."""
    blocks = []
    for page in PAGES:
        name, text = str(page.relative_to(ROOT)), page.read_text()
        for match in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            line = text[: match.start(1)].count("\n")
            # Empty lines in front, so that an error names the line of the page.
            if holding in match[1]:
                blocks.append(pytest.param("\n" * line + match[1], id=f"{name}:{line + 1}"))
    return blocks


def rows(page: str, first_header: str) -> list[list[str]]:
    """The cells of the table in `page` whose first column has this header."""
    lines = (ROOT / page).read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {first_header} |"))
    table = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


@pytest.mark.parametrize("code", code_blocks())
def test_code_compiles(code: str) -> None:
    compile(code, "<page>", "exec")


@pytest.mark.parametrize("code", code_blocks(holding="penstock.testing"))
def test_code_that_needs_no_spark_runs(code: str) -> None:
    exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})


def test_every_configuration_key_is_documented() -> None:
    assert {option.key for option in OPTIONS} == set(MEANINGS), "each key has a Meaning"
    assert f"\n{table()}\n" in (ROOT / "docs/configuration.md").read_text(), (
        f"the table must be:\n{table()}"
    )


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: str(option.key))
def test_the_table_tells_what_the_option_reads(option: Option[Any]) -> None:
    meaning = MEANINGS[option.key]
    default = default_text(option) if meaning.default is None else meaning.default
    default = default.strip("`")
    assert (None if default == "none" else option.parse(default)) == option.default
    # Where the type is a choice of words, each of them can be given.
    if re.fullmatch(r"(`[^`]+`(, | or )?)+", meaning.values):
        for word in re.findall(r"`([^`]+)`", meaning.values):
            option.parse(word)


def test_defaults_that_differ_from_flinks_are_listed() -> None:
    """What RocksDB has by itself stands in one row; a default of None is no default."""
    differ = set()
    for option in OPTIONS:
        for key in {option.key, *option.aliases} & set(flink_keys()):
            default = flink_keys()[key].strip('"')
            theirs = None if default in ("(none)", "") else option.parse(default)
            ours = option.default if option.default not in ((), {}) else None
            if theirs != ours and not (ours is None and "rocksdb" in key):
                differ.add(option.key)
    table = rows("docs/porting.md", "key")
    listed = {key for row in table for key in re.findall(r"`([^`*]+)`", row[0])}
    assert listed == differ


def test_every_option_of_the_command_line_is_documented() -> None:
    context = click.Context(cli.penstock)
    expected: dict[tuple[str, str], list[str]] = {}
    commands: dict[str, click.Command] = {}
    for name in cli.COMMANDS:
        command = cli.penstock.get_command(context, name)
        assert command is not None
        commands[name] = command
        if isinstance(command, click.Group):
            commands |= {f"{name} {below}": found for below, found in command.commands.items()}
    for name, command in commands.items():
        for option in command.params:
            # A hidden one only refuses a word of Flink's.
            if isinstance(option, click.Option) and not option.hidden:
                spelled = ", ".join(f"`{word}`" for word in option.opts)
                if option.metavar:
                    spelled = f"{spelled[:-1]} {option.metavar}`"
                expected.setdefault((spelled, option.help or ""), []).append(f"`{name}`")
    documented = {(option, text): names for names, option, text in rows("docs/cli.md", "command")}
    assert documented == {what: ", ".join(names) for what, names in expected.items()}


def error_rows(kind: type[PenstockError] = PenstockError) -> Iterator[list[str]]:
    if not kind.__module__.startswith("penstock"):
        return
    bases = ", ".join(f"`{b.__name__}`" for b in kind.__bases__ if issubclass(b, PenstockError))
    meaning = (inspect.getdoc(kind) or "").split("\n")[0].replace("``", "`")
    yield [f"`{kind.__name__}`", f"`{kind.code}`", bases, meaning]
    for below in kind.__subclasses__():
        # One with two bases is listed below the first.
        if below.__base__ is kind:
            yield from error_rows(below)


def test_every_error_is_documented() -> None:
    expected = list(error_rows())
    text = "\n".join(f"| {' | '.join(row)} |" for row in expected)
    assert rows("docs/errors.md", "error") == expected, f"the table must be:\n{text}"


def test_every_public_name_is_documented() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    names = {f"{front.__name__}.{name}" for front in FRONTS for name in front.__all__}
    missing = [n for n in sorted(names) if not re.search(rf"\b{n.rpartition('.')[2]}\b", text)]
    assert not missing


def undocumented(name: str, value: object) -> Iterator[str]:
    """What is public in a class or function, itself included, and has no docstring."""
    if inspect.isclass(value):
        # Its own, not that of a base class.
        if not (vars(value).get("__doc__") or "").strip():
            yield name
        for attribute, member in vars(value).items():
            member = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
            described = inspect.isclass(member) or inspect.isfunction(member)
            if attribute.startswith("_") or not (described or isinstance(member, property)):
                continue
            if inspect.isclass(member):
                yield from undocumented(f"{name}.{attribute}", member)
            elif not inspect.getdoc(getattr(value, attribute)):
                yield f"{name}.{attribute}"
    elif not inspect.getdoc(value):
        yield name


@pytest.mark.parametrize("front", IN_THE_REFERENCE, ids=lambda front: str(front.__name__))
def test_every_public_name_has_a_docstring(front: ModuleType) -> None:
    assert inspect.getdoc(front)
    assert [gap for name in front.__all__ for gap in undocumented(name, getattr(front, name))] == []


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs/adr"
    listed = re.findall(r"^- \[(.+)\]\((.+)\)$", (folder / "README.md").read_text(), re.MULTILINE)
    pages = sorted(page for page in folder.glob("*.md") if page.name != "README.md")
    titles = [page.read_text().splitlines()[0].partition(". ")[2] for page in pages]
    assert listed == list(zip(titles, [page.name for page in pages], strict=True))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    local = [link.partition("#")[0] for link in links if "://" not in link]
    assert [link for link in local if link and not (page.parent / link).exists()] == []


def modules_with_examples() -> list[str]:
    files = [path for path in SOURCE.rglob("*.py") if ">>> " in path.read_text()]
    return sorted(".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in files)


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_modules(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0 and results.failed == 0
