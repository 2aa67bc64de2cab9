"""Replay one seed of the suite and tell what happened: `python -m penstock.testing 4711`."""

from __future__ import annotations

import sys

from penstock.testing.scenarios import replay


def main(arguments: list[str]) -> int:
    """The exit code: 1 if the result was wrong, 2 if the arguments were."""
    if len(arguments) != 1 or not arguments[0].isdigit():
        print("usage: python -m penstock.testing SEED", file=sys.stderr)
        return 2
    return replay(int(arguments[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
