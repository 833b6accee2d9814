"""The picture of a plan: boxes and links as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Any
from xml.etree import ElementTree

from mantile.equations.topology import BUSIEST
from mantile.estimates.topology import INFERRED, NETWORK, STATED, UNUSED

WIDE, HIGH, ACROSS, DOWN, EDGE, HEAD = 230, 92, 230, 108, 24, 62
CHIP, PER_ROW = 22, 8
STAGES = ("#DCE8F5", "#D9EFEA", "#FBE7CB", "#E8E2F1")
INK, GREY, NAVY, PANEL, ALERT = "#1B2733", "#5B6875", "#17365D", "#F5F7F9", "#8A5A00"
LINES = {BUSIEST: (ALERT, 6), STATED: ("#36A374", 3), INFERRED: ("#85909B", 2), UNUSED: ("#B8C1C9", 1)}
WORDS = {
    BUSIEST: "busiest link",
    STATED: "link as stated",
    INFERRED: "inferred (dashed)",
    UNUSED: "not used",
}


@dataclass
class _Place:
    """Where a box stands, from its top left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


def svg(plans: Sequence[Mapping[str, Any]], title: str) -> str:
    """The topologies of plans, one below the other, as an SVG document.

    Args:
        plans: as `mantile estimate --plan --json` prints them.

    Example: svg([mantile.plan(estimate)], estimate.title)
    """
    pictures = [_places(plan["topology"]["boxes"], _leads_elsewhere(plan["topology"])) for plan in plans]
    width = max([picture[1] for picture in pictures] + [720])
    height = sum(picture[2] + HEAD for picture in pictures) + 40
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width:g} {height:g}",
            "width": f"{width:g}",
            "height": f"{height:g}",
            "font-family": "Calibri, Carlito, Arial, sans-serif",
        },
    )
    ElementTree.SubElement(root, "title").text = title
    ElementTree.SubElement(root, "rect", width="100%", height="100%", fill="#FFFFFF")
    top = 0.0
    for plan, (places, _, high) in zip(plans, pictures, strict=True):
        _text(root, EDGE, top + 28, f"{title}, {plan['name']}", 17, NAVY, bold=True, anchor="start")
        _text(root, EDGE, top + 48, _finding(plan), 12.5, GREY, anchor="start")
        for place in places.values():
            place.y += top + HEAD
        _draw(root, plan["topology"], places)
        top += HEAD + high
    _key(root, height - 20)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _leads_elsewhere(shown: Mapping[str, Any]) -> bool:
    """Whether a link leads to another device than the next, or to a switch."""
    order = [box["id"] for box in shown["boxes"]]
    return any(
        link["from"] != link["to"] and order.index(link["to"]) != order.index(link["from"]) + 1
        for link in shown["links"]
    )


def _finding(plan: Mapping[str, Any]) -> str:
    busiest = next((link for link in plan["topology"]["links"] if link["state"] == BUSIEST), None)
    words = plan["feasibility"].replace("_", " ")
    if busiest is None:
        return f"{words}; no link is used"
    named = f"{_rate(busiest)}{', inferred' if busiest['inferred'] else ''}"
    return f"{words}; the busiest link is {named}: {busiest['prefill_ms']:,.3g} ms of a prefill"


def _rate(link: Mapping[str, Any]) -> str:
    if link["gb_per_s"] is None:
        return f"{link['label']}, bandwidth not known" if link["label"] != "no link" else "no link"
    label = "" if link["label"] == INFERRED else f"{link['label']} · "
    return f"{label}{link['gb_per_s']:,.4g} GB/s"


def _places(boxes: Sequence[Mapping[str, Any]], circle: bool) -> tuple[dict[str, _Place], float, float]:
    """Where boxes stand, and the width and height of the picture.

    Devices go to the right in a first row and back in a second, so that each stands beside the next; domains
    stand in rows of up to four with their network below.

    Args:
        circle: whether devices stand around their links, as some lead to others than the next.
    """
    if any(box["accelerators"] for box in boxes):
        return _domains(boxes)
    if circle:
        return _circle(boxes)
    columns = len(boxes) if len(boxes) < 4 else (len(boxes) + 1) // 2
    places = {}
    for number, box in enumerate(boxes):
        row = int(number >= columns)
        column = number if not row else 2 * columns - 1 - number
        x, y = EDGE + column * (WIDE + ACROSS), row * (HIGH + DOWN)
        places[box["id"]] = _Place(x, y, WIDE, HIGH)
    rows = 1 + (len(boxes) > columns)
    return places, 2 * EDGE + columns * WIDE + (columns - 1) * ACROSS, rows * (HIGH + DOWN) - DOWN + 36


def _circle(boxes: Sequence[Mapping[str, Any]]) -> tuple[dict[str, _Place], float, float]:
    """Devices on an ellipse, the first at the top left, with a switch in the middle."""
    around = [box for box in boxes if box["id"] != NETWORK]
    across, down = 150 + 85 * len(around), 70 + 50 * len(around)
    places = {}
    for number, box in enumerate(around):
        angle = 2 * pi * (number - 0.5) / len(around) - pi / 2 if len(around) > 3 else _TRIANGLE[number]
        x, y = across * cos(angle), down * sin(angle)
        places[box["id"]] = _Place(EDGE + across + x, down + y, WIDE, HIGH)
    for box in boxes:
        if box["id"] == NETWORK:
            places[box["id"]] = _Place(EDGE + across + WIDE / 2 - 50, down + HIGH / 2 - 13, 100, 26)
    left = min(place.x for place in places.values()) - EDGE
    top = min(place.y for place in places.values())
    for place in places.values():
        place.x, place.y = place.x - left, place.y - top
    width = max(place.x + place.width for place in places.values()) + EDGE
    return places, width, max(place.y + place.height for place in places.values()) + 36


_TRIANGLE = (-5 * pi / 6, -pi / 6, pi / 2)  # three devices, and two


def _domains(boxes: Sequence[Mapping[str, Any]]) -> tuple[dict[str, _Place], float, float]:
    places: dict[str, _Place] = {}
    y, width = 0.0, 0.0
    for side in dict.fromkeys(box["id"].rpartition(".")[0] for box in boxes):
        own = [box for box in boxes if box["id"].rpartition(".")[0] == side]
        domains = [box for box in own if box["accelerators"]]
        for start in range(0, len(domains), 4):
            row = domains[start : start + 4]
            high = max(_height(box) for box in row)
            for column, box in enumerate(row):
                places[box["id"]] = _Place(EDGE + column * (WIDE + 40), y, WIDE, high)
            width = max(width, 2 * EDGE + len(row) * (WIDE + 40) - 40)
            y += high + 52
        for box in own:
            if not box["accelerators"]:
                places[box["id"]] = _Place(EDGE, y, min(4, len(domains)) * (WIDE + 40) - 40, 26)
                y += 26 + 52
        y += 20
    return places, width, y - 40


def _height(box: Mapping[str, Any]) -> float:
    rows = -(-len(box["accelerators"]) // PER_ROW)
    return HIGH + rows * (CHIP + 4) + 22


def _draw(root: ElementTree.Element, shown: Mapping[str, Any], places: Mapping[str, _Place]) -> None:
    inside = {link["from"]: link for link in shown["links"] if link["from"] == link["to"]}
    between = [link for link in shown["links"] if link["from"] != link["to"]]
    slanted = not inside and _leads_elsewhere(shown)
    for link in between:
        _join(root, link, places[link["from"]], places[link["to"]], slanted)
    for link in between if slanted else ():
        _beside(root, link, places[link["from"]], places[link["to"]])
    for box in shown["boxes"]:
        _box(root, box, places[box["id"]], inside.get(box["id"]))


def _box(
    root: ElementTree.Element, box: Mapping[str, Any], place: _Place, link: Mapping[str, Any] | None
) -> None:
    fill = PANEL if box["stage"] is None else STAGES[box["stage"] % len(STAGES)]
    _shape(root, place.x, place.y, place.width, place.height, fill)
    middle = place.middle[0]
    if box["id"].endswith(NETWORK):
        _text(root, middle, place.y + 18, box["title"], 12, INK)
        return
    _text(root, middle, place.y + 24, box["title"], 14, NAVY, bold=True)
    for number, line in enumerate(box["lines"]):
        _text(root, middle, place.y + 48 + 20 * number, line, 12.5, INK)
    for number, chip in enumerate(box["accelerators"]):
        row, column = divmod(number, PER_ROW)
        x, y = place.x + 13 + column * (CHIP + 4), place.y + HIGH + row * (CHIP + 4)
        _shape(root, x, y, CHIP, CHIP, STAGES[chip["stage"] % len(STAGES)])
        _text(root, x + CHIP / 2, y + 15, str(chip["number"]), 10, INK)
    if link is not None:
        _stroke(root, link, [(place.x + 13, y + CHIP + 7), (place.x + place.width - 13, y + CHIP + 7)])
        _text(root, middle, y + CHIP + 21, _rate(link), 11, ALERT if link["state"] == BUSIEST else GREY)


def _beside(root: ElementTree.Element, link: Mapping[str, Any], one: _Place, other: _Place) -> None:
    """Figures of a slanted link on a white ground, off its middle, where links cross."""
    (x, y), (to_x, to_y) = one.middle, other.middle
    share = 0.5 if other.height < HIGH or min(abs(to_y - y), abs(to_x - x)) < 1 else 0.3
    at_x, at_y = x + (to_x - x) * share, y + (to_y - y) * share
    lines = [(_rate(link), 12.0, True)]
    if link["state"] != UNUSED and link["latency_us"] is not None:
        lines.append((_details(link), 11.0, False))
    width = 6.0 * max(len(words) for words, *_ in lines) + 8
    ground = {"x": f"{at_x - width / 2:g}", "y": f"{at_y - 13:g}", "width": f"{width:g}"}
    ElementTree.SubElement(root, "rect", ground | {"height": f"{16 * len(lines) + 2}", "fill": "#FFFFFF"})
    for number, (words, size, strong) in enumerate(lines):
        colour = ALERT if link["state"] == BUSIEST else INK if strong and link["state"] != UNUSED else GREY
        _text(root, at_x, at_y + number * 16, words, size, colour, bold=strong)


def _join(
    root: ElementTree.Element, link: Mapping[str, Any], one: _Place, other: _Place, slanted: bool = False
) -> None:
    """A link between two boxes, with its figures beside it, unless it is slanted."""
    lines = [(_rate(link), 12.5, True)]
    if link["latency_us"] is not None:
        lines.append((_details(link), 11.5, False))
    elif link["prefill_ms"] is not None:
        lines.append((f"{link['prefill_ms']:,.3g} ms of a prefill", 11.5, False))
    (x, y), (to_x, to_y) = one.middle, other.middle
    if slanted:
        _stroke(root, link, [(x, y), (to_x, to_y)])
        return
    if abs(y - to_y) < 1:
        _stroke(root, link, [(x, y), (to_x, to_y)])
        at_x, at_y, anchor = (x + to_x) / 2, y - 9, "middle"
    else:
        straight = x if abs(x - to_x) < 1 or other.width > WIDE else to_x
        below = other.y if other.y > one.y else other.y + other.height
        _stroke(root, link, [(straight, one.y + one.height if other.y > one.y else one.y), (straight, below)])
        # beside the line, on the side where there is room
        left = one.x > EDGE and one.width == other.width
        at_x, anchor = (straight - 10, "end") if left else (straight + 10, "start")
        at_y = (max(one.y, other.y) + min(one.y + one.height, other.y + other.height)) / 2 - 4
    for number, (words, size, strong) in enumerate(lines):
        colour = ALERT if link["state"] == BUSIEST else INK if strong else GREY
        _text(root, at_x, at_y + number * 25, words, size, colour, bold=strong, anchor=anchor)


def _details(link: Mapping[str, Any]) -> str:
    parts = [f"{link['latency_us']:,.0f} us"]
    if link["inferred"]:
        parts.append("inferred")
    if link["prefill_ms"] is not None:
        parts.append(f"{link['prefill_ms']:,.3g} ms of a prefill")
    return " · ".join(parts)


def _stroke(root: ElementTree.Element, link: Mapping[str, Any], points: list[tuple[float, float]]) -> None:
    colour, width = LINES[link["state"]]
    (x, y), (to_x, to_y) = points
    line = {"x1": f"{x:g}", "y1": f"{y:g}", "x2": f"{to_x:g}", "y2": f"{to_y:g}", "stroke": colour}
    line |= {"stroke-width": str(width), "class": link["state"]}
    ElementTree.SubElement(root, "line", line | ({"stroke-dasharray": "7 5"} if link["inferred"] else {}))


def _shape(root: ElementTree.Element, x: float, y: float, width: float, height: float, fill: str) -> None:
    ElementTree.SubElement(
        root,
        "rect",
        x=f"{x:g}",
        y=f"{y:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        rx="5",
        fill=fill,
        stroke="#85909B",
    )


def _text(
    root: ElementTree.Element,
    x: float,
    y: float,
    words: str,
    size: float,
    colour: str,
    *,
    bold: bool = False,
    anchor: str = "middle",
) -> None:
    look = {"x": f"{x:g}", "y": f"{y:g}", "fill": colour, "font-size": f"{size:g}", "text-anchor": anchor}
    ElementTree.SubElement(root, "text", look | ({"font-weight": "bold"} if bold else {})).text = words


def _key(root: ElementTree.Element, y: float) -> None:
    """What lines mean."""
    for number, (state, words) in enumerate(WORDS.items()):
        x = EDGE + number * 170
        _stroke(root, {"state": state, "inferred": state == INFERRED}, [(x, y), (x + 34, y)])
        _text(root, x + 42, y + 4, words, 12, GREY, anchor="start")
