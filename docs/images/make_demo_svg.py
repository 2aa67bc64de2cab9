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

from penstock.demo import __main__ as demo
from penstock.demo.payments import PAYMENTS
from penstock.demo.screen import Screen, picture

TARGET = Path(__file__).with_name("demo.svg")


class LastScreen(Screen):
    """Keeps what it was last told to show."""

    shown: tuple[Any, ...] = ()

    def show(self, *shown: Any) -> None:
        self.shown = shown


def main() -> None:
    screen = LastScreen(Console(file=io.StringIO()))
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as directory:
        results = demo.run(screen, directory)
    assert results.exact(), "the run was not exact: not a picture"
    exact = f"all {PAYMENTS:,} payments are in their minute or came too late, each once."
    console = Console(record=True, width=92, file=io.StringIO())
    last = Text.assemble(("Exact: ", "green"), exact)
    console.print(Group(picture(*screen.shown), last))
    svg = console.export_svg(title="make demo", unique_id="demo")
    # No fonts from elsewhere: a reader's own monospace font will do.
    TARGET.write_text(re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL))
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
