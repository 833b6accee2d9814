"""What an estimate says of one scenario, in SI units: the object that `mantile estimate --json` prints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from math import isfinite
from typing import Any

from mantile.equations.checks import FITS, WITH_OFFLOAD
from mantile.equations.classes import Classes
from mantile.equations.correction import version
from mantile.equations.devices import Devices
from mantile.equations.evidence import PERCENTILES, RANGED
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import E2E, TTFT, Metric, metrics_of
from mantile.equations.nearest import DEGREES, HERE, KINDS, TIMES, compared
from mantile.estimates.messages import message
from mantile.graph.quantity import Input, Named, Node
from mantile.library.dates import day_of
from mantile.library.device import AWAY
from mantile.library.runs import NOT_STATED

_OPTIONS = ("buy", "rent", "api")
_DRIVERS = ("rent", "purchase", "electricity", "colocation", "staff")
_BREAK_EVEN = ("buy_against_rent", "rent_against_api", "buy_against_api")
_OF_HOURS = ("requests", "needed", "busy", "calm", "utilisation")
_SHARES = ("p50", "p90", "p95", "p99")
_OF_CLASSES = [f"{time}_{share}" for time in ("ttft", "e2e") for share in _SHARES]
_DAY = "date"  # unit of inputs that are days


def results(graph: EstimateGraph, values: Mapping[Node, Any]) -> dict[str, Any]:
    """Inputs, headline metrics, what limits them, their ranges and the checks that do not hold.

    Args:
        values: of all figures of one scenario.

    Returns:
        numbers in SI units and texts under their keys; None for a figure that nobody knows, and for the
        metrics of a plan that cannot be.
    """
    rows = graph.rows
    return {
        **{name: _plain(figure, values[figure]) for name, figure in graph.inputs.named().items()},
        **_texts(graph, values),
        **_nested(metric_values(graph, values)),
        **_memory(graph, values),
        "fits": bool(values[graph.figures["checks.has_room"]]),
        "split": {
            phase.phase.id: {
                kind: float(values[part]) / float(values[phase.time]) for kind, part in phase.parts.items()
            }
            for phase in (graph.prefill, graph.decode)
        },
        "range_80": _ranges(graph, values),
        "power_range_basis": str(values[rows["evidence.power_basis"]]),
        **({"engine_day": _engine_day(graph, values)} if "drift" in rows.features else {}),
        **({"correction": _corrected(graph, values)} if "correction" in rows.features else {}),
        "nearest_run": _nearest_run(graph, values),
        "checks": {
            "errors": raised(graph, values, errors=True),
            "alerts": raised(graph, values, errors=False),
        },
        **({"sessions": float(values[rows["sessions.told"]])} if "sessions" in rows.features else {}),
        **({} if graph.classes is None else {"classes": _classes(graph, graph.classes, values)}),
        **({} if graph.capacity is None else {"capacity": _capacity(graph, values)}),
        **({} if graph.devices is None else _devices(graph, graph.devices, values)),
    }


def _devices(graph: EstimateGraph, found: Devices, values: Mapping[Node, Any]) -> dict[str, Any]:
    links = of_links(found, values)
    told = {
        "devices": of_devices(found, values),
        "layers_in_words": str(values[graph.rows["devices.words"]]).strip(),
    }
    return told | ({} if links is None else {"links": links})


def of_devices(found: Devices, values: Mapping[Node, Any]) -> list[dict[str, Any]]:
    """What each of devices that are not alike holds and takes, and its link to the next; in SI units.

    A device that a column does not have is left out. Without a next one, or a way to it, `link` is None.
    """
    there = [device for device in found.devices if values[device.inputs.count] > 0]
    listed = []
    for device in there:
        place = device.number - 1
        stages = {phase: stages[place] for phase, stages in found.stages.items()}
        first = int(sum(values[one.layers] for one in found.devices[:place])) + 1
        count = int(values[device.layers])
        listed.append(
            {
                "number": device.number,
                "accelerator": str(values[device.workers.inputs.accelerator]),
                "name": str(values[device.workers.rows["hardware.name"]]),
                "accelerators": int(values[device.inputs.count]),
                "layers": count,
                **{
                    name: int(values[cell])
                    for name in AWAY
                    if (cell := getattr(device.inputs, name)) is not None
                },
                "which_layers": [first, first + count - 1] if count else None,
                "memory_used_bytes": float(values[device.workers.rows["memory.used"]]),
                "memory_usable_bytes": float(values[device.workers.rows["memory.usable"]]),
                "memory_bandwidth_bytes_per_s": float(
                    values[device.workers.rows["hardware.memory_bandwidth"]]
                ),
                "prefill_s": float(values[stages["prefill"].time]),
                "decode_s": float(values[stages["decode"].time]),
                "decode_parts_s": {
                    limit: float(values[part]) for limit, part in stages["decode"].parts.items()
                },
                "link": None if device is there[-1] or device.link is None else _link(found, place, values),
            }
        )
    return listed


def of_links(found: Devices, values: Mapping[Node, Any]) -> dict[str, Any] | None:
    """Which links devices have, and those that do not lead to the next device; in SI units.

    None where a scenario does not say which there are. A link without bandwidth is left out.
    """
    preset = found.devices[0].workers.inputs.links
    if preset is None:
        return None
    count = sum(1 for device in found.devices if values[device.inputs.count] > 0)
    others = [
        {"devices": list(link.ends), **shown}
        for place, link in enumerate(found.links)
        if not link.to_next
        and values[link["laid"]] > 0
        and max(link.ends) <= count
        and (shown := _link(found, place, values)) is not None
    ]
    return {"preset": str(values[preset]), "others": others}


def _link(found: Devices, place: int, values: Mapping[Node, Any]) -> dict[str, Any] | None:
    link = found.links[place]
    if not values[link["rate"]] > 0:
        return None
    return {
        "kind": str(values[link.kind]),
        "bandwidth_bytes_per_s": float(values[link["rate"]]),
        "latency_s": float(values[link["latency"]]),
        "inferred": not values[link["stated"]],
        "used": bool(values[link["used"]]),
        "prefill_s": float(values[link.sent("prefill")]),
        "decode_s": float(values[link.sent("decode")]),
        "busiest": bool(values[link.rows[f"devices.prefill.{link.name}.busiest"]]),
    }


def _capacity(graph: EstimateGraph, values: Mapping[Node, Any]) -> dict[str, Any]:
    """Replicas, cash by year, NPV and break-even; None for what nobody knows, or where there is none."""
    found = graph.rows.of("capacity")

    def known(name: str) -> float | None:
        value = values[found[name]]
        return None if isinstance(value, str) or not isfinite(value) else float(value)

    def all_known(pattern: str, *first: str) -> list[float | None]:
        names = (figure.id.partition(".")[2] for figure in found.all(pattern))
        return [known(name) for name in (*first, *names)]

    return {
        "requests_per_s_per_replica": known("rate"),
        "bound_by": str(values[found["binds"]]),
        "spares": known("asked.spares"),
        "replicas": all_known("year.*.replicas"),
        "peak_requests_per_s": all_known("year.*.peak"),
        "utilisation": {"peak": known("utilisation_peak"), "mean": known("utilisation_mean")},
        "hours": {name: all_known(f"hour.*.{name}") for name in _OF_HOURS},
        "cash_usd": {
            "buy": all_known("cash.buy.*", "bought.0"),
            "rent": all_known("cash.rent.*", "nothing"),
            "api": all_known("year.*.api", "nothing"),
        },
        "npv_usd": {option: known(f"npv.{option}") for option in _OPTIONS},
        "saving_usd": known("saving"),
        "break_even": {name: known(f"break_even.{name}") for name in _BREAK_EVEN},
        "moves_usd": {name: known(f"moves.{name}") for name in _DRIVERS},
        "payback_years": known("payback"),
        "irr": known("irr"),
        "usd_per_million_tokens": {
            f"{option}{way}": known(f"price.{option}{way}") for way in ("", "_all") for option in _OPTIONS
        },
        "depreciation_usd": all_known("year.*.depreciation"),
    }


def _memory(graph: EstimateGraph, values: Mapping[Node, Any]) -> dict[str, Any]:
    """Bytes of the fullest accelerator by part, tokens of a KV cache, main memory of a machine."""
    fullest = graph.fullest
    ranges = {**fullest.ranges, "ram_peak": (fullest["startup.host.p10"], fullest["startup.host.p90"])}
    return {
        "kv_capacity_tokens": float(values[fullest["startup.kv_tokens"]]),
        "requests_at_full_length": float(values[fullest["startup.requests"]]),
        "peak_memory_bytes": float(values[fullest["startup.peak"]]),
        "ram_peak_bytes": float(values[fullest["startup.host"]]),
        "memory_range_80": {
            name: {end.id.rpartition(".")[2]: float(values[end]) for end in ends}
            for name, ends in ranges.items()
        },
        "memory_parts": {
            "weights": float(values[fullest["memory.weights"]]),
            "kv_cache": float(values[fullest["memory.kv"]]),
            "activations": float(values[fullest["memory.activations"]]),
            "logits": float(values[fullest["memory.logits"]]),
            "runtime": float(values[fullest["memory.reserve"]]),
        },
    }


def _classes(graph: EstimateGraph, classes: Classes, values: Mapping[Node, Any]) -> list[dict[str, Any]]:
    """What requests of each class see, in SI units; None in a plan that cannot be."""
    possible, rows = bool(values[graph.rows["checks.possible"]]), graph.rows

    def known(identifier: str) -> float | None:
        value = values[rows[identifier]]
        return float(value) if possible and not isinstance(value, str) and isfinite(value) else None

    return [
        {
            "name": name,
            "share": known(f"classes.{number}.part"),
            TTFT.key: known(f"classes.{number}.ttft"),
            E2E.key: known(f"classes.{number}.e2e"),
            **{f"{time}_s": known(f"classes.{number}.{time}") for time in _OF_CLASSES},
            "goodput_share": known(f"classes.{number}.good_share"),
            **({"sessions": known(f"classes.{number}.sessions")} if "sessions" in rows.features else {}),
        }
        for number, name in enumerate(classes.names, start=1)
    ]


def of_requests(count: float) -> str:
    """Whole requests, in words.

    >>> of_requests(1.7), of_requests(1229.0)
    ('1 request', '1,229 requests')
    """
    whole = math.floor(count)
    return f"{whole:,} request{'' if whole == 1 else 's'}"


def is_possible(feasibility: str) -> bool:
    """Whether a plan can be, by its verdict."""
    return feasibility in (FITS, WITH_OFFLOAD)


def metric_values(graph: EstimateGraph, values: Mapping[Node, Any]) -> dict[Metric, float | None]:
    """The headline metrics, in SI units; None where nobody knows one or the plan cannot be."""
    figures = graph.figures
    return {metric: metric.known(values[metric.of(figures)]) for metric in metrics_of(figures)}


def headline(graph: EstimateGraph) -> dict[str, Named]:
    """The figures that are results by themselves, words and metrics, under their keys.

    A dot leads into a nested object.
    """
    return texts(graph) | {metric.key: metric.of(graph.figures) for metric in metrics_of(graph.figures)}


def texts(graph: EstimateGraph) -> dict[str, Named]:
    """Those of them that are words."""
    first, last = graph.prefill_workers, graph.decode_workers
    figures: dict[str, Named] = {
        "system": first.rows["hardware.system"],
        "feasibility": graph.rows["checks.feasibility"],
        "verdict": graph.checks.state,
        "bottleneck.prefill": graph.prefill.bottleneck,
        "bottleneck.decode": graph.decode.bottleneck,
        "evidence": graph.rows["evidence.name"],
        "efficiency_profile": first.efficiency.profile,
    }
    if "load.state" in graph.figures:
        figures["load_state"] = graph.figures["load.state"]
    if last is not first:
        figures["decode_system"] = last.rows["hardware.system"]
    return figures


def raised(graph: EstimateGraph, values: Mapping[Node, Any], errors: bool) -> list[dict[str, Any]]:
    """Error checks, or alerts, that do not hold: reason code, message, both sides."""
    return [
        {
            "code": check.code,
            "message": message(graph, values, check),
            "left": float(values[check.left]),
            "right": float(values[check.right]),
        }
        for check in graph.checks.checks
        if check.error == errors and not values[check.result]
    ]


_CONSEQUENCES = ("KV_DIFFERS", "SHARDS_DIFFER", "STAGES_DIFFER", "TOKENS_DIFFER", "MEMORY_SUM", "ERROR_VALUE")


def told_errors(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The errors of a plan, without those that only follow from others."""
    errors = list(result["checks"]["errors"])
    causes = [one for one in errors if not one["code"].removeprefix("DECODE_").startswith(_CONSEQUENCES)]
    return causes or errors


def _texts(graph: EstimateGraph, values: Mapping[Node, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, figure in texts(graph).items():
        is_text = isinstance(values[figure], str)  # else it follows from what has no value
        _put(nested, key, values[figure] if is_text else None)
    return nested


def _nested(metrics: Mapping[Metric, float | None]) -> dict[str, Any]:
    """Metrics under their keys in JSON."""
    nested: dict[str, Any] = {}
    for metric, value in metrics.items():
        _put(nested, metric.key, value)
    return nested


def _put(nested: dict[str, Any], key: str, value: Any) -> None:
    """A value under a key; a dot leads into a nested object."""
    outer, dot, inner = key.partition(".")
    if dot:
        nested.setdefault(outer, {})[inner] = value
    else:
        nested[key] = value


def _ranges(graph: EstimateGraph, values: Mapping[Node, Any]) -> dict[str, dict[str, float | None]]:
    """The ranges that hold 80 % of runs; of a metric that nobody knows there are none."""
    metrics = metric_values(graph, values)

    def end(metric: Metric, value: Any) -> float | None:
        return None if metrics[metric] is None or isinstance(value, str) else float(value)

    return {
        name: {
            percent: end(metric, values[graph.rows[f"evidence.{name}.{percent}"]]) for percent in PERCENTILES
        }
        for name, metric in RANGED.items()
    }


def _engine_day(graph: EstimateGraph, values: Mapping[Node, Any]) -> dict[str, Any]:
    """The newest run of the framework, its age in months on the engine's day, and the range of TPOT then."""
    rows, possible = graph.rows, bool(values[graph.rows["checks.possible"]])
    newest, months = values[rows["drift.newest"]], values[rows["drift.months"]]
    return {
        "newest_run": None if isinstance(newest, str) else day_of(newest).isoformat(),
        "months": None if isinstance(months, str) else float(months),
        "tpot": {name: float(values[rows[f"drift.{name}"]]) if possible else None for name in ("p10", "p90")},
    }


def _corrected(graph: EstimateGraph, values: Mapping[Node, Any]) -> dict[str, Any]:
    """Results times the multipliers of a correction, in SI units; None where the plan cannot be."""
    rows, correction = graph.rows, graph.library.correction
    possible = bool(values[rows["checks.possible"]])
    assert correction is not None

    def known(figure: Node) -> float | None:
        value = values[figure]
        return float(value) if possible and not isinstance(value, str) and isfinite(value) else None

    return {
        "version": version(rows, correction),
        **{
            one.metric: {
                "physics": known(rows.node(f"correction.{one.metric}.result")),
                **{name: known(of[name]) for name in ("multiplier", *PERCENTILES)},
                "runs": int(values[of["runs"]]),
                "newest": str(values[of["newest"]]),
            }
            for one in correction.metrics
            for of in (rows.of(f"correction.{one.metric}"),)
        },
    }


def _nearest_run(graph: EstimateGraph, values: Mapping[Node, Any]) -> dict[str, Any] | None:
    """The measured run that is nearest; None where none is near, or an input cannot be read."""
    rows, of = graph.rows, graph.rows.of("nearest")
    if not graph.nearest or not isinstance(values[of["id"]], str) or not values[of["near"]]:
        return None
    fields = {
        name: [_shortest(values[rows.figure(HERE[name][0])]), _shortest(values[of[name]])]
        for name in compared(rows)
    }
    differs = {name: pair for name, pair in fields.items() if pair[0] != pair[1]}
    if [differs.pop(name) for name in DEGREES if name in differs]:
        differs["plan"] = [str(values[rows.node("nearest.degrees_here")]).strip(), values[of["plan"]]]
    times = {
        kind: {
            name: None if isinstance(value := values[of[f"{kind}.{name}"]], str) else value for name in TIMES
        }
        for kind in KINDS
    }
    return {
        "id": values[of["id"]],
        **{name: fields[name][1] for name in ("model", "accelerator", "framework")},
        "differs": differs,
        **times,
        "estimated_by": graph.library.measured.estimated_by,
        "source": values[of["source"]],
        "date": None if values[of["date"]] == NOT_STATED else values[of["date"]],
        "distance": float(values[of["distance"]]),
        "words": str(values[rows.node("nearest.words")]),
    }


def _plain(figure: Input, value: Any) -> str | int | float:
    """The value of an input as a scenario file holds it."""
    if isinstance(value, str):
        return str(value)
    if figure.unit == _DAY:
        return day_of(value).isoformat()
    return int(value) if figure.integer else float(value)


def _shortest(value: Any) -> Any:
    """A whole number without a point; all else as it is."""
    return int(value) if not isinstance(value, str) and float(value).is_integer() else value
