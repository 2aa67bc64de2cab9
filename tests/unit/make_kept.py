"""Makes kept files with the version at hand: `python tests/unit/make_kept.py DIR [PROGRAM ...]`."""

from __future__ import annotations

import sys
from pathlib import Path

from kept_programs import PROGRAMS, make

if __name__ == "__main__":
    directory, *names = sys.argv[1:]
    for name in names or PROGRAMS:
        make(PROGRAMS[name], Path(directory, name))
        print(name)
