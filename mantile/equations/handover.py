"""What a prompt hands over to a decode worker, for the text: caches, and ports that machines share."""

from __future__ import annotations

from mantile.equations.link import LinkTable, know_links, way
from mantile.equations.tables import Equations, Space
from mantile.equations.workers import Workers
from mantile.ir.modules import FULL

LINK = "serving.transfer_link"


def hand_over(rows: Equations, prefill_workers: Workers, decode_workers: Workers, table: LinkTable) -> None:
    """Name the caches of a prompt that follow it, and the way by ports of both machines.

    Args:
        table: of links, for machines whose systems state no network.
    """
    limits: dict[str, Space] = {}
    caches = []
    for cache in prefill_workers.memory.caches.growing:
        module = cache.module
        if module.layers is None:
            continue
        reach = getattr(module.operation, "span", FULL)
        limit = reach.length if reach.kind in ("sliding", "chunked") else None
        name = "" if limit is None else limit.id.removeprefix("model.")
        tokens = f"transfer_tokens{'.' * bool(name)}{name}"
        words = "" if limit is None else limit.label.lower()
        facts = {"limit": name, "words": words}
        limits.setdefault(name, Space(facts=facts, features=frozenset({"limited" if name else "unlimited"})))
        at = f"handed.{module.id}"
        rows.know_as(f"{at}.width", cache.channels)
        rows.know_as(f"{at}.kept", prefill_workers.formats.kept_bytes(module.operation))
        rows.know_as(f"{at}.layers", module.layers)
        facts = {"m": module.id, "name": module.label, "tokens": tokens, "handed": at}
        caches.append(Space(facts=facts))
    rows.make_in("handed_tokens", *limits.values())
    rows.make_in("handed", *caches)
    know_links(rows, table, prefill_workers.hardware.accelerators)
    rows.make_in("way", way(LINK, "", prefill_workers.prefix, decode_workers.prefix))
    of_way = [row for section in rows.sections("link", prefix=f"{LINK}.") for row in section.figures()]
    rows.make_in("ports", *(Space(facts={"row": row.id.removeprefix("serving.")}) for row in of_way))
