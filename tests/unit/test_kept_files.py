"""Savepoints and checkpoints of older versions are restored, and give the right results.

They lie in `kept`, in a folder for every version: `9d0f5f6` is a commit that wrote its files, and
`first` the first version that had savepoints. `kept_programs` are the programs that they are of;
`make_kept.py` makes files of another version.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_programs import PROGRAMS, restored

KEPT = Path(__file__).parent / "kept"
FOLDERS = sorted(folder for version in KEPT.iterdir() for folder in version.iterdir())
CASES = [
    pytest.param(folder, parallelism, id=f"{folder.parent.name}-{folder.name}-{parallelism}")
    for folder in FOLDERS
    for parallelism in PROGRAMS[folder.name].parallelisms
]


@pytest.mark.parametrize(("folder", "parallelism"), CASES)
def test_kept_files_are_restored_and_give_the_right_results(folder: Path, parallelism: int) -> None:
    program = PROGRAMS[folder.name]
    assert restored(program, folder, parallelism) == program.right_results()


def test_every_program_has_kept_files() -> None:
    assert {folder.name for folder in FOLDERS} == set(PROGRAMS)
