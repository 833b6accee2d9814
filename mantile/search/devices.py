"""Which of several machines prefills and which decodes, or whether one alone or all as one are faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.device import MOST_DEVICES, OF_FIRST
from mantile.library.errors import InputError
from mantile.library.links import INFERRED, NO_PORT
from mantile.library.profiles import Library, load_library
from mantile.library.scenario import Scenario, parse_scenario

OBJECTIVES = {
    "e2e": ("e2e_s", "end-to-end time"),
    "ttft": ("ttft_s", "TTFT"),
    "tpot": ("tpot_s", "TPOT"),
    "throughput": ("output_tokens_per_s", "output tokens per second"),
}
"""What may be wanted: the key of the result, and what it is called. Of throughput more is better."""
MOST_MACHINES = 6


@dataclass(frozen=True)
class Assignment:
    """A way to use the machines.

    Args:
        name: which prefill and which decode, in words; `scenario` asks for it.
        results: as `mantile estimate --json` prints them; empty where there is no estimate.
        refused: why there is none; reason codes of a plan that cannot be.
        because: why it is the best, or how far it is behind.
    """

    name: str
    scenario: Scenario | None
    results: Mapping[str, Any]
    refused: str
    because: str = ""
    estimate: Estimate | None = None


def assignments(
    fields: Mapping[str, Any],
    machines: Sequence[Mapping[str, Any]],
    objective: str = "e2e",
    name: str = "asked",
) -> list[Assignment]:
    """Every way to use machines, the best first: each alone, each to prefill for each other, all as one.

    The accelerators of a machine split every layer (TP), or hold some layers each (PP).

    Args:
        fields: of a scenario, without accelerators; `machines` as `devices` of a scenario.
        objective: one of `OBJECTIVES`.
        name: stands for the scenario in errors.

    Raises:
        InputError: for a single accelerator, or more than six machines; for an objective that is not known.

    Example:
        assignments(fields, [{"accelerator": "dgx-spark-gb10"}, {"accelerator": "m3-ultra"}])[0].because
    """
    if objective not in OBJECTIVES:
        raise InputError(
            f"--objective {objective}: expected one of {', '.join(OBJECTIVES)} to choose what machines do"
        )
    if sum(machine.get("count", 1) for machine in machines) < 2 or len(machines) > MOST_MACHINES:
        raise InputError(
            f"--device: expected 2 to {MOST_MACHINES} machines, or one with several accelerators such as "
            f"m3-ultra:3, found {len(machines)}"
        )
    found = [_worked(ways, asked, name) for ways, asked in _ways(fields, machines)]
    key, _ = OBJECTIVES[objective]
    sign = -1 if objective == "throughput" else 1
    possible = [one for one in found if not one.refused and one.results[key] is not None]
    rest = [one for one in found if one not in possible]
    possible.sort(key=lambda one: sign * one.results[key])
    return [*_reasons(possible, objective), *rest]


def _ways(
    fields: Mapping[str, Any], machines: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ways to use machines, with the fields of each: their links and memory as stated."""
    library = load_library()
    base = {key: value for key, value in fields.items() if key not in ("devices", "decode", "serving")}
    kinds: dict[int, Mapping[str, Any]] = {}
    for place, machine in enumerate(machines):
        told = {key: value for key, value in machine.items() if key in (*OF_FIRST, "memory")}
        if told not in kinds.values():
            kinds[place] = told
    forms = {place: list(_forms(kind)) for place, kind in kinds.items()}
    for place, kind in kinds.items():
        for said, deployed in forms[place]:
            yield f"{said} alone", base | deployed | _overrides(base, {"": kind.get("memory")})
    for one, other in permutations(kinds, 2):
        memories = {"": kinds[one].get("memory"), "decode.": kinds[other].get("memory")}
        speed = _stated_speed(machines, min(one, other), max(one, other), library)
        stated = {} if speed is None else {"handover_bandwidth": speed}
        for (first, prefill), (last, decode) in product(forms[one], forms[other]):
            apart = base | prefill | {"decode": {"tp": 1, "pp": 1} | decode} | _overrides(base, memories)
            yield f"prefill on {first}, decode on {last}", apart | stated
    if len(machines) > 1:
        yield "all as one pipeline", base | {"devices": [dict(machine) for machine in machines]}
    stages = [stage for machine in machines for stage in _stages(machine)]
    if len(machines) < len(stages) <= MOST_DEVICES and len(machines) > 1:
        yield "all as one pipeline, a stage on each accelerator", base | {"devices": stages}


def _forms(machine: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ways to use the accelerators of a machine, in words and as fields of a deployment."""
    chip, count = machine["accelerator"], machine.get("count", 1)
    deployed = {OF_FIRST[key]: value for key, value in machine.items() if key in OF_FIRST}
    yield f"{chip} × {count}" if count > 1 else chip, deployed
    if count > 1:
        yield f"pipeline of {count} {chip}", deployed | {"tp": 1, "pp": count}


def _stages(machine: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each accelerator of a machine as a device: the last one has the links to other machines."""
    count = machine.get("count", 1)
    alone = {key: value for key, value in machine.items() if key != "count"}
    inner = {key: value for key, value in alone.items() if not key.startswith("link")}
    yield from (dict(inner) for _ in range(count - 1))
    yield alone


def _overrides(base: Mapping[str, Any], memories: Mapping[str, float | None]) -> dict[str, Any]:
    """The memory that machines may use, GB, as overrides, by what ids of their workers begin with."""
    added = [
        {
            "id": f"{prefix}hardware.memory_visible",
            "value": memory * 1e9 / 2**30,
            "reason": "memory of the machine, as stated",
        }
        for prefix, memory in memories.items()
        if memory is not None
    ]
    return {"overrides": [*base.get("overrides", ()), *added]} if added else {}


def _stated_speed(
    machines: Sequence[Mapping[str, Any]], near: int, far: int, library: Library
) -> float | None:
    """GB/s between two machines as is stated, 0 without a link; None where nothing is.

    Args:
        near, far: their places, the smaller one first, which states the link.
    """
    name = "link" if far == near + 1 else f"link_to_{far + 1}"
    kind, bandwidth = (machines[near].get(key) for key in (name, f"{name}_bandwidth"))
    if kind in (None, INFERRED):
        return None if bandwidth is None else float(bandwidth)
    if kind == NO_PORT:
        return 0.0
    found = library.link(str(kind))
    raw, share = found.bandwidth.value if bandwidth is None else bandwidth, found.share.value
    assert raw is not None and share is not None  # the library has none without
    return float(raw) * float(share)


def _worked(said: str, asked: Mapping[str, Any], name: str) -> Assignment:
    try:
        scenario = parse_scenario(dict(asked), name)
        made = estimate(scenario, name=name)
    except InputError as error:
        return Assignment(said, None, {}, str(error))
    results = made.to_dict()
    codes = [check["code"] for check in results["checks"]["errors"]]
    return Assignment(said, scenario, results, ", ".join(codes), estimate=made)


def _reasons(found: Sequence[Assignment], objective: str) -> Iterator[Assignment]:
    """The same with why the first is the best, and how far others are behind."""
    key, words = OBJECTIVES[objective]
    for place, one in enumerate(found):
        if place == 0:
            other = next((two for two in found[1:] if two.name.endswith("alone")), None)
            because = f"shortest {words}" if objective != "throughput" else f"most {words}"
            if other is not None:
                because += f"; {other.name}: {_times(other.results, one.results)}"
        else:
            far = abs(one.results[key] / found[0].results[key] - 1)
            because = f"{words} {far:.0%} {'less' if objective == 'throughput' else 'more'}; " + _times(
                one.results, found[0].results
            )
        yield Assignment(one.name, one.scenario, one.results, "", because, one.estimate)


def _times(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """How many times the first and the further tokens take as long."""
    first, more = (one[key] / other[key] for key in ("ttft_s", "tpot_s"))
    return f"first token {first:.2f} times, others {more:.2f} times as long"
