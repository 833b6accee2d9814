"""The question which deployment to run as it is asked, checked; and the plans of its answer by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mantile.estimates.estimate import require_own_chip
from mantile.library.architecture import Model
from mantile.library.brief import Brief
from mantile.library.decision import MOST_PLANS
from mantile.library.errors import InputError
from mantile.library.fields import DECODE
from mantile.library.given import with_prices
from mantile.library.models import load_model
from mantile.library.profiles import Library, is_file, load_library, with_accelerator
from mantile.library.scenario import (
    Scenario,
    merge_fields,
    parse_scenario,
    with_own_accelerators,
    without_checkpoint,
)
from mantile.library.scenario_fields import INPUT_NAMES, field_name
from mantile.search.evaluate import Evaluator
from mantile.search.objective import Limit, Objective, merged, read_objective
from mantile.search.objective import default_limits as usual_limits
from mantile.search.space import (
    APART,
    CHOSEN,
    CONTEXT,
    DEGREES,
    FFN_TP,
    OF_DECODE,
    OFFLOAD,
    OFFLOADED,
    PER_LAYER_TYPE,
    TOGETHER,
    Space,
    usual_space,
)

OF_PAIRS = ("serving", f"{DECODE}accelerator", *OF_DECODE)
"""Fields that a plan states where prefill and decode may be apart."""
PLANNED = (*CHOSEN, *DEGREES, "dp", *OFFLOADED)
"""Fields that a plan states; beside them concurrency, where the load is searched for."""
CANDIDATES = 12
"""Plans of an answer where nobody asks for more or fewer; a workbook holds each as live columns."""
USUAL_MOST = 8  # accelerators, where nobody states a limit
SEARCHED = ("cp", APART, OFFLOAD, PER_LAYER_TYPE)
"""What is looked at beyond the usual, where somebody asks for it."""
ALL = "all"
"""In place of accelerators: every one of the library."""
_PLAIN = {"system": "default", "offload_weights": 0.0, "offload_kv": 0.0, FFN_TP: 0}


@dataclass(frozen=True, repr=False)
class Question(Brief):
    """What is asked: a workload, and which plans may be chosen.

    Args:
        fields: of a scenario, without those that are chosen.
        over: fields to choose from, with their values.
        plans: of the answer, at most.
        host_memory: GB for each accelerator in which weights and KV cache may lie where nothing fits without;
            None: as `usual_space` assumes it.
        unasked: those of the limits that hold though nobody stated them.
        asked: ids of accelerators that somebody asked for by name.
        load: whether the fields state a concurrency or a request rate.
    """

    fields: Mapping[str, Any]
    over: Mapping[str, tuple[Any, ...]]
    objective: Objective
    limits: tuple[Limit, ...]
    most: int
    makers: tuple[str, ...]
    searched: tuple[str, ...]
    model: Model
    library: Library
    name: str
    plans: int = CANDIDATES
    host_memory: float | None = None
    unasked: tuple[Limit, ...] = ()
    asked: tuple[str, ...] = ()

    def bounds(self) -> dict[str, Any]:
        """The limits that hold as --json prints them: by measure in SI units, and the most accelerators."""
        return {
            "limits": {one.measure.key: one.bound for one in self.limits if one not in self.unasked},
            "default_limits": {one.measure.key: one.bound for one in self.unasked},
            "cap": {"gpus_max": self.most},
        }

    @property
    def load(self) -> bool:
        """Whether a load is stated; else the best one within the limits is looked for."""
        return any(self.fields.get(name) for name in ("concurrency", "request_rate", "sessions"))


def ask(
    fields: Mapping[str, Any],
    objective: str | Objective,
    limits: Sequence[Limit],
    most: int,
    over: Mapping[str, Iterable[Any]],
    makers: Sequence[str] = (),
    search: Sequence[str] = (),
    model: Model | None = None,
    library: Library | None = None,
    name: str = "optimize",
    plans: int = CANDIDATES,
    host_memory: float | None = None,
    default_limits: bool = True,
) -> Question:
    """A question, checked.

    Args:
        fields: of a scenario by our names; those of a plan are fixed. All else as for `optimize`.

    Raises:
        InputError: naming the field that is wrong and what was expected.
    """
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= 1024:
        raise InputError(f"{name}: gpus_max: expected a whole number from 1 to 1,024, found {most!r}")
    if isinstance(plans, bool) or not isinstance(plans, int) or not 1 <= plans <= MOST_PLANS:
        raise InputError(f"{name}: plans: expected a whole number from 1 to {MOST_PLANS}, found {plans!r}")
    wrong = next((one for one in search if one not in SEARCHED), None)
    if wrong is not None:
        raise InputError(f"{name}: search: {wrong!r}: expected {', '.join(SEARCHED)}")
    if host_memory is not None and not (np.isfinite(host_memory) and host_memory >= 0):
        raise InputError(f"{name}: host_memory: expected GB from 0 on, found {host_memory!r:.40}")
    given = without_checkpoint(fields) if "weights_dtype" in map(field_name, over) else dict(fields)
    if PER_LAYER_TYPE in search and (given.get(FFN_TP) is not None or FFN_TP in map(field_name, over)):
        raise InputError(f"{name}: {FFN_TP}: stated, and {PER_LAYER_TYPE} searches it; expected one of both")
    varied = _varied(over, given, name)
    library = library or load_library(tuple(given.get("profiles", ())))
    if "model" not in given and model is None:
        raise InputError(f"{name}: model: expected an id, such as llama-3.3-70b")
    model = model or load_model(str(given["model"]))
    usual = {"model": model.id, "accelerator": library.accelerators[0].id, "concurrency": 1}
    case = parse_scenario(merge_fields(usual, given, name), name)
    case, library = with_own_accelerators(case, library)
    if "accelerator" in given:
        given["accelerator"] = case.accelerator
    for chips in ("accelerator", f"{DECODE}accelerator"):
        if chips in varied:
            library, varied[chips] = _own_among(varied[chips], library)
    prompts = (case.input_tokens, *(one.input_tokens for one in case.classes))
    stated = merged(limits)
    unasked = usual_limits(stated, max(filter(None, prompts), default=0)) if default_limits else ()
    named = [str(chip) for chip in varied.get("accelerator", (given.get("accelerator", ALL),))]
    return Question(
        fields=given,
        over=varied,
        objective=read_objective(objective) if isinstance(objective, str) else objective,
        limits=(*stated, *unasked),
        most=most,
        makers=tuple(makers),
        searched=tuple(search),
        model=model,
        library=with_prices(library, case.prices, case.price_basis, name),
        name=name,
        plans=plans,
        host_memory=host_memory,
        unasked=unasked,
        asked=() if ALL in named else tuple(dict.fromkeys(library.accelerator(chip).id for chip in named)),
    )


def workload_of(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The fields of a scenario that say nothing of a plan: the workload, prices and overrides."""
    fields = merge_fields(data, {}, name)
    left_out = (
        *PLANNED,
        "variants",
        "ready_columns",
        "decision",
        "decode",
        "serving",
        "name",
        "versions",
        "since",
        "measured",
    )
    return {key: value for key, value in fields.items() if key not in left_out}


def _own_among(names: tuple[Any, ...], library: Library) -> tuple[Library, tuple[Any, ...]]:
    """The library with accelerators of one's own, given as files, among some; and ids in place of files."""
    found: list[Any] = []
    for name in names:
        if isinstance(name, str) and is_file(name):
            library, chip = with_accelerator(library, Path(name))
            found.append(chip.id)
        else:
            found.append(name)
    return library, tuple(found)


def _varied(
    over: Mapping[str, Iterable[Any]], given: Mapping[str, Any], name: str
) -> dict[str, tuple[Any, ...]]:
    """What is chosen from, by our names."""
    varied: dict[str, tuple[Any, ...]] = {}
    for key, listed in over.items():
        field = field_name(key)
        if field not in (*PLANNED, CONTEXT, FFN_TP, f"{DECODE}accelerator"):
            known = field in INPUT_NAMES
            raise InputError(
                f"{name}: {key}: expected a field of a plan: {', '.join((*PLANNED, CONTEXT, FFN_TP))}"
                + ("; other fields have one value" if known else "")
            )
        if field in given:
            raise InputError(f"{name}: {key}: fixed and listed; expected one of both")
        values = (listed,) if isinstance(listed, str | int | float) else tuple(listed)
        if not values:
            raise InputError(f"{name}: {key}: expected one value at least")
        varied[field] = values
    return varied


def prepared(question: Question) -> tuple[Space, Scenario, Evaluator]:
    """The plans of a question, the scenario that they are put into, and its graph.

    Raises:
        InputError: for a measure that the workload does not have.
    """
    space = usual_space(
        {
            key: value
            for key, value in question.fields.items()
            if key in (*PLANNED, "input_tokens", "output_tokens")
        },
        question.over,
        question.model,
        question.library,
        question.most,
        question.searched,
        question.makers,
        question.host_memory,
    )
    base = _base(question, space)
    require_own_chip(base.overrides, (*space.chosen["accelerator"], *space.decode_chips), question.name)
    evaluator = Evaluator(base, question.model, question.library, question.name)
    for one in (*question.objective.measures, *(limit_.measure for limit_ in question.limits)):
        if not evaluator.has(one):
            raise InputError(
                f"{question.name}: {one.key}: this workload has no {one.metric.label}; state what it follows "
                "from, such as a limit or a spread of lengths"
            )
    return space, base, evaluator


def _base(question: Question, space: Space) -> Scenario:
    """The scenario that plans are put into: the workload, and the first accelerator there is."""
    fields = {key: value for key, value in question.fields.items() if key not in PLANNED}
    fields |= {} if question.load else {"concurrency": 1}
    fields |= {"model": question.fields.get("model", question.model.id)}
    fields["accelerator"] = space.chosen["accelerator"][0]
    fields |= {CONTEXT: space.contexts[0]} if space.contexts else {}
    fields |= {FFN_TP: 0} if space.ffns else {}
    fields |= {"serving": APART} if space.apart else {}
    return parse_scenario(merge_fields({}, fields, question.name), question.name)


def plan_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a plan that say something, as plain objects."""
    plan = {}
    flat = dict(row) | {f"{DECODE}{key}": value for key, value in (row.get("decode") or {}).items()}
    row = flat
    for name in (*PLANNED, FFN_TP, *OF_PAIRS, CONTEXT, "concurrency"):
        if name not in row or row[name] is None or row[name] == _PLAIN.get(name):
            continue
        value = row[name]
        plan[name] = value.item() if isinstance(value, np.generic) else value
    return plan


def plan_name(plan: Mapping[str, Any], model: Model, library: Library) -> str:
    """A plan as people call it: B200 SXM · 3 × TP1 · nvfp4 instead of bf16 · trtllm."""
    chip = library.accelerator(str(plan["accelerator"])).name
    degrees = [
        f"{short}{int(plan[field])}"
        for field, short in (("tp", "TP"), ("attention_dp", "DPA"), ("cp", "CP"), ("ep", "EP"), ("pp", "PP"))
        if field == "tp" or int(plan.get(field, 1)) > 1
    ]
    degrees += [f"FFN TP{int(plan[FFN_TP])}"] if plan.get(FFN_TP) else []
    copies = f"{int(plan['dp'])} × " if int(plan.get("dp", 1)) > 1 else ""
    if plan.get("serving") == APART:
        decode = {key.removeprefix(DECODE): value for key, value in plan.items() if key.startswith(DECODE)}
        last = plan_name({**plan, **decode, "serving": TOGETHER}, model, library).split(" · ")
        first = plan_name({**plan, "serving": TOGETHER}, model, library).split(" · ")
        where = first[0] if first[0] == last[0] else f"{first[0]} → {last[0]}"
        return " · ".join([where, f"{first[1]} → {last[1]}", *first[2:]])
    formats, own = str(plan["weights_dtype"]), str(model.architecture.choices["weights_dtype"].value)
    formats += "" if formats == own else f" instead of {own}"
    cache = str(plan.get("kv_dtype", ""))
    formats += f", {cache} KV" if cache and cache != "bf16" else ""
    words = [chip, f"{copies}{' '.join(degrees)}", formats, str(plan["framework"])]
    hosted = [
        f"{float(plan[field]):g} GB of {what}"
        for field, what in zip(OFFLOADED, ("weights", "KV"), strict=True)
        if float(plan.get(field) or 0)
    ]
    words += [f"{int(plan[CONTEXT]):,} tokens at most"] if plan.get(CONTEXT) else []
    return " · ".join([*words, *([f"{' and '.join(hosted)} on the host"] if hosted else [])])


def at_most(count: int) -> str:
    """The most accelerators of a deployment, in words."""
    return f"at most {count:,} accelerators" if count > 1 else "one accelerator"
