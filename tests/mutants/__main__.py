"""Put small mistakes into a module, one at a time, and see whether a test notices.

    python tests/mutants runtime/gate.py --count 20 --seed 3

Each mutant lives in a copy of the package in a temporary folder; the checkout is never changed. The
tests that can notice run until the first one fails: those that mention the module, then the other
unit tests, then some seeds of the simulator. A test counts only if it passes without the mutant.
A mutant that survives is printed with the command that tries it again. It changes nothing that can
be observed, or it needs real servers to be noticed, or it shows a test that is missing.
"""

from __future__ import annotations

import argparse
import compileall
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from places import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "penstock"
UNIT = ROOT / "tests" / "unit"

# A mutant may loop forever. Both limits are far above what the tests take on a busy machine.
TEST_SECONDS, RUN_SECONDS = 120, 3600
PYTEST = ["-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider"]
PYTEST += [f"--timeout={TEST_SECONDS}", "--hypothesis-seed=0"]
NO_TESTS = 5  # pytest's exit code when it ran none
_BROKEN = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)

SEEDS = [
    (kind, seed)
    for kind in ("plain", "unaligned", "changelog", "upkeep", "takeover", "stop", "rescale")
    for seed in range(3)
] + [("live-rescale", 0), ("change", 0), ("sweep", 0)]


class Copies:
    """Two copies of the package, one as it is and one with a mutant, and tests against both."""

    def __init__(self, folder: Path) -> None:
        self._clean, self._mutated = folder / "clean", folder / "mutated"
        for copy in (self._clean, self._mutated):
            shutil.copytree(PACKAGE, copy / "penstock")
            compileall.compile_dir(copy / "penstock", quiet=2)
        # Tests that fail without a mutant: they say nothing about one.
        self._unfit: set[str] = set()

    def catcher(self, module: str, mutant: Mutant, near: bool) -> str | None:
        """What notices the mutant: the name of a test, or None."""
        file = self._mutated / "penstock" / module
        original = file.read_text()
        try:
            _write(file, mutant.applied(original))
            while failed := self._first_failure(module, near):
                test, command = failed
                if _python(self._clean, command)[0] == 0:
                    return test
                print(f"fails without a mutant: {test}", flush=True)
                if test in self._unfit:  # pytest cannot leave it out
                    raise SystemExit(1)
                self._unfit.add(test)
        finally:
            _write(file, original)
        return None

    def _first_failure(self, module: str, near: bool) -> tuple[str, list[str]] | None:
        """The first test that fails, with the arguments that run it alone."""
        close, others = tests_of(module)
        for files in [close] if near else [close, others]:
            skipped = [f"--deselect={test}" for test in sorted(self._unfit)]
            code, told = _python(self._mutated, [*PYTEST, *skipped, *files]) if files else (0, "")
            if code not in (0, NO_TESTS):
                names = _BROKEN.findall(told)[:1]
                return " ".join(names or files), [*PYTEST, *(names or files)]
        for kind, seed in [] if near else SEEDS:
            command = ["-m", "penstock.testing", str(seed), kind]
            name = " ".join(["python", *command])
            if name not in self._unfit and _python(self._mutated, command)[0]:
                return name, command
        return None


def _write(file: Path, source: str) -> None:
    """Replace a module, and forget what it was compiled to."""
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()
    file.write_text(source)


def _python(copy: Path, arguments: list[str]) -> tuple[int, str]:
    """The exit code of a run against a copy of the package, and what it printed."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy),
        # Two sources of one size and one second would share a compiled file.
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / "hypothesis"),
    }
    run = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        told, _ = run.communicate(timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        told, _ = run.communicate()
    return run.returncode, told


def tests_of(module: str) -> tuple[list[str], list[str]]:
    """The files of unit tests that mention the module, the closest first, and the others."""
    dotted = ".".join(["penstock", *Path(module).with_suffix("").parts])
    defined = re.findall(
        r"^(?:class|def) ([A-Za-z]\w*)", (PACKAGE / module).read_text(), re.MULTILINE
    )
    mentioned = re.compile(rf"\b({'|'.join([re.escape(dotted), *defined])})\b")

    def distance(test: Path) -> int:
        text = test.read_text()
        if test.stem == f"test_{Path(module).stem}":
            return 0
        if re.search(rf"{re.escape(dotted)}\b", text):
            return 1
        return 2 if mentioned.search(text) else 3

    ranked = sorted(
        (distance(test), str(test.relative_to(ROOT))) for test in UNIT.glob("test_*.py")
    )
    return [name for rank, name in ranked if rank < 3], [name for rank, name in ranked if rank == 3]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python tests/mutants", description=__doc__.split("\n")[0]
    )
    parser.add_argument("module", help="a file under src/penstock: runtime/gate.py")
    parser.add_argument("--count", type=int, default=10, help="so many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="these, by their numbers")
    parser.add_argument("--near", action="store_true", help="only tests that mention the module")
    options = parser.parse_args()
    source = (PACKAGE / options.module).read_text()
    mutants = mutants_of(source)
    drawn = random.Random(options.seed).sample(
        range(len(mutants)), min(options.count, len(mutants))
    )
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = Copies(Path(folder))
        for number in options.only or sorted(drawn):
            mutant = mutants[number]
            place = f"{number:4} {options.module}:{mutant.line} {mutant.what}"
            test = copies.catcher(options.module, mutant, options.near)
            if test:
                print(f"caught   {place}: {test}", flush=True)
                continue
            survivors += 1
            print(f"SURVIVED {place}\n{mutant.diff(source)}")
            print(f"again: python tests/mutants {options.module} --only {number}", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
