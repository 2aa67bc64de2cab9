"""The programs behind the files in `tests/unit/kept`: what each keeps in state, and what is right.

Every program reads the numbers below a bound and ends with results that only the whole input gives.
A snapshot is taken when the numbers below `before` are in state; whoever restores it reads on to
`after`. The right results come from a plain model of the whole input, so they cannot be right
unless everything from before is there.

    python tests/unit/make_kept.py DIR          makes the files of all programs, with this version
    python tests/unit/make_kept.py DIR timers   makes those of one

A program that has kept files must not change in what it keeps. Neither may the names of modules and
classes here whose objects are in the files.
"""

# Importing the modules registers their programs.
from kept_programs import operators, snapshots, states, values, windows  # noqa: F401
from kept_programs.program import PROGRAMS, Program, make, restored

__all__ = ["PROGRAMS", "Program", "make", "restored"]
