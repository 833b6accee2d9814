"""The view `Decide`: what must be rented for these users, this speed and this money."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mantile.equations.measures import measure
from mantile.equations.metrics import (
    INTERACTIVITY,
    TPOT,
    TTFT,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MONTH,
)
from mantile.library.errors import InputError
from mantile.library.profiles import load_library
from mantile.library.typed_numbers import plain_number
from mantile.search.objective import Limit
from mantile.search.question import at_most
from mantile.search.search import NOT_KNOWN_CODE
from mantile.server.documents import in_fields
from mantile.server.page import charts
from mantile.server.page.form import FormField
from mantile.server.page.run import at
from mantile.server.page.state import DEGREES, GPUS, State, elsewhere
from mantile.server.page.text import headline, percent, scaled

LIMITS = (
    ("ttft", "ttft_s", "Time to first token, mean", "ms", 1e-3),
    ("tpot", "tpot_s", "Time per output token", "ms", 1e-3),
    ("budget", "usd_per_hour", "Budget", "USD/h", 1.0),
)
"""Limits of the form: name, measure, label, unit as it is typed, and that in the unit of the measure."""
_TYPED = {"users": "64", "ttft": "700", "tpot": "60", "budget": "25", "most": "8", "chips": "all"}
_UNTYPED = {"ttft": "p95 of 10 s, more for long prompts", "tpot": "no limit", "budget": "no limit"}
_MEANINGS = {
    "minimum": "the fewest accelerators that keep every limit",
    "good": "the cheapest with something to spare of every limit",
    "best": "the fastest within the budget",
}
_POINTS = 40


@dataclass
class Target:
    """What is asked of `Decide`, as it was typed.

    Args:
        typed: texts by field.
        errors: what is wrong, by field.
    """

    typed: dict[str, str]
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def users(self) -> int:
        """Requests at once."""
        return int(self._number("users", 1, 1_000_000, whole=True) or 1)

    @property
    def most(self) -> int:
        """Accelerators of a build."""
        return int(self._number("most", 1, 256, whole=True) or 8)

    @property
    def limits(self) -> dict[str, float]:
        """Bounds in SI units by measure."""
        found = {}
        for name, key, _, _, size in LIMITS:
            value = self._number(name, 1e-9, 1e12)
            if value is not None:
                found[key] = value * size
        return found

    @property
    def over(self) -> dict[str, list[str]]:
        """Accelerators to choose from."""
        chips, library = self.typed["chips"], load_library()
        if chips == "all":
            return {}
        if chips.startswith("maker:"):
            maker = chips.removeprefix("maker:")
            names = [chip.id for chip in library.accelerators if chip.vendor == maker]
        else:
            names = [chip.id for chip in library.accelerators if chip.id == chips]
        if not names:
            self.errors["chips"] = "expected one of the list"
        return {"accelerator": names}

    def _number(self, name: str, least: float, most: float, whole: bool = False) -> float | None:
        text = self.typed[name].strip()
        if not text:
            return None
        try:
            value = float(plain_number(text))
        except InputError as error:
            self.errors[name] = str(error)
            return None
        except ValueError:
            self.errors[name] = f"expected a number (found {text[:20]!r})"
            return None
        if not least <= value <= most or (whole and value % 1):
            kind = "a whole number" if whole else "a number"
            self.errors[name] = f"expected {kind} from {least:g} to {most:,.0f}"
            return None
        return value


def target_of(query: Mapping[str, str]) -> Target:
    """What was typed; what is usual where nobody typed."""
    return Target({name: query.get(name, usual) for name, usual in _TYPED.items()})


def fields(target: Target) -> dict[str, FormField]:
    """The fields of the form that are no fields of a scenario."""
    library = load_library()
    makers = dict.fromkeys(chip.vendor for chip in library.accelerators)
    chips = (
        ("all", "any of the library"),
        *((f"maker:{maker}", f"all of {maker}") for maker in makers),
        *((chip.id, chip.id) for chip in library.accelerators),
    )

    def one(name: str, label: str, unit: str = "", options: Any = ()) -> FormField:
        return FormField(
            name,
            label,
            target.typed[name],
            "" if target.typed[name].strip() else _UNTYPED.get(name, ""),
            "",
            unit,
            options,
            error=target.errors.get(name, ""),
            whole=name in ("users", "most"),
        )

    listed = {"users": one("users", "Users at once")}
    listed |= {name: one(name, label, unit) for name, _, label, unit, _ in LIMITS}
    listed["most"] = one("most", "GPUs, at most")
    listed["chips"] = one("chips", "Accelerators", options=chips)
    return listed


def run_of(state: State, plan: Mapping[str, Any], users: int) -> State:
    """The run of a build."""
    chosen = {key: value for key, value in plan.items() if key not in DEGREES}
    own = elsewhere(state.fields)
    kept = {key: value for key, value in own.items() if key not in ("system", GPUS, *chosen)}
    return State({**kept, **chosen, "concurrency": users}, state.pins).by_hand(plan)


def decision(found: Mapping[str, Any], state: State, target: Target) -> dict[str, Any]:
    """Tiers, the picture of all plans, what is needed of every accelerator, and ways out."""
    tiers = [_tier(name, tier, state, target) for name, tier in found["tiers"].items() if tier["plan"]]
    merged: list[dict[str, Any]] = []
    for tier in tiers:
        same = next((one for one in merged if one["link"] == tier["link"]), None)
        if same is None:
            merged.append(tier)
        else:
            same["names"] += tier["names"]
            same["reasons"] += tier["reasons"]
    miss = found["nearest_miss"]
    none = (
        []
        if not merged
        else [
            {"name": name, "reason": tier["reason"]}
            for name, tier in found["tiers"].items()
            if not tier["plan"]
        ]
    )
    return {
        "title": _title(found, merged, target),
        "lead": f"{found['feasible']:,} of {found['tried']:,} plans that were tried keep every limit; "
        f"{at_most(found['cap']['gpus_max'])} each.{_by_default(found['default_limits'])}",
        "tiers": merged,
        "none": none,
        "picture": _picture(found, target),
        "chips": [
            _chip(chip, state, target)
            | {"why": in_fields(found["asked_accelerators"].get(chip["accelerator"], {}).get("why", ""))}
            for chip in _ordered(found["accelerators"])
        ],
        "ways": [
            {
                "words": f"{way['change'].replace('_', ' ')}: {way['value']}",
                "link": run_of(state, way["plan"], target.users).link(),
            }
            for way in found["ways"]
        ],
        "memory": None
        if found["minimum_memory_bytes"] is None
        else scaled(found["minimum_memory_bytes"], "B"),
        "miss": "" if miss is None else run_of(state, miss["plan"], target.users).link(),
    }


def _by_default(limits: Mapping[str, float]) -> str:
    """The limits that hold though nobody typed them, in words."""
    told = [Limit(measure(key), bound).words for key, bound in limits.items()]
    return f" {told[0]} by default, as no time to first token is typed." if told else ""


def _title(found: Mapping[str, Any], tiers: list[dict[str, Any]], target: Target) -> str:
    users = f"{target.users:,} users"
    if not tiers:
        miss = found["nearest_miss"]
        if miss is None:
            return f"Nothing that was looked at serves {users}"
        limit, beyond = measure(miss["limit"]).metric.label, percent(miss["beyond"])
        return f"Nothing keeps every limit for {users}: the nearest misses {limit} by {beyond}"
    first = tiers[0]
    return f"{first['label']} serves {users} for {first['hour']}"


def _tier(name: str, tier: Mapping[str, Any], state: State, target: Target) -> dict[str, Any]:
    results = tier["metrics"]
    run = run_of(state, tier["plan"], target.users)
    bands = results["range_80"]

    def line(metric: Any, band: str) -> tuple[str, str, str]:
        ends = bands.get(band, {})
        known = ends.get("p10") is not None
        words = (
            f"{headline(metric, ends['p10']).split()[0]} to {headline(metric, ends['p90'])}" if known else ""
        )
        return metric.label, headline(metric, at(results, metric.key)), words

    return {
        "names": [name],
        "reasons": [(name, _MEANINGS[name], tier["reason"])],
        "label": f"{tier['accelerators']} × {tier['label'].split(' · ')[0]}",
        "whole": tier["label"],
        "hour": headline(USD_PER_HOUR, tier["usd_per_hour"]),
        "month": headline(USD_PER_MONTH, at(results, USD_PER_MONTH.key)),
        "rows": [
            line(TTFT, "ttft"),
            line(TPOT, "tpot"),
            (INTERACTIVITY.label, headline(INTERACTIVITY, at(results, INTERACTIVITY.key)), ""),
            (
                USD_PER_MILLION_OUTPUT_TOKENS.label,
                USD_PER_MILLION_OUTPUT_TOKENS.text(at(results, USD_PER_MILLION_OUTPUT_TOKENS.key)),
                "",
            ),
        ],
        "link": run.link(),
        "pin": run.pinned().link("/compare"),
        "run": run,
    }


def _ordered(chips: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(
        chips,
        key=lambda chip: (
            chip["accelerators"] is None,
            chip["usd_per_hour"] is None,
            chip["usd_per_hour"] or 0.0,
            chip["beyond"] if chip["beyond"] is not None else 1e9,
        ),
    )


def _chip(chip: Mapping[str, Any], state: State, target: Target) -> dict[str, str]:
    meets = chip["accelerators"] is not None
    said = (
        "✓ keeps every limit"
        if meets
        else f"✕ misses by {percent(chip['beyond'])}"
        if chip["beyond"] is not None
        else "? USD/h not known: keeps the other limits"
        if chip["code"] == NOT_KNOWN_CODE
        else "✕"
    )
    return {
        "name": chip["name"],
        "count": f"{chip['accelerators']}" if meets else "–",
        "hour": headline(USD_PER_HOUR, chip["usd_per_hour"]) if meets else "–",
        "said": said,
        "code": "" if chip["code"] == NOT_KNOWN_CODE else chip["code"] or "",
        "link": run_of(state, chip["plan"], target.users).link() if chip["plan"] else "",
    }


def _picture(found: Mapping[str, Any], target: Target) -> dict[str, Any] | None:
    """USD per hour against TPOT: the best plan of each accelerator and count, tiers marked."""
    best: dict[tuple[str, int], Mapping[str, Any]] = {}
    for row in found["plans"]:
        if not row["usd_per_hour"] or not row["tpot_s"] or row["usd_per_hour"] != row["usd_per_hour"]:
            continue
        key = row["plan"]["accelerator"], int(row["accelerators_used"])
        if key not in best or row["tpot_s"] < best[key]["tpot_s"]:
            best[key] = row
    bound = {name: size for name, _, _, _, size in LIMITS}
    limits = target.limits
    most = limits.get("usd_per_hour", 0.0) * 1.6 or None
    slow = limits.get("tpot_s", 0.0) * 2.2 or None
    rows = [
        row
        for row in best.values()
        if (most is None or row["usd_per_hour"] <= most) and (slow is None or row["tpot_s"] <= slow)
    ]
    rows = sorted(rows, key=lambda row: (row["usd_per_hour"], row["tpot_s"]))
    front, lowest = [], float("inf")
    for row in rows:
        if row["tpot_s"] < lowest:
            front.append(row)
            lowest = row["tpot_s"]
    if not rows:
        return None

    def point(row: Mapping[str, Any], words: bool) -> tuple[float, float, str]:
        name = f"{int(row['accelerators_used'])} × {row['name'].split(' · ')[0]}"
        return float(row["usd_per_hour"]), float(row["tpot_s"]) / bound["tpot"], name if words else ""

    beaten = [row for row in rows if row not in front][:_POINTS]
    tiers: dict[tuple[float, float], str] = {}
    for name, tier in found["tiers"].items():
        if tier["plan"] and tier["metrics"]["usd_per_hour"] is not None:
            place = tier["metrics"]["usd_per_hour"], tier["metrics"]["tpot_s"]
            tiers[place] = f"{tiers[place]}, {name}" if place in tiers else name
    series = [
        charts.Series("beaten", [point(row, False) for row in beaten], joined=False),
        charts.Series("front", [point(row, True) for row in front]),
        charts.Series(
            "tier",
            [(float(usd), float(tpot) / bound["tpot"], name) for (usd, tpot), name in tiers.items()],
            joined=False,
            mark="diamond",
        ),
    ]
    title = "Cost against speed: the best plan of each accelerator and count"
    tpot = limits.get("tpot_s")
    return {
        "title": title,
        "chart": charts.chart(
            series,
            "USD per hour",
            "time per output token, ms",
            f"{title}.",
            340,
            (limits.get("usd_per_hour"), None if tpot is None else tpot / bound["tpot"]),
        ),
        "rows": [
            (point(row, True)[2], headline(USD_PER_HOUR, row["usd_per_hour"]), headline(TPOT, row["tpot_s"]))
            for row in front
        ],
    }
