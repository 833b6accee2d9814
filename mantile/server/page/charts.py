"""Charts as inline SVG. Places are in per cent of the width, so text is never scaled and nothing overflows;
colours stand in classes, so a page needs no styles in its markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD
from mantile.server.page.text import number, percent

LIMITS = (COMPUTE, MEMORY, NETWORK, OVERHEAD)
_LEFT, _RIGHT = 9.0, 97.0  # of the width: where a chart with axes begins and ends
_TOP, _BOTTOM = 14, 34  # pixels above and below it
FIRST = ("now", "tier")
"""Kinds of points whose words are written in any case; others give way to them."""
_WIDE, _LETTER = 460.0, 6.6  # pixels: what a chart is at least on a desk, and what a letter of a label takes
_ALONG = 24  # places along a piece of a line at which labels are kept off it


def tag(name: str, *inside: Markup | str, **attributes: object) -> Markup:
    """An element; names of attributes may end in _, and have _ for -."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items()
    )
    content = Markup("").join(escape(part) for part in inside)
    return Markup(f"<{name}{said}>") + content + Markup(f"</{name}>")


def at(value: float) -> str:
    """A place in per cent."""
    return f"{min(max(value, -50.0), 150.0):.2f}%"


def strip(value: float | None, low: float | None, high: float | None, floor: float | None = None) -> Markup:
    """A value on a line from 0: the range that holds 80 % of runs as a band, a floor as a dotted mark.

    Empty where nobody knows the value.
    """
    known = [x for x in (value, low, high, floor) if x is not None and math.isfinite(x)]
    if value is None or not known or max(known) <= 0:
        return tag("svg", class_="strip", aria_hidden="true")
    scale = 100 / (max(known) * 1.2)
    parts = [tag("line", x1="0", x2="100%", y1="10", y2="10", class_="rail")]
    if low is not None and high is not None:
        parts.append(
            tag(
                "rect",
                x=at(low * scale),
                width=at((high - low) * scale),
                y="6",
                height="8",
                rx="4",
                class_="band80",
            )
        )
    if floor is not None:
        parts.append(tag("line", x1=at(floor * scale), x2=at(floor * scale), y1="2", y2="18", class_="floor"))
    parts.append(tag("circle", cx=at(value * scale), cy="10", r="5", class_="dot"))
    return tag("svg", *parts, class_="strip", aria_hidden="true")


def shares(parts: Mapping[str, float], label: str) -> Markup:
    """A bar of what a pass is bound by, with words where there is room for them."""
    total = sum(parts.values())
    drawn, left = [], 0.0
    for kind in LIMITS:
        share = parts.get(kind, 0.0) / total if total > 0 else 0.0
        if share <= 0:
            continue
        drawn.append(
            tag("rect", x=at(100 * left), width=at(100 * share), y="0", height="30", class_=f"fill-{kind}")
        )
        said = f"{kind} {percent(share)}" if share > 0.3 else percent(share) if share > 0.13 else ""
        if said:
            drawn.append(tag("text", said, x=at(100 * left + 1.6), y="20", class_=f"on-{kind} strong"))
        left += share
    return tag("svg", *drawn, class_="shares", role="img", aria_label=label)


def bar(parts: Mapping[str, float], longest: float) -> Markup:
    """A thin bar of the same parts, of the longest of several bars."""
    drawn, left = [], 0.0
    for kind in LIMITS:
        share = parts.get(kind, 0.0) / longest if longest > 0 else 0.0
        if share > 0:
            drawn.append(
                tag(
                    "rect", x=at(100 * left), width=at(100 * share), y="2", height="12", class_=f"fill-{kind}"
                )
            )
            left += share
    return tag("svg", *drawn, class_="bar", aria_hidden="true")


def memory_bar(parts: Sequence[tuple[str, str, float]], capacity: float, label: str) -> Markup:
    """What lies in a memory: class, words and size of each part, from the left."""
    drawn, left = [], 0.0
    for kind, words, size in parts:
        share = size / capacity if capacity > 0 else 0.0
        drawn.append(
            tag(
                "rect",
                x=at(100 * left),
                width=at(100 * max(share, 0.0)),
                y="0",
                height="30",
                class_=f"mem-{kind}",
            )
        )
        if share > 0.3 and words:
            drawn.append(tag("text", words, x=at(100 * left + 1.6), y="20", class_=f"on-mem-{kind} strong"))
        left += share
    return tag("svg", *drawn, class_="shares", role="img", aria_label=label)


def ranges(rows: Sequence[tuple[str, float | None, float | None, float | None, str, bool]]) -> Markup:
    """Bars of one figure of several runs with their 80 % ranges, one below the other.

    Args:
        rows: name, value, low and high end, words, and whether it is the best.
    """
    known = [x for row in rows for x in row[1:4] if x is not None]
    top = max(known, default=0.0)
    drawn: list[Markup] = []
    for place, (name, value, low, high, words, best) in enumerate(rows):
        y = 6 + place * 30
        drawn.append(tag("text", name, x="0", y=str(y + 14), class_="strong"))
        said = f"★ {words}" if best else words
        drawn.append(tag("text", said, x="100%", y=str(y + 14), text_anchor="end", class_="strong"))
        if value is None or top <= 0:
            continue
        start, room = 8.0, 64.0
        drawn.append(
            tag(
                "rect",
                x=at(start),
                width=at(room * value / top),
                y=str(y),
                height="18",
                class_="fill-compute" if best else "fill-overhead",
            )
        )
        if low is not None and high is not None:
            ends = at(start + room * low / top), at(start + room * high / top)
            middle = str(y + 9)
            drawn.append(tag("line", x1=ends[0], x2=ends[1], y1=middle, y2=middle, class_="whisker"))
            for end in ends:
                drawn.append(tag("line", x1=end, x2=end, y1=str(y + 4), y2=str(y + 14), class_="whisker"))
    return tag("svg", *drawn, class_="ranges", height=str(8 + 30 * len(rows)), aria_hidden="true")


def nice_steps(most: float, count: int = 4) -> list[float]:
    """Round numbers from 0 to at least the largest value.

    >>> nice_steps(347)
    [0.0, 100.0, 200.0, 300.0, 400.0]
    """
    if not (math.isfinite(most) and most > 0):
        return [0.0, 1.0]
    rough = most / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    return [step * place for place in range(math.ceil(most / step * 0.999) + 1)]


@dataclass(frozen=True)
class Series:
    """Points of a chart that are joined.

    Args:
        kind: class of its line and marks: front, beaten, now, or one of several by number.
        points: across, up and the words beside the point.
        joined: whether a line goes through them.
        mark: circle, square or diamond.
    """

    kind: str
    points: Sequence[tuple[float, float, str]]
    joined: bool = True
    mark: str = "circle"


def chart(
    series: Iterable[Series],
    across: str,
    up: str,
    label: str,
    height: int = 290,
    limits: tuple[float | None, float | None] = (None, None),
) -> Markup:
    """Points on two axes from 0.

    Args:
        across, up: what the axes show, with unit.
        label: the finding, for those who do not see it.
        limits: that are drawn as dashed lines: across, up.
    """
    drawn_of = [one for one in series if one.points]
    wide = [x for one in drawn_of for x, _, _ in one.points] + [limits[0] or 0]
    high = [y for one in drawn_of for _, y, _ in one.points] + [limits[1] or 0]
    ticks_x, ticks_y = nice_steps(max(wide, default=1) * 1.02), nice_steps(max(high, default=1) * 1.02)
    most_x, most_y = ticks_x[-1], ticks_y[-1]

    def x_of(value: float) -> str:
        return at(_LEFT + (_RIGHT - _LEFT) * value / most_x)

    def y_of(value: float) -> float:
        return round(height - _BOTTOM - (height - _TOP - _BOTTOM) * value / most_y, 1)

    parts: list[Markup] = []
    for tick in ticks_y:
        y = y_of(tick)
        parts.append(tag("line", x1=at(_LEFT), x2=at(_RIGHT), y1=y, y2=y, class_="grid"))
        parts.append(
            tag("text", number(tick, 3), x=at(_LEFT - 1.2), y=y + 4, text_anchor="end", class_="axis")
        )
    for tick in ticks_x:
        parts.append(
            tag("text", number(tick, 3), x=x_of(tick), y=height - 16, text_anchor="middle", class_="axis")
        )
    parts.append(tag("text", up, x=at(_LEFT + 0.8), y=11, class_="axis"))
    parts.append(
        tag("text", across, x=at((_LEFT + _RIGHT) / 2), y=height - 1, text_anchor="middle", class_="axis")
    )
    if limits[0]:
        parts.append(
            tag("line", x1=x_of(limits[0]), x2=x_of(limits[0]), y1=_TOP, y2=height - _BOTTOM, class_="limit")
        )
    if limits[1]:
        parts.append(
            tag("line", x1=at(_LEFT), x2=at(_RIGHT), y1=y_of(limits[1]), y2=y_of(limits[1]), class_="limit")
        )
    for one in drawn_of:
        if one.joined:
            for (x, y, _), (to_x, to_y, _) in zip(one.points, one.points[1:], strict=False):
                parts.append(
                    tag(
                        "line",
                        x1=x_of(x),
                        y1=y_of(y),
                        x2=x_of(to_x),
                        y2=y_of(to_y),
                        class_=f"line {one.kind}",
                    )
                )

    def pixel(x: float, y: float) -> tuple[float, float]:
        return (_LEFT + (_RIGHT - _LEFT) * x / most_x) / 100 * _WIDE, y_of(y)

    dots = [pixel(x, y) for one in drawn_of for x, y, _ in one.points]
    taken = [(x - 5, x + 5, y - 5, y + 5) for x, y in dots]
    lines = [
        (x + (to_x - x) * part / _ALONG, y + (to_y - y) * part / _ALONG)
        for one in drawn_of
        if one.joined
        for (x, y), (to_x, to_y) in pairwise([pixel(x, y) for x, y, _ in one.points])
        for part in range(_ALONG)
    ]
    for one in sorted(drawn_of, key=lambda each: each.kind not in FIRST):
        for x, y, words in one.points:
            here = pixel(x, y)
            place = _room(here, words, one.kind in FIRST, taken, lines)
            if not words or place is None:
                continue
            beside, down, box = place
            taken.append(box)
            parts.append(
                tag(
                    "text",
                    words,
                    x=x_of(x),
                    dx=9 * beside,
                    y=here[1] + down,
                    text_anchor="start" if beside > 0 else "end",
                    class_=f"label {one.kind}",
                )
            )
    for one in drawn_of:
        for x, y, _ in one.points:
            parts.append(_mark(one, x_of(x), y_of(y)))
    return tag("svg", *parts, class_="chart", height=height, role="img", aria_label=label)


_Box = tuple[float, float, float, float]  # left, right, top, bottom in pixels


def _room(
    here: tuple[float, float],
    words: str,
    needed: bool,
    taken: Sequence[_Box],
    lines: Sequence[tuple[float, float]],
) -> tuple[int, int, _Box] | None:
    """Where words beside a point cover neither other words nor a point: right or left, and how far below.

    Of several places the one where least of a line is covered. None where there is no such place, unless the
    words are needed.
    """
    below = ((1, 18), (-1, 18), (1, -6), (-1, -6))
    places = []
    for beside, down in below if needed else (*below[2:], *below[:2]):
        end = here[0] + beside * (9 + _LETTER * len(words))
        start = here[0] + beside * 6
        box = min(start, end), max(start, end), here[1] + down - 12, here[1] + down + 3
        covers = any(
            box[0] < right and left < box[1] and box[2] < bottom and top < box[3]
            for left, right, top, bottom in taken
        )
        if box[0] >= 0 and box[1] <= _WIDE:
            places.append((covers, beside, down, box))
    free = [place[1:] for place in places if not place[0]]
    if not free:
        return places[0][1:] if needed and places else None

    def covered(place: tuple[int, int, _Box]) -> int:
        left, right, top, bottom = place[2]
        return sum(left < x < right and top < y < bottom for x, y in lines)

    return min(free, key=covered)


def _mark(one: Series, x: str, y: float) -> Markup:
    if one.mark == "circle":
        return tag("circle", cx=x, cy=y, r="4.5", class_=f"mark {one.kind}")
    size = 8 if one.mark == "square" else 11
    inner = tag(
        "rect",
        x=-size / 2,
        y=-size / 2,
        width=size,
        height=size,
        class_=f"mark {one.kind}",
        **({"transform": "rotate(45)"} if one.mark == "diamond" else {}),
    )
    return tag("svg", inner, x=x, y=y, overflow="visible", class_="spot")


def pattern_key() -> Markup:
    """Hatching and dots of memory and network: colour alone never says what a bar is."""
    hatch = tag(
        "pattern",
        tag("rect", width="6", height="6", class_="plain-memory"),
        tag("line", x1="0", y1="0", x2="0", y2="6", class_="hatch"),
        id="hatch",
        width="6",
        height="6",
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    )
    dots = tag(
        "pattern",
        tag("rect", width="6", height="6", class_="plain-network"),
        tag("circle", cx="2", cy="2", r="1", class_="dots"),
        id="dots",
        width="6",
        height="6",
        patternUnits="userSpaceOnUse",
    )
    return tag("svg", tag("defs", hatch, dots), class_="patterns", width="0", height="0", aria_hidden="true")
