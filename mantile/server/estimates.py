"""POST /v1/estimate: what a model reaches on some hardware, in the words of who has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from mantile.answers.estimate import Answer
from mantile.equations.checks import WITH_OFFLOAD
from mantile.equations.evidence import PERCENTILES
from mantile.equations.reasons import PLAN, REASONS
from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.results import is_possible, missing_memory
from mantile.library.beside_cpu import beside_cpu
from mantile.library.errors import InputError, naming
from mantile.library.machines import engine_of
from mantile.library.model_names import taken_for_granted
from mantile.library.profiles import load_library
from mantile.library.scenario import Scenario, parse_scenario
from mantile.library.scenario_fields import field_name
from mantile.search.devices import MOST_MACHINES, assignments
from mantile.search.devices import OBJECTIVES as OF_MACHINES
from mantile.search.largest import SPEED, find_largest
from mantile.search.objective import LARGEST, is_largest, read_objective
from mantile.search.optimize import NoPlan, Optimum, solve
from mantile.search.question import Question, ask
from mantile.server.asked import EstimateAsked
from mantile.server.documents import NAME, asked_as, estimate_of, fields_of, in_fields
from mantile.server.errors import Refused
from mantile.server.hardware import Configuration, hardware

IN_VRAM, OFFLOADED, INSUFFICIENT = "in_vram", "runs_with_offload", "insufficient_memory"
MEMORY = "MEMORY_EXCEEDED"
ON_CPUS = "llama.cpp"
"""The engine that computes layers on a CPU beside accelerators."""
_GB, _MS = 1e-9, 1e3
_GIB = 2**30 * _GB
_CPU_MEMORY = "hardware.memory_capacity"  # of the first device, in GiB
_LEAST = 0.001  # GiB that a memory may be stated to have: nothing lies there
_WITHOUT_PRICE = "throughput-per-accelerator"  # what is wanted where nobody knows a price
_OBJECTIVES = {"latency": "tpot", "speed": "tpot"}
"""Other names of what is wanted."""


def needs_search(asked: EstimateAsked) -> bool:
    """Whether plans have to be looked for, which takes a second."""
    return asked.scenario is None and (asked.plan is None or asked.recommend > 0)


def answer(asked: EstimateAsked, hub: bool, *folders: Path) -> dict[str, Any]:
    """The answer.

    Args:
        folders: of hosts and runtimes that were sent to the server.

    Raises:
        InputError: naming the field that is wrong; `Refused` with its reason code for a plan that cannot be
            for another reason than memory.
    """
    if asked.scenario is not None:
        if asked.model_id or asked.hardware or asked.workload or asked.plan:
            raise InputError("field scenario: expected it alone, or model_id, hardware and workload")
        return _told(estimate_of(asked.scenario, hub), None, None)
    chooses = is_largest(asked.objective)
    if chooses and (asked.model_id is not None or asked.plan is not None):
        field = "plan" if asked.model_id is None else "model_id"
        raise InputError(
            f"field {field}: stated, and objective {LARGEST} chooses it; expected it left out, or another "
            "objective such as cost"
        )
    if asked.hardware is None or asked.workload is None or (asked.model_id is None and not chooses):
        raise InputError("field model_id: expected it with hardware and workload, or a scenario")
    library = load_library()
    with naming("field runtime_id", "unknown "):
        runtime = engine_of(asked.runtime_id, library, *folders)
    named = {"model": "model_id"}
    for name in asked.plan or ():
        named |= dict.fromkeys((name, field_name(name)), f"plan.{name}")
    with asked_as(named):
        fields = {
            **({} if chooses else {"model": asked.model_id}),
            **runtime,
            "input_tokens": asked.workload.context_tokens,
            "output_tokens": asked.workload.output_tokens,
            "concurrency": asked.workload.concurrency,
        }
        found = hardware(asked.hardware, library, *folders)
        answered = (_largest if chooses else _on_hardware)(asked, fields, found, hub)
        return _without_money(answered) if found.is_own else answered


def _largest(
    asked: EstimateAsked, workload: Mapping[str, Any], found: Configuration, hub: bool
) -> dict[str, Any]:
    """The answer for the largest model of the catalogue that fits; the models that fit are the plans of it.

    Raises:
        InputError: for accelerators that are not alike; where no model fits and keeps the limits.
    """
    if "devices" in found.fields:
        raise InputError(
            f"field hardware.gpus: expected GPUs of one kind with objective {LARGEST}; ask for each by itself"
        )

    def ask_for(model: str) -> Question:
        stated, own = fields_of({**found.scenario, **workload, "model": model}, hub)
        host = 0.0 if found.ram is None else found.ram / found.count
        most = min(found.count, 1024)
        return ask(stated, SPEED, [], most, {}, model=own, name=NAME, plans=2, host_memory=host)

    models = find_largest(ask_for)
    if models.winner is None:
        raise InputError(f"field hardware: {models.words}; expected more memory, or another runtime_id")
    answered = _told(_winner(models.winner.best), found, models.winner.best, 0, chosen=True)
    configs = [
        recommendations(one.best)[0] | {"rank": rank, "model_id": one.best.question.model.id}
        for rank, one in enumerate(models.models[: asked.recommend], start=1)
    ]
    larger = [f"{one.model}: {one.why}" for one in models.too_large[-3:]]
    words = [f"{models.words}.", *answered["explanations"], *larger]
    return answered | {"recommended_configs": configs, "explanations": words}


def _without_money(answer: Any) -> Any:
    """An answer for cards of one's own: nobody knows what they cost."""
    if isinstance(answer, list):
        return [_without_money(part) for part in answer]
    if isinstance(answer, dict):
        return {key: None if "usd" in key else _without_money(part) for key, part in answer.items()}
    return answer


def _on_hardware(
    asked: EstimateAsked, workload: Mapping[str, Any], found: Configuration, hub: bool
) -> dict[str, Any]:
    """The answer for a model and its workload on some hardware."""
    fields = {**found.scenario, **workload}
    beside = _on_cpu(asked, fields, found, hub)
    if beside is not None:
        return beside
    if "devices" in found.fields or not needs_search(asked):
        plan = asked.plan if asked.plan is not None else {}
        told = _told(_with_room(asked, fields, plan, found, hub), found, None)
        if "devices" in found.fields and asked.plan is None and asked.recommend:
            told["recommended_configs"] = _of_machines(asked, workload, found.fields["devices"])
        return told
    stated = None if asked.plan is None else _with_room(asked, fields, asked.plan, found, hub)
    searched = _search(asked, fields, found, hub)
    best = stated or (None if searched is None else _winner(searched))
    if best is None:
        best = estimate_of(_whole(fields, {}, found), hub)
    return _told(best, found, searched, asked.recommend, stated is None)


def _with_room(
    asked: EstimateAsked,
    fields: Mapping[str, Any],
    plan: Mapping[str, Any],
    found: Configuration,
    hub: bool,
) -> Estimate:
    """A plan as stated; a part in host memory where it has no room without and says nothing of that."""
    made = estimate_of(_whole(fields, plan, found), hub)
    silent = not {"offload_weights", "offload_kv"} & {field_name(name) for name in plan}
    if found.ram and silent and "devices" not in fields and missing_memory(made.results()) is not None:
        searched = _search(asked, _whole(fields, plan, found), found, hub)
        made = made if searched is None else _winner(searched)
    return made


def _on_cpu(
    asked: EstimateAsked, fields: Mapping[str, Any], found: Configuration, hub: bool
) -> dict[str, Any] | None:
    """The answer with layers on the CPU beside the accelerators.

    None where it is no CPU that we know, the engine does not compute on it, or all has room without.
    """
    plan = asked.plan or {}
    degrees = {"tp", "pp", "dp", "offload_weights", "offload_kv"} & {field_name(name) for name in plan}
    if found.cpu is None or fields["framework"] != ON_CPUS or "devices" in fields or degrees:
        return None
    fields = {**fields, **plan}
    without = estimate_of(_whole(fields, {}, found), hub).results()
    missing = missing_memory(without)
    if without["feasibility"] != INSUFFICIENT or missing is None:
        return None
    chip = str(fields["accelerator"])
    beside = beside_cpu(load_library(), found.cpu, chip, found.count)
    if found.ram is not None:
        beside["overrides"] = [
            *fields.get("overrides", []),
            {
                "id": _CPU_MEMORY,
                "value": max(found.ram / _GIB, _LEAST),
                "reason": "memory of the host, as stated",
            },
        ]
    made = estimate_of({**fields, **beside}, hub)
    if not is_possible(made.results()["feasibility"]):
        return None
    told = tuple(text for text in found.told if not text.startswith("cpu "))
    answer = _told(made, replace(found, told=told), None)
    held = answer["estimate"]["layers_in_words"]
    words = f"Model exceeds VRAM by {missing * _GB:,.1f} GB of each accelerator, so {held}"
    rest = [text for text in answer["explanations"][1:] if text != held]
    return answer | {"feasibility": OFFLOADED, "explanations": [words, *rest]}


def _whole(fields: Mapping[str, Any], plan: Mapping[str, Any], found: Configuration) -> dict[str, Any]:
    """A scenario of all accelerators: TP over all of them where the plan does not say it."""
    stated = {field_name(name) for name in plan}
    own = {"tp": found.count} if "devices" not in fields and not {"tp", "pp", "dp"} & stated else {}
    return {**fields, **own, **plan}


def _search(
    asked: EstimateAsked, fields: Mapping[str, Any], found: Configuration, hub: bool
) -> Optimum | None:
    """The best plans on that hardware; None where there is none.

    Engines get as many seats as requests are in flight: each captures graphs for those it has.
    """
    seats = {"max_requests": fields["concurrency"]} if fields.get("concurrency") else {}
    stated, model = fields_of({**seats, **fields}, hub)
    host = 0.0 if found.ram is None else found.ram / found.count
    wanted = _OBJECTIVES.get(asked.objective, asked.objective)
    last: Optimum | None = None
    for objective, usual in product(dict.fromkeys((wanted, _WITHOUT_PRICE)), (True, False)):
        try:
            last = solve(
                ask(
                    stated,
                    read_objective(objective, "field objective"),
                    [],
                    min(found.count, 1024),
                    {},
                    model=model,
                    name=NAME,
                    plans=max(2, asked.recommend),  # the winner is compared with the second
                    host_memory=host,
                    default_limits=usual,
                )
            )
        except NoPlan:
            return None
        if last.has_winner:
            return last
    return last


def _of_machines(
    asked: EstimateAsked, workload: Mapping[str, Any], machines: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The best ways to use machines that are not alike: one alone, one to prefill for another, all as one."""
    if not 2 <= len(machines) <= MOST_MACHINES:
        return []
    wanted = _OBJECTIVES.get(asked.objective, asked.objective)
    ways = assignments(workload, machines, wanted if wanted in OF_MACHINES else "e2e", NAME)
    given = {"name", "title", *workload}
    return [
        {
            "rank": rank,
            "name": one.name,
            "plan": one.scenario.model_dump(mode="json", exclude_defaults=True, exclude=given),
            **_figures(one.results),
            "reason": one.because,
        }
        for rank, one in enumerate(ways[: asked.recommend], start=1)
        if one.scenario is not None and not one.refused
    ]


def _winner(found: Optimum) -> Estimate:
    """The estimate of the best plan, else of that which comes nearest to the limits, by itself."""
    return estimate(alone(found.scenario), found.question.model, name=NAME)


def alone(scenario: Scenario) -> Scenario:
    """The base column of an answer as a scenario of its own."""
    data = scenario.model_dump(
        exclude_none=True, exclude_defaults=True, exclude={"variants", "decision", "name", "title"}
    )
    return parse_scenario(data, NAME)


def _told(
    made: Estimate,
    found: Configuration | None,
    searched: Optimum | None,
    recommend: int = 0,
    chosen: bool = False,
) -> dict[str, Any]:
    whole = made.to_dict()
    require_plan(whole)
    said = Answer(made)
    return {
        "sentence": said.verdict,
        "model_id": made.model.id,
        "runtime_id": whole["framework"],
        "hardware": {
            "accelerator": whole["accelerator"],
            "system": whole["system"],
            "accelerators": whole["accelerators"],
            "ram_gb": None if found is None else found.ram,
        },
        "scenario": made.scenario.model_dump(mode="json", exclude_none=True, exclude_defaults=True),
        "feasibility": feasibility(whole),
        "reasons": [
            {"code": one["code"], "message": in_fields(one["message"])} for one in whole["checks"]["errors"]
        ],
        "estimates": _estimates(whole),
        "bottlenecks": _bottlenecks(whole),
        "recommended_configs": [] if searched is None else recommendations(searched)[:recommend],
        "remedies": [way.to_dict() for way in said.ways],
        "explanations": _words(made, whole, found, searched, chosen),
        "estimate": whole,
    }


def require_plan(results: Mapping[str, Any]) -> None:
    """Refuse a plan that cannot be for another reason than memory, with its reason code.

    Raises:
        Refused: with the rule of the planner that it breaks.
    """
    if is_possible(results["feasibility"]):
        return
    broken = [one for one in results["checks"]["errors"] if one["code"] != MEMORY]
    rules = [one for one in broken if one["code"] in REASONS and REASONS[one["code"]].group == PLAN]
    for one in (*rules, *broken):
        raise Refused(f"the plan cannot be: {in_fields(one['message'])}", one["code"])


def feasibility(results: Mapping[str, Any]) -> str:
    """The class of a plan by where its weights and KV cache lie."""
    if results["feasibility"] == WITH_OFFLOAD or (
        is_possible(results["feasibility"]) and (results["offload_weights"] or results["offload_kv"])
    ):
        return OFFLOADED
    return IN_VRAM if is_possible(results["feasibility"]) else INSUFFICIENT


def _estimates(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Figures with their ranges, in the units of their names; None where nobody knows one."""
    ranges, memories = whole["range_80"], whole["memory_range_80"]
    known = is_possible(whole["feasibility"])

    def scaled(value: float | None, factor: float) -> float | None:
        return None if value is None else value * factor

    def band(name: str, factor: float = 1.0) -> dict[str, float | None]:
        return {percent: scaled(ranges[name][percent], factor) for percent in PERCENTILES}

    def memory(name: str, key: str) -> dict[str, float | None]:
        values = {**memories[name], "p50": whole[key]}
        return {percent: scaled(values[percent], _GB) if known else None for percent in PERCENTILES}

    return {
        "decode_toks_sec": band("throughput"),
        "decode_toks_sec_per_user": whole["interactivity_tokens_per_s"],
        "interactivity_toks_sec": band("interactivity"),
        "usd_per_million_output_tokens": band("usd_per_million_output_tokens"),
        "prefill_toks_sec": band("prefill_rate"),
        "ttft_ms": {
            **band("ttft", _MS),
            "mean": scaled(whole["ttft_s"], _MS),
            "median": scaled(whole.get("ttft_p50_s"), _MS),
            "p95": scaled(whole.get("ttft_p95_s"), _MS),
        },
        "tpot_ms": {**band("tpot", _MS), "mean": scaled(whole["tpot_s"], _MS)},
        "latency_ms": {
            **band("e2e", _MS),
            "mean": scaled(whole["e2e_s"], _MS),
            "median": scaled(whole.get("e2e_p50_s"), _MS),
            "p95": scaled(whole.get("e2e_p95_s"), _MS),
        },
        "power_w": {**band("power"), "mean": whole["power_w"], "basis": whole["power_range_basis"]},
        "vram_peak_gb": memory("peak_memory", "peak_memory_bytes"),
        "vram_needed_gb": scaled(whole["memory_per_accelerator_bytes"], _GB),
        "vram_capacity_gb": scaled(whole["memory_capacity_bytes"], _GB),
        "ram_peak_gb": memory("ram_peak", "ram_peak_bytes"),
    }


def _bottlenecks(whole: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What each phase is limited by, the largest share first; none of a plan that cannot be."""
    if not is_possible(whole["feasibility"]):
        return []
    return [
        {"phase": phase, "limit": limit, "percent": share * 100}
        for phase, shares in whole["split"].items()
        for limit, share in sorted(shares.items(), key=lambda item: -item[1])
        if share > 0
    ]


def recommendations(found: Optimum) -> list[dict[str, Any]]:
    """The plans of a search, the best first."""
    return [
        {
            "rank": one.rank,
            "name": one.name,
            "plan": one.plan,
            **_figures(one.results),
            "reason": found.words if place == 0 and found.has_winner else one.lost_because,
        }
        for place, one in enumerate(found.candidates)
    ]


def _figures(results: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of a recommended plan."""
    keys = ("ttft_s", "tpot_s", "output_tokens_per_s", "usd_per_hour", "memory_per_accelerator_bytes")
    cost = results["usd_per_million_tokens"]["output"]
    return {
        "feasibility": feasibility(results),
        "metrics": {key: results[key] for key in keys} | {"usd_per_million_output_tokens": cost},
        "range_80": results["range_80"],
    }


def _words(
    made: Estimate,
    whole: Mapping[str, Any],
    found: Configuration | None,
    searched: Optimum | None,
    chosen: bool,
) -> list[str]:
    """What the figures come to, in plain words; sentences of checks are the library's own."""
    words = []
    memory = next((one for one in whole["checks"]["errors"] if one["code"] == MEMORY), None)
    kind = feasibility(whole)
    if kind == IN_VRAM:
        words.append(
            f"{made.title}: weights, KV cache and working memory fit: "
            f"{whole['memory_per_accelerator_bytes'] * _GB:,.1f} of "
            f"{whole['memory_capacity_bytes'] * _GB:,.1f} GB of each accelerator."
        )
    elif kind == OFFLOADED:
        words.append(_offloaded(made, whole))
    elif memory is not None:
        missing = (missing_memory(whole) or 0.0) * _GB
        why = in_fields(memory["message"])
        words.append(f"Model exceeds VRAM by {missing:,.1f} GB of each accelerator: it {why}.")
        if found is not None and found.ram is None:
            words.append("Host memory is not known: state ram_gb to see whether a part may lie there.")
    if "layers_in_words" in whole:
        words.append(whole["layers_in_words"])
    if is_possible(whole["feasibility"]):
        words += [
            f"{phase.capitalize()} is limited by {whole['bottleneck'][phase]}, "
            f"{whole['split'][phase][whole['bottleneck'][phase]]:.0%} of its time."
            for phase in ("prefill", "decode")
            if whole["bottleneck"][phase] in whole["split"][phase]
        ]
        words.append(f"Ranges hold 80 % of runs; evidence: {whole['evidence']}.")
        if chosen and searched is not None:
            words.append(f"{searched.words}.")
        words += [f"{one['code']}: {in_fields(one['message'])}." for one in whole["checks"]["alerts"]]
    granted = taken_for_granted(made.model.source)
    words += [f"{made.model.name}: {granted}."] if granted else []
    return words + [f"{text}." for text in (() if found is None else found.told)]


def _offloaded(made: Estimate, whole: Mapping[str, Any]) -> str:
    """By how much the plan is too large without host memory, and what lies there."""
    without = made.again(made.scenario.replace(offload_weights=0.0, offload_kv=0.0)).results()
    missing = missing_memory(without)
    weights, kv = whole["offload_weights"], whole["offload_kv"]
    if not weights:
        lies = f"host memory has room for {kv:,.1f} GB of KV cache of each accelerator"
    else:
        room = f", which has room for {kv:,.1f} GB of KV cache" if kv else ""
        lies = f"{weights:,.1f} GB of weights of each accelerator lie in host memory{room}"
    if missing is None:
        return f"Model fits without host memory; as stated, {lies}."
    return (
        f"Model exceeds VRAM by {missing * _GB:,.1f} GB of each accelerator, so {lies}; what a pass needs of "
        "it comes over the link to the host."
    )
