"""Maps in configuration values: `key:value` pairs with commas between, or as YAML writes them.

>>> parse_map("a:1, b:x:y"), parse_map("{a: '1', 'b c': 2}"), parse_map("")
({'a': '1', 'b': 'x:y'}, {'a': '1', 'b c': '2'}, {})
>>> parse_map(format_map({"a": "1, 2"}))
{'a': '1, 2'}
"""

from __future__ import annotations

import json
from collections.abc import Mapping


def parse_map(value: str) -> dict[str, str]:
    """The entries of a map; ValueError if it cannot be read."""
    text = value.strip()
    if text.startswith("{"):
        return _flow(text)
    entries = {}
    for pair in (pair.strip() for pair in text.split(",")):
        key, colon, entry = pair.partition(":")
        if pair and not (colon and key.strip()):
            raise ValueError(f"expected key:value, not {pair!r}")
        if pair:
            entries[key.strip()] = entry.strip()
    return entries


def _flow(text: str) -> dict[str, str]:
    # Imported when needed: most programs have no such value.
    import yaml

    try:
        loaded = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ValueError("expected a map such as {a: 1, b: 2}") from None
    return {str(key): str(entry) for key, entry in loaded.items()}


def format_map(entries: Mapping[str, str]) -> str:
    """What `parse_map` reads as these entries."""
    return json.dumps({str(key): str(entry) for key, entry in entries.items()})
