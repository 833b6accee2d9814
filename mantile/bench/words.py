"""Prompts of made-up words, drawn from a seed: none is stored, and each can be made again."""

from __future__ import annotations

import random

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_WORDS = 4096


class Words:
    """A vocabulary of made-up words and the texts that are drawn from it.

    Args:
        seed: the same gives the same texts.
    """

    def __init__(self, seed: int) -> None:
        """Make the vocabulary."""
        self.seed = seed
        draw = random.Random(f"words {seed}")
        syllables = [first + second for first in _CONSONANTS for second in _VOWELS]
        self._words = ["".join(draw.choices(syllables, k=draw.choice((2, 3)))) for _ in range(_WORDS)]

    def text(self, name: str, count: int) -> str:
        """A text of `count` words. Another name is another text, so that no server finds it in its cache.

        >>> Words(0).text("a", 3) == Words(0).text("a", 3) != Words(0).text("b", 3)
        True
        """
        return " ".join(random.Random(f"{self.seed} {name}").choices(self._words, k=count))


def arrivals(seed: int, name: str, rate: float, count: int) -> list[float]:
    """When requests arrive at a rate, Poisson: seconds from the start, the first after its first gap.

    Args:
        rate: requests per second.
        count: how many.
    """
    draw = random.Random(f"arrivals {seed} {name}")
    moments, now = [], 0.0
    for _ in range(count):
        now += draw.expovariate(rate)
        moments.append(now)
    return moments
