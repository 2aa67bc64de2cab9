"""A picture of the demo's result: payments per minute, a bar for every minute, in SVG."""

from __future__ import annotations

from html import escape

from penstock.demo.payments import MERCHANTS, MINUTES
from penstock.demo.results import Results

_COLOURS = ["#1b6ca8", "#f2a65a", "#3a9d6e", "#c8553d", "#7a5195", "#8d99ae", "#e3b505"]
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _LEGEND = 760, 380, 60, 46, 40, 150


def chart(results: Results) -> str:
    """The whole picture as text."""
    most = max((results.per_minute(minute) for minute in range(MINUTES)), default=1) or 1
    scale = (_HEIGHT - _TOP - _BOTTOM) / most
    step = (_WIDTH - _LEFT - _LEGEND) / MINUTES
    parts = [_text(_LEFT, 26, "UPI payments per minute and merchant", 16, "start")]
    for minute in range(MINUTES):
        x, y = _LEFT + minute * step, float(_HEIGHT - _BOTTOM)
        for merchant, colour in zip(MERCHANTS, _COLOURS, strict=True):
            height = results.counts[merchant, minute] * scale
            y -= height
            title = f"{merchant}, minute {minute + 1}: {results.counts[merchant, minute]:,}"
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{step * 0.78:.1f}" height="{height:.1f}" '
                f'fill="{colour}"><title>{escape(title)}</title></rect>'
            )
        middle = x + step * 0.39
        parts.append(_text(middle, _HEIGHT - _BOTTOM + 18, f"minute {minute + 1}", 11, "middle"))
        parts.append(_text(middle, y - 6, f"{results.per_minute(minute):,}", 11, "middle"))
    for row, (merchant, colour) in enumerate(zip(MERCHANTS, _COLOURS, strict=True)):
        y = _TOP + 20 * row
        parts.append(
            f'<rect x="{_WIDTH - _LEGEND + 10}" y="{y}" width="12" height="12" fill="{colour}"/>'
        )
        parts.append(_text(_WIDTH - _LEGEND + 28, y + 11, merchant, 12, "start"))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif">\n<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>\n'
        f"{body}\n</svg>\n"
    )


def _text(x: float, y: float, text: str, size: int, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )
