"""What a deployment looks like: machines, the links between them, and which link is the busiest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from mantile.equations.forward import Pass
from mantile.equations.tables import Equations
from mantile.equations.topology import BUSIEST, traffic
from mantile.equations.workers import Workers
from mantile.estimates.estimate import Estimate
from mantile.estimates.results import of_devices, of_links
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Node
from mantile.library.device import STAR

STATED, INFERRED, UNUSED = "stated", "inferred", "unused"
"""States of a link, beside the busiest; one that is inferred may be the busiest, and `inferred` says so."""
NETWORK = "network"
"""The box through which machines of a system reach one another."""


def topology(estimate: Estimate, column: int, sides: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Boxes and links of one scenario, as `mantile estimate --plan --svg` draws them.

    Args:
        sides: what accelerators hold, as `plan` gives it; empty where devices are not alike.

    Returns:
        boxes: id, title, lines below it, pipeline stage, accelerators with number and stage;
        links: from and to (a box may be linked to itself: its accelerators), label, GB/s, latency in us, ms
            of a prefill, state, and whether it is inferred. A figure that nobody knows is None.

    Example:
        mantile.plan(estimate)["topology"]["links"][0]["state"]
    """
    values, graph = estimate.values(column), estimate.equations
    if graph.devices is not None:
        return _of_devices(of_devices(graph.devices, values), of_links(graph.devices, values))
    boxes: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    for workers, side in zip(graph.workers, sides, strict=True):
        prefills = workers is graph.prefill_workers
        times = _times(estimate, column, workers, graph.prefill if prefills else graph.decode)
        own, between = _of_side(graph.rows, workers, side, times, values)
        boxes += own
        links += between
    if len(sides) > 1:
        links.append(_transfer(estimate, values, boxes))
    _mark_busiest(links)
    return {"boxes": boxes, "links": links}


def _of_devices(
    devices: Sequence[Mapping[str, Any]], stated: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A box for each device, a link from each to the next; and as `links` of a scenario states others."""
    boxes: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    stage = 0
    for device in devices:
        which = device["which_layers"]
        count = f"{device['accelerators']} × " if device["accelerators"] > 1 else ""
        used, usable = (device[f"memory_{name}_bytes"] / 1e9 for name in ("used", "usable"))
        boxes.append(
            {
                "id": f"device{device['number']}",
                "title": f"{count}{device['name']}",
                "lines": [
                    f"layers {which[0]} – {which[1]}" if which else "no layers",
                    f"{device['memory_bandwidth_bytes_per_s'] / 1e9:,.0f} GB/s · "
                    f"{used:,.1f} of {usable:,.1f} GB",
                ],
                "stage": stage if which else None,
                "accelerators": [],
            }
        )
        stage += 1 if which else 0
    for device, following in pairwise(devices):
        link = device["link"]
        ends = {"from": f"device{device['number']}", "to": f"device{following['number']}"}
        links.append(ends | _device_link(link))
    others = [] if stated is None else stated["others"]
    links += [
        {"from": f"device{one['devices'][0]}", "to": f"device{one['devices'][1]}"} | _device_link(one)
        for one in others
    ]
    if stated is not None and stated["preset"] == STAR:
        boxes.append({"id": NETWORK, "title": "switch", "lines": [], "stage": None, "accelerators": []})
        links = [_to_switch(box["id"], links) for box in boxes[:-1]]
    return {"boxes": boxes, "links": links}


def _to_switch(device: str, links: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The cable of a device to the switch: what it reaches the fastest of the others by."""
    own = [link for link in links if device in (link["from"], link["to"])]
    best = max(own, key=lambda link: link["gb_per_s"] or 0)
    sent = [link["prefill_ms"] for link in own if link["prefill_ms"] is not None]
    states = {link["state"] for link in own}
    state = next(one for one in (BUSIEST, STATED, INFERRED, UNUSED) if one in states)
    ends = {"from": device, "to": NETWORK, "prefill_ms": sum(sent) if sent else None, "state": state}
    return {**best, **ends, "inferred": all(link["inferred"] for link in own)}


def _device_link(link: Mapping[str, Any] | None) -> dict[str, Any]:
    if link is None:
        return _link("no link", None, None, None, inferred=False, state=UNUSED)
    state = UNUSED if not link["used"] else INFERRED if link["inferred"] else STATED
    return _link(
        link["kind"],
        link["bandwidth_bytes_per_s"],
        link["latency_s"],
        link["prefill_s"] if link["used"] else None,
        inferred=link["inferred"],
        state=BUSIEST if link["busiest"] else state,
    )


def _of_side(
    rows: Equations,
    workers: Workers,
    side: Mapping[str, Any],
    times: tuple[float | None, float | None],
    values: Mapping[Node, Any],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A box for each domain of a system with its accelerators, and the network that joins domains.

    Args:
        times: of messages inside domains and between them, in seconds.
    """
    of, role = workers.rows, side["role"]
    start = "" if role == "all" else f"{role}."
    words = "" if role == "all" else f"{role}, "
    used = [one for one in side["accelerators"] if one["in_use"]]
    domains = sorted({int(one["domain"]) for one in used})
    inside, outside = times
    boxes, links = [], []
    for domain in domains:
        here = [one for one in used if int(one["domain"]) == domain]
        boxes.append(
            {
                "id": f"{start}domain{domain}",
                "title": f"{words}domain {domain}" if len(domains) > 1 else f"{words}{side['system']}",
                "lines": [
                    f"{len(here)} × {values[of['hardware.name']]}",
                    f"{float(values[of['hardware.memory_bandwidth']]) / 1e9:,.0f} GB/s · "
                    f"{max(one['used_gb'] for one in here):,.1f} of {side['memory_capacity_gb']:,.1f} GB",
                ],
                "stage": None,
                "accelerators": [{"number": int(one["number"]), "stage": int(one["stage"])} for one in here],
            }
        )
        if len(here) > 1:
            rate = float(values[of["hardware.link_bandwidth"]])
            ends = {"from": f"{start}domain{domain}", "to": f"{start}domain{domain}"}
            label = str(values[of["hardware.link"]])
            links.append(ends | _link(label, rate or None, None, inside, state=STATED if inside else UNUSED))
    if len(domains) > 1:
        out = float(values[rows[f"{workers.prefix}network.out"]])
        boxes.append(
            {"id": f"{start}{NETWORK}", "title": NETWORK, "lines": [], "stage": None, "accelerators": []}
        )
        links += [
            {"from": f"{start}domain{domain}", "to": f"{start}{NETWORK}"}
            | _link("network", out or None, None, outside, state=STATED if outside else UNUSED)
            for domain in domains
        ]
    return boxes, links


def _times(
    estimate: Estimate, column: int, workers: Workers, work: Pass
) -> tuple[float | None, float | None]:
    """Seconds that a pass sends inside domains, and between them; None for none."""
    found = traffic(estimate.equations.rows, workers, work, "plan.topology")
    values = Program([found.inside, found.outside]).run(estimate.inputs(column))
    inside, outside = (float(values[figure]) / 1e3 for figure in (found.inside, found.outside))
    return inside or None, outside or None


def _transfer(
    estimate: Estimate, values: Mapping[Node, Any], boxes: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The way of the KV cache from prefill to decode workers."""
    figures = estimate.equations.figures
    rate, by_network, latency, time = (
        values[figures[f"serving.transfer_{name}"]] for name in ("bandwidth", "network", "latency", "time")
    )
    ends = {
        "from": next(box["id"] for box in boxes if box["id"].startswith("prefill.")),
        "to": next(box["id"] for box in boxes if box["id"].startswith("decode.")),
    }
    if not rate > 0:
        return ends | _link("no link", None, None, None, inferred=False, state=UNUSED)
    known = figures.get("serving.transfer_known")
    is_stated = known is not None and float(values[known]) * 1e9 != float(rate)
    inferred = not is_stated and not by_network >= rate
    way = "as stated" if is_stated else "by ports" if inferred else "by network"
    return ends | _link(
        f"KV cache, {way}",
        float(rate),
        float(latency),
        float(time),
        inferred=inferred,
        state=INFERRED if inferred else STATED,
    )


def _link(
    label: str,
    rate: float | None,
    latency: float | None,
    seconds: float | None,
    *,
    inferred: bool = False,
    state: str = STATED,
) -> dict[str, Any]:
    return {
        "label": label,
        "gb_per_s": None if rate is None else rate / 1e9,
        "latency_us": None if latency is None else latency * 1e6,
        "prefill_ms": None if seconds is None else seconds * 1e3,
        "inferred": inferred,
        "state": state,
    }


def _mark_busiest(links: Sequence[dict[str, Any]]) -> None:
    """The links over which a prefill sends longest."""
    longest = max((link["prefill_ms"] or 0 for link in links), default=0)
    for link in links:
        if longest > 0 and link["prefill_ms"] == longest:
            link["state"] = BUSIEST
