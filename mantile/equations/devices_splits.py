"""Other ways to split layers over devices that are not alike; what a step would take stands in devices.eq."""

from __future__ import annotations

from mantile.equations.devices import SPLIT_WORDS, Devices
from mantile.equations.workers import Workers
from mantile.graph.quantity import Section
from mantile.graph.rewrite import GraphRewrite

TITLE = "Other ways to split layers"


def other_splits(base: Workers, devices: Devices) -> Section:
    """What other ways to split layers would give, at the batch as it is now."""
    rows, stages, found = base.rows.rows, base.plan.stages, []
    listed = tuple(stages.section.figures())
    for way, words in SPLIT_WORDS.items():
        split = {device.layers: rows[f"{device.prefix}{way}"] for device in devices.devices}
        again = GraphRewrite(split, (), f"devices.other.{way}.", f", split {words}", listed)
        for place, _ in enumerate(devices.devices):
            again.rewrite((stages.before[place], *(layers[place] for layers in stages.layers.values())))
            for end in (f"plan.first.{place}", f"plan.last.{place}"):
                rows.know_as(f"devices.other.{way}.{end}", again.rewrite(rows[end]))
        rows.know(*again.made(listed))
        found.append(again.made(listed))
    ways = rows.sections("devices", TITLE)
    figures = (row for made, way in zip((*found, ()), ways, strict=True) for row in (*made, *way.rows))
    return Section(TITLE, tuple(figures), ways[0].note)
