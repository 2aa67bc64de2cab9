"""Lists in configuration values: as YAML writes them, or with semicolons.

>>> parse_list("[a, 'b, c']"), parse_list("- a\\n- b"), parse_list("a;b"), parse_list("")
(['a', 'b, c'], ['a', 'b'], ['a', 'b'], [])
"""

from __future__ import annotations

import re

# A quoted item, in which quotes are doubled (single) or escaped (double); or whatever is between
# commas.
_ITEM = re.compile(r"""\s*(?:'((?:[^']|'')*)'|"((?:[^"\\]|\\.)*)"|([^,'"][^,]*|))\s*(,|$)""")


def parse_list(value: str) -> list[str]:
    """The items of a list; ValueError if a bracket or a quote is not closed."""
    text = value.strip()
    if text.startswith("["):
        if not text.endswith("]"):
            raise ValueError(f"{value!r} begins a list with [ and does not end it with ]")
        return _flow(text[1:-1].strip())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and all(line == "-" or line.startswith("- ") for line in lines):
        return [item for line in lines for item in _flow(line[1:].strip(), separated=False)]
    return [item.strip() for item in text.split(";") if item.strip()]


def _flow(text: str, *, separated: bool = True) -> list[str]:
    if not separated and text[:1] not in ("'", '"'):
        return [text]
    items, place = [], 0
    while place < len(text):
        match = _ITEM.match(text, place)
        if match is None:
            raise ValueError(f"a quote in {text!r} is not closed, or something follows it")
        single, double, plain, _ = match.groups()
        if single is not None:
            items.append(single.replace("''", "'"))
        elif double is not None:
            items.append(re.sub(r"\\(.)", r"\1", double))
        else:
            items.append(plain.strip())
        place = match.end()
    return items
