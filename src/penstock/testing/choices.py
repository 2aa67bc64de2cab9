"""Choices: a seed decides everything, and every choice has a stream of chance of its own.

    choices = Choices(4711)
    choices("backend").choice(("hashmap", "rocksdb"))
    choices("takeovers").choice((1, 2, 3))

Two choices never depend on each other: whatever is chosen for one, every value of the other occurs
with some seed. And a choice that is added changes no other.
"""

from __future__ import annotations

import random


class Choices:
    """The streams of one seed."""

    def __init__(self, seed: int | str) -> None:
        self._seed = seed

    def __call__(self, choice: str) -> random.Random:
        """The stream of a choice, from its beginning."""
        return random.Random(f"{self._seed}/{choice}")
