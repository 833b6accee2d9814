"""A deployment drawn: machines with their accelerators and links, as `mantile estimate --plan` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from mantile.equations.display import number_in
from mantile.equations.topology import BUSIEST
from mantile.estimates.plan import plan
from mantile.estimates.topology import NETWORK
from mantile.library.device import link_fields
from mantile.server.page.answers import Answer
from mantile.server.page.charts import at, tag
from mantile.server.page.form import FormField
from mantile.server.page.state import FIGURES, State
from mantile.server.page.text import scaled

_PER_ROW = 8
_MOST_BOXES = 12
_MOST_CHIPS = 72


def placement(found: Answer) -> dict[str, Any]:
    """The picture, its links in words, and the messages of both passes."""
    made = plan(found.estimate)
    shown = made["topology"]
    boxes = [box for box in shown["boxes"] if not box["id"].endswith(NETWORK)]
    inside = {link["from"]: link for link in shown["links"] if link["from"] == link["to"]}
    between = [link for link in shown["links"] if link["from"] != link["to"]]
    busiest = next((link for link in shown["links"] if link["state"] == BUSIEST), None)
    count = sum(len(box["accelerators"]) or 1 for box in boxes)
    title = (
        f"{len(boxes)} domain{'s' if len(boxes) != 1 else ''}, {count} accelerator{'s' if count != 1 else ''}"
    )
    names = {box["id"]: box["title"] for box in shown["boxes"]}
    title += f"; the busiest link is {_busiest(busiest, names)}" if busiest else "; no link is used"
    return {
        "title": title,
        "chart": _drawn(boxes[:_MOST_BOXES], inside, between, f"{title}."),
        "left_out": max(0, len(boxes) - _MOST_BOXES),
        "links": [
            {
                "words": _ends(link, names) or f"inside {names[link['from']]}",
                "rate": _link(link),
                "time": ""
                if link["prefill_ms"] is None
                else f"{link['prefill_ms']:,.3g}\u00a0ms of a prefill",
                "state": ", ".join(
                    dict.fromkeys([link["state"], *(["inferred"] if link["inferred"] else [])])
                ),
            }
            for link in (*inside.values(), *between)
        ],
        "messages": [
            {
                "phase": phase,
                "label": one["label"],
                "bytes": scaled(one["bytes"], "B"),
                "count": f"{one['count']:,.0f}",
                "time": scaled(one["seconds"], "s"),
                "algorithm": one["algorithm"] or "",
                "block": one["message"],
            }
            for phase, messages in made["messages"].items()
            for one in messages
        ],
        "holds": _holds(made["sides"]),
    }


def _ends(link: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """What a link joins; empty where it is inside."""
    return f"{names[link['from']]} – {names[link['to']]}" if link["from"] != link["to"] else ""


def _busiest(link: Mapping[str, Any], names: Mapping[str, str]) -> str:
    ends = _ends(link, names)
    return f"{ends}, {_link(link)}" if ends else _link(link)


def _link(link: Mapping[str, Any]) -> str:
    if link["gb_per_s"] is None:
        return f"{link['label']}, bandwidth not known"
    return f"{link['label']}, {link['gb_per_s']:,.4g}\u00a0GB/s"


def _holds(sides: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """What the accelerators hold, those alike once."""
    rows: dict[tuple[str, ...], list[int]] = {}
    for side in sides:
        for one in side["accelerators"]:
            if not one.get("in_use"):
                continue
            said = (
                str(side["role"]),
                *(
                    scaled(1e9 * one[key], "B")
                    for key in ("weights_gb", "kv_cache_gb", "used_gb")
                    if key in one
                ),
            )
            rows.setdefault(said, []).append(int(one["number"]))
    heads = ("role", "weights", "kv", "used")
    return [
        {"numbers": _numbers(numbers), **dict(zip(heads, said, strict=False))}
        for said, numbers in rows.items()
    ]


def _numbers(numbers: Sequence[int]) -> str:
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers[:12])) + (" …" if len(numbers) > 12 else "")


def _wire(above: str, below: str, links: Sequence[Mapping[str, Any]]) -> str:
    """How the wire between two machines is drawn, by what joins them; empty for nothing."""

    def of_workers(name: str) -> str:
        return name.rpartition(".")[0]

    pair = {above, below}
    joined = [link for link in links if {link["from"], link["to"]} == pair]
    if of_workers(above) != of_workers(below):  # what sends the KV cache, wherever it begins
        ends = {of_workers(one) for one in pair}
        joined = [link for link in links if {of_workers(link["from"]), of_workers(link["to"])} == ends]
    elif not joined:
        reached = [{link["to"] for link in links if link["from"] == one} for one in pair]
        shared = {name for name in reached[0] & reached[1] if name.endswith(NETWORK)}
        joined = [link for link in links if link["from"] in pair and link["to"] in shared]
    return "" if not joined else "busy" if any(link["state"] == BUSIEST for link in joined) else "quiet"


def _drawn(
    boxes: Sequence[Mapping[str, Any]],
    inside: Mapping[str, Any],
    between: Sequence[Mapping[str, Any]],
    label: str,
) -> Markup:
    parts: list[Markup] = []
    y = 2
    for place, box in enumerate(boxes):
        chips = box["accelerators"][:_MOST_CHIPS]
        rows = -(-len(chips) // _PER_ROW)
        height = 62 + 34 * rows + (26 if box["id"] in inside else 0)
        wire = _wire(boxes[place - 1]["id"], box["id"], between) if place else ""
        if wire:
            parts.append(tag("line", x1="50%", x2="50%", y1=y - 12, y2=y, class_=f"wire {wire}"))
        parts.append(tag("rect", x="0.5%", width="99%", y=y, height=height, rx="8", class_="machine"))
        parts.append(tag("text", box["title"], x="3%", y=y + 20, class_="strong"))
        parts.append(tag("text", " · ".join(box["lines"]), x="3%", y=y + 40, class_="axis"))
        for number, chip in enumerate(chips):
            row, column = divmod(number, _PER_ROW)
            left, top = 3 + column * 11.8, y + 52 + 34 * row
            parts.append(
                tag(
                    "rect",
                    x=at(left),
                    width="10.6%",
                    y=top,
                    height=28,
                    rx="4",
                    class_=f"gpu stage{chip['stage'] % 4}",
                )
            )
            parts.append(
                tag(
                    "text",
                    str(chip["number"]),
                    x=at(left + 5.3),
                    y=top + 19,
                    text_anchor="middle",
                    class_="on-gpu",
                )
            )
        link = inside.get(box["id"])
        if link is not None:
            top = y + 56 + 34 * rows
            kind = "busy" if link["state"] == BUSIEST else "quiet"
            parts.append(tag("line", x1="3%", x2="97%", y1=top, y2=top, class_=f"wire {kind}"))
            parts.append(tag("text", _link(link), x="50%", y=top + 17, text_anchor="middle", class_="axis"))
        y += height + 14
    return tag("svg", *parts, class_="topology", height=y, role="img", aria_label=label)


def fields_of_links(found: Answer, state: State) -> list[FormField]:
    """The bandwidths of links, to be typed over."""
    graph, values = found.estimate.equations, found.estimate.values()
    stated = state.fields.get("overrides")
    typed = {
        item.get("id"): item.get("value")
        for item in (stated if isinstance(stated, list) else [])
        if isinstance(item, dict)
    }
    listed = _of_devices(found, state)
    for identifier in FIGURES:
        each = graph.overridable.get(identifier)
        if each is None or identifier not in graph.figures:
            continue
        figure = graph.figures[identifier]
        value = number_in(float(values[figure]), figure.unit, each.cell.unit)
        own = typed.get(identifier)
        listed.append(
            FormField(
                identifier,
                figure.label.removesuffix(" in use"),
                "" if own is None else f"{own}",
                "" if own is not None else f"{value:g}" if value else "none",
                "one way, as the library has it" if own is None else "typed in place of the library's",
                each.cell.unit,
            )
        )
    return listed


def _of_devices(found: Answer, state: State) -> list[FormField]:
    """The bandwidths of links between devices that are listed one by one."""
    devices, listed = state.fields.get("devices"), []
    if not isinstance(devices, list) or isinstance(state.fields.get("links"), Mapping):
        return []
    shown = plan(found.estimate)["topology"]
    names = {box["id"]: box["title"] for box in shown["boxes"]}
    places = {f"device{place}": place for place in range(1, len(devices) + 1)}
    for link in shown["links"]:
        one, other = places.get(link["from"], 0), places.get(link["to"], 0)
        if not 0 < one < other:
            continue
        name = link_fields(one, other)[1]
        own = devices[one - 1].get(name)
        listed.append(
            FormField(
                f"device{one}_{name}",
                f"{one} to {other}: {_ends(link, names)}",
                "" if own is None else f"{own}",
                "" if own is not None or link["gb_per_s"] is None else f"{link['gb_per_s']:g}",
                "one way, as the library has it" if own is None else "typed in place of the library's",
                "GB/s",
            )
        )
    return listed
