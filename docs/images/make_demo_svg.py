"""Draws demo.svg, the picture in the README, from a real run of the demo.

python docs/images/make_demo_svg.py
"""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from penstock import demo

TARGET = Path(__file__).with_name("demo.svg")


class LastScreen:
    """Stands in for the demo's screen and keeps what it was last told to show."""

    shown: tuple[Any, ...] = ()

    def __init__(self, console: Console) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass

    def due(self) -> bool:
        return False

    def show(self, *shown: Any) -> None:
        LastScreen.shown = shown


def main() -> None:
    demo._Screen = LastScreen  # type: ignore[assignment,misc]
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as directory:
        totals = demo.run(Console(file=io.StringIO()), directory)
    got = {m: (totals.count[m], totals.paise[m]) for m in demo.MERCHANTS}
    assert got == demo.expected() and not totals.wrong, "the run was not exact: not a picture"
    exact = f"all {demo.PAYMENTS:,} payments counted once, although a slot was killed."
    console = Console(record=True, width=86, file=io.StringIO())
    last = Text.assemble(("Exact: ", "green"), exact)
    console.print(Group(demo.picture(*LastScreen.shown), last))
    svg = console.export_svg(title="make demo", unique_id="demo")
    # No fonts from elsewhere: a reader's own monospace font will do.
    TARGET.write_text(re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL))
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
