"""Hardware first: which models run on a machine that is there, in which data type, how long and how fast?

Models are looked at from the largest on, each with every plan of the machine through its own graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from mantile.equations.constant import BITS_PER_BYTE
from mantile.equations.display import number_in
from mantile.equations.metrics import INTERACTIVITY, TTFT
from mantile.ir.build import build_ir
from mantile.ir.counts import parameters
from mantile.library.architecture import Model
from mantile.library.brief import Brief
from mantile.library.errors import InputError
from mantile.library.models import load_model, model_ids
from mantile.library.profiles import Library, load_library
from mantile.search.objective import read_objective
from mantile.search.question import ask, plan_name, plan_of, prepared
from mantile.search.size import USUAL, Sizes, bits_of, formats_of
from mantile.search.space import MOST_CONTEXT, engines

FEWEST_BITS = 4.0
"""Bits of a weight at least, where nobody states them: below, answers change more than speed tells."""
_OFFLOADED = 8  # steps in which weights move to the host
_MOST_ACCELERATORS = 72
BITS_OF_A_BYTE = cast("float", BITS_PER_BYTE.value)
_WANTED = "ttft,interactivity"


@dataclass(frozen=True)
class Fit:
    """A model on a machine, in the best data type that fits.

    Args:
        parameters: of the model, all of them.
        plan: fields of a scenario with one request.
        context: tokens of a request at most, by memory and by what the model was made for.
        interactivity, ttft: of one user, in token/s and s; None where nobody knows them.
    """

    model: str
    name: str
    parameters: int
    plan: dict[str, Any]
    label: str
    context: int
    interactivity: float | None
    ttft: float | None

    def to_dict(self) -> dict[str, Any]:
        """A model of `mantile fits --json`."""
        return {
            "model": self.model,
            "parameters": self.parameters,
            "weights_dtype": self.plan["weights_dtype"],
            "plan": self.plan,
            "context_tokens": self.context,
            INTERACTIVITY.key: self.interactivity,
            TTFT.key: self.ttft,
        }


@dataclass(frozen=True, repr=False)
class Machine(Brief):
    """What runs on a machine.

    Args:
        models: that fit, the largest first; no more than were asked for.
        too_large: ids of larger ones that do not fit.
    """

    accelerator: str
    name: str
    count: int
    ram_gb: float | None
    input_tokens: int
    output_tokens: int
    models: tuple[Fit, ...]
    too_large: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """A machine of `mantile fits --json`."""
        return {
            "accelerator": self.accelerator,
            "accelerators": self.count,
            "ram_gb": self.ram_gb,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "models": [one.to_dict() for one in self.models],
            "too_large": [*self.too_large],
        }


def read_machine(text: str) -> tuple[str, int]:
    """ACCELERATOR or ACCELERATOR:COUNT to both.

    Raises:
        InputError: if it is not of that form.

    Example:
        read_machine("rtx-4090:2")    # ("rtx-4090", 2)
    """
    found = re.fullmatch(r"([^:]+)(?::(\d+))?", text.strip())
    count = int(found[2] or 1) if found else 0
    if found is None or not 1 <= count <= _MOST_ACCELERATORS:
        raise InputError(
            f"{text}: expected ACCELERATOR[:COUNT] with a count from 1 to {_MOST_ACCELERATORS}, "
            "such as rtx-4090:2"
        )
    return found[1], count


def fits(
    accelerator: str,
    count: int = 1,
    input_tokens: int = USUAL["input_tokens"],
    output_tokens: int = USUAL["output_tokens"],
    ram_gb: float | None = None,
    top: int = 8,
    bits_min: float = FEWEST_BITS,
    models: Sequence[str] | None = None,
    library: Library | None = None,
    step: Callable[[str], None] = lambda words: None,
) -> Machine:
    """The largest models that run on a machine, each in its best data type.

    The best data type is that with the most bits of all that fit, no more than the checkpoint has; of plans
    in it the fastest for one user. Weights go to the host only where nothing fits without; then the fastest
    plan counts, which is that of the smallest data type.

    Args:
        accelerator: of the machine, by id; `count` of them.
        ram_gb: host memory that may hold weights, in GB; None: none goes there.
        top: models at most.
        bits_min: bits of a weight at least; a checkpoint that has fewer keeps its own.
        models: ids that are looked at; all of the library without.
        step: is told which model is looked at.

    Raises:
        InputError: naming what is wrong.

    Example:
        mantile.fits("rtx-4090", 2).models[0].model
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST_ACCELERATORS:
        raise InputError(
            f"fits: count: expected a whole number from 1 to {_MOST_ACCELERATORS}, found {count!r}"
        )
    if ram_gb is not None and not (np.isfinite(ram_gb) and ram_gb > 0):
        raise InputError(f"fits: ram: expected GB above 0, found {ram_gb:g}")
    library = library or load_library()
    chip = library.accelerator(accelerator)
    capacity = chip.memory_capacity.value or 0.0
    room = capacity * count + (ram_gb or 0)  # GiB at most: a GB is less
    found: list[Fit] = []
    too_large: list[str] = []
    for model, total, least in largest_first(models or model_ids()):
        if len(found) == top:
            break
        step(model.name)
        formats = _formats(model, library, chip.id, bits_min)
        smallest = min(library.datatype(name, "weights").bits for of in formats.values() for name in of)
        fit = None
        if number_in(least * smallest / BITS_OF_A_BYTE, "B", "GiB") <= room:
            lengths = {"input_tokens": input_tokens, "output_tokens": output_tokens}
            fit = _fit(model, total, chip.id, count, lengths, ram_gb, formats, library)
        if fit is None:
            too_large.append(model.id)
        else:
            found.append(fit)
    return Machine(
        accelerator=chip.id,
        name=chip.name,
        count=count,
        ram_gb=ram_gb,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        models=tuple(found),
        too_large=tuple(too_large),
    )


def largest_first(names: Sequence[str]) -> Iterator[tuple[Model, int, int]]:
    """Models from the largest on, their parameters, and those that lie on an accelerator in any case."""
    counted = []
    for name in names:
        model = load_model(name)
        counts = parameters(build_ir(model))
        counted.append((model, counts["total"], counts["total"] - counts["embedding"] - counts["vision"]))
    yield from sorted(counted, key=lambda of: (-of[1], of[0].id))


def _formats(model: Model, library: Library, chip: str, bits_min: float) -> dict[str, tuple[str, ...]]:
    """Data types of weights on an accelerator by framework; a framework without one is left out."""
    own = library.datatype(str(model.architecture.choices["weights_dtype"].value), "weights")
    least = min(bits_min, own.bits)
    made = {
        framework: tuple(
            name
            for name in formats_of(model, library, chip, framework)
            if library.datatype(name, "weights").bits >= least
        )
        for framework in engines(library)
    }
    return {name: formats for name, formats in made.items() if formats}


def _fit(
    model: Model,
    total: int,
    chip: str,
    count: int,
    lengths: dict[str, int],
    ram_gb: float | None,
    formats: Mapping[str, tuple[str, ...]],
    library: Library,
) -> Fit | None:
    """A model on a machine; None where it does not fit."""
    fields = {"model": model.id, "accelerator": chip, "concurrency": 1, **lengths}
    question = ask(
        fields,
        _WANTED,
        [],
        count,
        {},
        model=model,
        library=library,
        name=f"fits: {model.id}",
        host_memory=0,
        default_limits=False,
    )
    space, _, evaluator = prepared(question)
    space = replace(
        space,
        chosen={**space.chosen, "framework": tuple(formats)},
        formats={(chip, name): kinds for name, kinds in formats.items()},
        replicas=(1,),
    )
    for offload in ((0.0,), _steps(ram_gb, count)):
        moved = {"offload_weights": offload, "offload_kv": (0.0,)}
        search = Sizes(
            evaluator, replace(space, offload=moved), read_objective(_WANTED), (), searches_load=False
        )
        plans = search.run().plans if offload else pd.DataFrame()
        if len(plans):
            break
    else:
        return None
    bits = {name: bits_of(name, model, library) for name in plans["weights_dtype"].unique()}
    plans = plans.assign(bits=plans["weights_dtype"].map(bits))
    keys = [INTERACTIVITY.column] if offload[0] else ["bits", INTERACTIVITY.column]
    best = plans.sort_values(keys, ascending=False, kind="stable", na_position="last").head(1)
    row = cast("dict[str, Any]", best.iloc[0].to_dict())
    plan = plan_of(row)
    most = int(model.architecture.value("max_positions") or MOST_CONTEXT) - lengths["output_tokens"]
    context = int(search.most_input(best, max(most, 1))[0]) + lengths["output_tokens"]
    return Fit(
        model=model.id,
        name=model.name,
        parameters=total,
        plan=plan,
        label=plan_name(plan, model, library),
        context=context,
        interactivity=_known(row[INTERACTIVITY.column]),
        ttft=_known(row[TTFT.column]),
    )


def _steps(ram_gb: float | None, count: int) -> tuple[float, ...]:
    """GB of weights that each accelerator leaves on the host, in even steps."""
    if ram_gb is None:
        return ()
    return tuple(ram_gb / count * place / _OFFLOADED for place in range(1, _OFFLOADED + 1))


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
