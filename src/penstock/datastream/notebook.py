"""A picture in a notebook that is replaced by the next one, with nothing installed but IPython."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

from rich.console import Console, RenderableType

_PAGE = (
    '<pre style="line-height: 1.2; font-family: Menlo, DejaVu Sans Mono, Consolas, monospace">'
    "{code}</pre>"
)
_WIDTH = 110


class NotebookPicture:
    """One output of the cell that made it; shown when it is first drawn."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, renderable: RenderableType) -> None:
        """Show `renderable` in place of what was shown before."""
        display = import_module("IPython.display").display
        content = _rendered(renderable)
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def _rendered(renderable: RenderableType) -> dict[str, str]:
    # A console of its own: the usual one would show the picture itself, each time anew.
    console = Console(
        record=True, file=io.StringIO(), width=_WIDTH, force_jupyter=False, force_terminal=True
    )
    console.print(renderable)
    html = console.export_html(inline_styles=True, code_format=_PAGE, clear=False)
    return {"text/html": html, "text/plain": console.export_text()}
