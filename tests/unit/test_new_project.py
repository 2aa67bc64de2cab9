"""`penstock init`: the project that it writes works, and nothing is overwritten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.cli.main import run

WRITTEN = {"job.py", "test_job.py", "penstock.yaml", "README.md", "requirements.txt"}


@pytest.fixture
def _this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that a test starts import the same package, however it was found here."""
    monkeypatch.setenv("PYTHONPATH", str(Path(penstock.__file__).absolute().parents[1]))


@pytest.mark.usefixtures("_this_package")
def test_the_tests_of_a_new_project_pass(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "payments"
    assert run(["init", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == WRITTEN
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


def test_the_project_has_the_name_of_its_folder(tmp_path: Path) -> None:
    assert run(["init", str(tmp_path / "payments")]) == 0
    job, readme = ((tmp_path / "payments" / name).read_text() for name in ("job.py", "README.md"))
    assert 'env.execute("payments")' in job
    assert readme.startswith("# payments\n")


def test_nothing_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.py").write_text("mine")
    assert run(["init", "."]) == 2
    assert "has a job.py already; name another folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["job.py"]
    assert Path("job.py").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(["init", str(tmp_path / "file" / "project")]) == 2
    assert "Not a directory" in capsys.readouterr().err
