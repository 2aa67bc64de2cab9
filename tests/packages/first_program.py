"""README's first program, on Spark."""

from __future__ import annotations

import re
from pathlib import Path

from environments import Environment


def check_first_program(environment: Environment, sources: Path, folder: Path) -> None:
    """Run the program of README.md on local Spark: it prints what the page says."""
    text = (sources / "README.md").read_text()
    program, output = (
        re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0]
        for language in ("python", "text")
    )
    (folder / "job.py").write_text(program)
    printed = environment.run("python", "job.py", cwd=folder)
    # Which subtask prints first is not fixed.
    assert sorted(printed.splitlines()) == sorted(output.splitlines())
