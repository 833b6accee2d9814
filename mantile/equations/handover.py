"""What a prompt hands over to a decode worker, for the text: caches, and ports that machines share."""

from __future__ import annotations

from mantile.equations.kv_cache import channels_of, layers_of, limit_of, suffix_of
from mantile.equations.link import LinkTable, know_links, way
from mantile.equations.tables import Equations, Space
from mantile.equations.workers import Workers

LINK = "serving.transfer_link"


def hand_over(rows: Equations, prefill_workers: Workers, decode_workers: Workers, table: LinkTable) -> None:
    """Name the caches of a prompt that follow it, and the way by ports of both machines.

    Args:
        table: of links, for machines whose systems state no network.
    """
    caches = []
    for module in prefill_workers.memory.caches:
        at = f"handed.{module.id}"
        rows.know_as(f"{at}.width", channels_of(module))
        rows.know_as(f"{at}.kept", prefill_workers.formats.kept_bytes(module.operation))
        rows.know_as(f"{at}.layers", layers_of(module))
        tokens = f"transfer_tokens{suffix_of(limit_of(module))}"
        facts = {"m": module.id, "name": module.label, "tokens": tokens, "handed": at}
        caches.append(Space(facts=facts))
    rows.make_in("handed", *caches)
    know_links(rows, table)
    rows.make_in("way", way(LINK, "", prefill_workers.prefix, decode_workers.prefix))
    of_way = [row for section in rows.sections("link", prefix=f"{LINK}.") for row in section.figures()]
    rows.make_in("ports", *(Space(facts={"row": row.id.removeprefix("serving.")}) for row in of_way))
