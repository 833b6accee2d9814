"""How wide texts are in the fonts of the workbook, and how many lines they take in a column."""

from __future__ import annotations

from functools import lru_cache
from math import ceil

_EM = {  # widths of the letters of Calibri, and of fonts made to its measure, as shares of the size
    0.23: " 'il,j",
    0.27: ".:;I·",
    0.31: "()-[]`f!J{}",
    0.35: "rt›‹",
    0.40: '/\\"szLc',
    0.46: "x?FSZkvy|",
    0.50: "ETYag#$*+0123456789<=>^_e~×÷−≤≥",
    0.53: "KPXbdhnopquBCR",
    0.58: "VA",
    0.66: "DHGNUO",
    0.71: "&Q%w…",
    0.80: "m",
    0.90: "MW@✓✗●",
}
_OTHER = 0.6  # letters of other scripts are wider than most of ours


class _Widths(dict[str, float]):
    """Widths of letters, those of other scripts as they are met."""

    def __missing__(self, letter: str) -> float:
        return _OTHER


_WIDTHS = _Widths({letter: width for width, letters in _EM.items() for letter in letters})
_MONO = 0.57  # of the size, in the font of ids
_ROUNDED = 1.03  # screens draw letters on whole pixels
_BROKEN = 0.85  # of a line that a word fills which is broken, where programs look for a point to break it
_POINT = 4 / 3  # pixels
_LINE = 1.22  # height of a line, of the size
_TEXTS = 65_536  # of which it is remembered how many lines they take; many stand in several rows
_WIDEST = 0.9 * _POINT * _ROUNDED  # letter, in pixels of a size of 1
_PADDING = 5  # pixels that a cell leaves beside its text


def width(text: str, size: float, *, mono: bool = False) -> float:
    """Pixels of a text in points of a size."""
    ems = len(text) * _MONO if mono else sum(map(_WIDTHS.__getitem__, text))
    return ems * size * _POINT * _ROUNDED


def letters(size: float, pixels: float) -> int:
    """How many letters of a size have room in one line of a column, whichever letters they are."""
    return int((pixels - _PADDING) / (size * _WIDEST))


def lines(text: str, size: float, pixels: float, *, mono: bool = False) -> int:
    """Lines that a text takes in a column. A word that is too long, such as an id, is broken anywhere.

    Example:
        lines("a text that is wrapped", 10, 80)    # 2
    """
    # Most texts take one line, whatever their letters.
    if len(text) <= letters(size, pixels) and "\n" not in text:
        return 1
    return _lines(text, size, pixels, mono)


@lru_cache(maxsize=_TEXTS)
def _lines(text: str, size: float, pixels: float, mono: bool) -> int:
    room = max(pixels - _PADDING, size)
    count, blank = 0, width(" ", size, mono=mono)
    for part in text.split("\n"):
        used = 0.0
        count += 1
        for word in part.split(" "):
            wide = width(word, size, mono=mono)
            if used and used + blank + wide > room:
                count, used = count + 1, 0.0
            elif used:
                used += blank
            more = max(ceil(wide / (room * _BROKEN)) - 1, 0) if not used and wide > room else 0
            count += more
            used += max(wide - more * room, 0)
    return count


@lru_cache(maxsize=_TEXTS)
def cut_to(text: str, size: float, pixels: float) -> str:
    """As much of a text as one line of a column shows, with a sign where some is left out."""
    if width(text, size) <= pixels - _PADDING:
        return text
    while text and width(f"{text}…", size) > pixels - _PADDING:
        text = text[:-1]
    return text.rstrip(" ,;") + "…"


@lru_cache(maxsize=_TEXTS)
def height(count: int, size: float) -> float:
    """Pixels of the height of a row with so many lines."""
    return ceil(count * size * _POINT * _LINE + 1)
