"""What the pages show beside Python is true too: commands, settings, imports, and output."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from penstock.cli import main as cli
from penstock.common.config_file import read_config_file
from penstock.testing import local_environment

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def blocks(language: str, page: Path) -> list[tuple[int, str]]:
    """The blocks of one language, each with the line of the page before its first."""
    text = page.read_text()
    fence = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(text[: match.start(1)].count("\n"), match[1]) for match in fence.finditer(text)]


def on_all_pages(language: str) -> list[pytest.ParameterSet]:
    return [
        pytest.param(block, id=f"{page.relative_to(ROOT)}:{line + 1}")
        for page in PAGES
        for line, block in blocks(language, page)
    ]


@pytest.mark.parametrize("block", on_all_pages("yaml"))
def test_settings_can_be_read(block: str, tmp_path: Path) -> None:
    file = tmp_path / "penstock.yaml"
    file.write_text(block)
    assert read_config_file(file)


def commands() -> list[pytest.ParameterSet]:
    fenced = [
        line for page in PAGES for _, block in blocks("sh", page) for line in block.split("\n")
    ]
    inline = [
        code for page in PAGES for code in re.findall(r"`(penstock [^`]+)`", page.read_text())
    ]
    lines = {line for line in [*fenced, *inline] if line.startswith("penstock ")}
    return [pytest.param(shlex.split(line, comments=True)[1:], id=line) for line in sorted(lines)]


@pytest.mark.parametrize("words", commands())
def test_commands_exist_with_their_options(words: list[str]) -> None:
    command = cli.penstock.get_command(click.Context(cli.penstock), words[0])
    assert command is not None
    command.make_parser(click.Context(command)).parse_args(words[1:])


@pytest.mark.parametrize("block", on_all_pages("diff"))
def test_changed_imports_exist(block: str) -> None:
    added = [line[1:] for line in block.splitlines() if line.startswith("+")]
    removed = [line[1:] for line in block.splitlines() if line.startswith("-")]
    assert added == [line.replace("pyflink", "penstock") for line in removed]
    exec("\n".join(added), {})


FIRST_PROGRAMS = ["README.md", "docs/quickstart.md"]


@pytest.mark.parametrize("page", FIRST_PROGRAMS)
def test_the_first_program_prints_what_the_page_says(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program, output = blocks("python", ROOT / page)[0][1], blocks("text", ROOT / page)[0][1]
    with local_environment():
        exec(compile(program, page, "exec"), {"__name__": "__main__"})
    # Which subtask prints first is not fixed.
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(output.splitlines())


def test_the_first_program_has_the_plan_that_the_page_shows(tmp_path: Path) -> None:
    page = ROOT / "docs/quickstart.md"
    job = tmp_path / "job.py"
    job.write_text(blocks("python", page)[0][1])
    command = [sys.executable, "-m", "penstock", "info", str(job)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == blocks("text", page)[1][1].split()
