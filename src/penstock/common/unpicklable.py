"""Why a value cannot be pickled, and what its author can do about it."""

from __future__ import annotations


def why(error: Exception) -> str:
    """What pickle said, and advice where there is some."""
    text = str(error)
    return f"{text}{_advice(text)}"


def _advice(text: str) -> str:
    if "local object" in text or "local class" in text or "<locals>" in text:
        return (
            "; define its class at the top level of the script or in a module: pickle finds a "
            "class by its name, and one that is made inside a function has none"
        )
    if "not the same object" in text:
        return "; its class was defined anew after the object was made: make the object again"
    if "attribute lookup" in text:
        return (
            "; pickle finds a class by its name: have it at the top level of the script or of a "
            "module, in a variable of that name"
        )
    return ""
