"""Replay one seed of the suite and tell what happened: `python -m penstock.testing 4711 stop`."""

from __future__ import annotations

import sys

from penstock.testing.kinds import KINDS
from penstock.testing.scenarios import replay


def main(arguments: list[str]) -> int:
    """The exit code: 1 if the result was wrong, 2 if the arguments were."""
    seed, kind = (*arguments, "plain")[:2] if arguments else ("", "")
    if len(arguments) > 2 or not seed.isdigit() or kind not in KINDS:
        print(f"usage: python -m penstock.testing SEED [{'|'.join(KINDS)}]", file=sys.stderr)
        return 2
    return replay(KINDS[kind](int(seed)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
