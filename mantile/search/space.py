"""The plans that are looked at: every combination of accelerators, frameworks, data types and degrees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from mantile.library.architecture import Model
from mantile.library.checkpoints import runs_on
from mantile.library.errors import InputError, unknown
from mantile.library.fields import DECODE
from mantile.library.launch_table import launch_tables
from mantile.library.models import caches
from mantile.library.profiles import CHECKPOINT, Accelerator, Framework, Library
from mantile.library.scenario_fields import DEFAULT_SYSTEM, MOST_STAGES

DEGREES = ("tp", "pp", "cp", "attention_dp", "ep")
"""What a replica is made of, in the order in which ranks are counted; experts share ranks of the others."""
CHOSEN = ("accelerator", "system", "framework", "weights_dtype", "kv_dtype")
"""What is chosen by name."""
OFFLOADED = ("offload_weights", "offload_kv")
CONTEXT = "max_model_len"
"""The longest request that the engine takes: chosen where somebody lists it, or leaves it to be chosen."""
FFN_TP = "ffn_tp"
"""Ranks that share a dense FFN or a shared expert: chosen where somebody asks; 0: as the engine has it."""
AUTO = "auto"
"""In place of values of a field: those that are usual."""
APART, TOGETHER = "disaggregated", "aggregated"
"""Values of `serving`."""
OF_DECODE = tuple(f"{DECODE}{name}" for name in (*DEGREES, "dp"))
"""Degrees and number of decode workers, where prefill and decode may be apart."""
MOST_PLANS = 5_000_000
MOST_CONTEXT = 1 << 20
"""Tokens of the longest request, where a model states none."""
HOST_SHARE = 2.0
"""GB of host memory for each GiB of an accelerator's own, where nobody states it: an assumption."""
OFFLOAD = "offload"
"""What is searched for where host memory shall be looked at of every accelerator."""
PER_LAYER_TYPE = "per-layer-type"
"""What is searched for where FFNs may have another tensor degree than attention."""


@dataclass(frozen=True)
class Space:
    """What may vary, and its values.

    Args:
        chosen: values by name, of accelerators and what runs on them.
        formats: data types of weights by accelerator and framework; none: both are not looked at together.
        single: degrees that stay 1, by framework.
        degrees: values by degree; ep may hold 0, which stands for all ranks of a stage.
        replicas: numbers of replicas; empty: every power of two that the accelerators allow.
        most: accelerators of a deployment.
        offload: GB of weights that stay on the host, per accelerator, none first; GB of KV cache.
        apart: whether prefill and decode may have workers of their own.
        decode_chips: accelerators of decode workers; empty: those of the prefill workers.
        host: GB of host memory for each accelerator, by id; weights and KV cache may lie there. Empty: none
            is looked at beyond `offload`.
        host_for_all: whether it is looked at too where an accelerator has plans without.
        contexts: tokens of the longest request that the engine takes, the most first: of plans that are equal
            otherwise the first wins. Empty: nobody asks.
        ffns: ranks that share a dense FFN, 0 first: as the engine has it. Empty: nobody asks.
    """

    chosen: Mapping[str, tuple[str, ...]]
    formats: Mapping[tuple[str, str], tuple[str, ...]]
    single: Mapping[str, tuple[str, ...]]
    degrees: Mapping[str, tuple[int, ...]]
    replicas: tuple[int, ...]
    most: int
    offload: Mapping[str, tuple[float, ...]]
    apart: bool = False
    decode_chips: tuple[str, ...] = ()
    host: Mapping[str, float] = field(default_factory=dict)
    host_for_all: bool = False
    contexts: tuple[int, ...] = ()
    ffns: tuple[int, ...] = ()

    def replica_degrees(self) -> pd.DataFrame:
        """The degrees of every replica within the limit of accelerators, each once; a column for each."""
        rows = dict.fromkeys(self._rows())
        return pd.DataFrame([*rows], columns=[*DEGREES]).astype(int)

    def _rows(self) -> Iterator[tuple[int, ...]]:
        for tp, pp, cp, attention_dp in product(*(self.degrees[name] for name in DEGREES[:-1])):
            if tp * pp * cp * attention_dp > self.most:
                continue
            stage = tp * cp * attention_dp
            for ep in self.degrees["ep"]:
                yield tp, pp, cp, attention_dp, (ep or stage)

    def plans(self) -> pd.DataFrame:
        """All plans, a row each, with one replica: names, degrees and what is offloaded.

        Raises:
            InputError: where there are too many.
        """
        return self._crossed(self.replica_degrees(), self.ffns)

    def pairs(self) -> pd.DataFrame:
        """All plans with prefill and decode workers of their own, so many of each as there may be.

        Workers have no pipeline and share no prompt: they are split by TP or by attention-DP. FFNs of both
        have the first TP of `ffns`.
        """
        kinds = [row for row in self._rows() if row[1] == row[2] == 1 and 1 in (row[0], row[3])]
        rows = []
        for first, last in product(dict.fromkeys(kinds), repeat=2):
            sizes = first[0] * first[3], last[0] * last[3]
            for count in range(1, (self.most - sizes[1]) // sizes[0] + 1):
                for others in range(1, (self.most - count * sizes[0]) // sizes[1] + 1):
                    rows.append((*first, count, *last, others))
        degrees = pd.DataFrame(rows, columns=[*DEGREES, "dp", *OF_DECODE]).astype(int)
        plans = self._crossed(degrees, self.ffns[:1])
        if not self.decode_chips:
            return plans.assign(**{f"{DECODE}accelerator": plans["accelerator"]})
        plans = plans.merge(pd.DataFrame({f"{DECODE}accelerator": self.decode_chips}), how="cross")
        rows = plans[[f"{DECODE}accelerator", "framework", "weights_dtype"]].itertuples(index=False)
        return plans[[weights in self.formats[chip, name] for chip, name, weights in rows]]

    def _crossed(self, degrees: pd.DataFrame, ffns: tuple[int, ...]) -> pd.DataFrame:
        """Every choice of names with all degrees."""
        if ffns:
            degrees = degrees.merge(pd.DataFrame({FFN_TP: ffns}), how="cross")
            degrees = degrees[_divides_ffns(degrees)]
        rows = [
            (*names, weights)
            for names in product(*self.chosen.values())
            for values in (dict(zip(self.chosen, names, strict=True)),)
            for weights in self.formats[values["accelerator"], values["framework"]]
        ]
        named = pd.DataFrame(rows, columns=[*self.chosen, "weights_dtype"])
        moved = pd.DataFrame([*product(*self.offload.values())], columns=[*self.offload])
        if self.contexts:
            moved = moved.merge(pd.DataFrame({CONTEXT: self.contexts}), how="cross")
        count = len(degrees) * len(named) * len(moved)
        if count > MOST_PLANS:
            raise InputError(
                f"{count:,} plans; expected at most {MOST_PLANS:,}: fix some of "
                f"{', '.join((*CHOSEN, *DEGREES))}"
            )
        plans = named.merge(degrees, how="cross").merge(moved, how="cross")
        split = [
            (plans["framework"] == framework) & (plans[[*names]] > 1).any(axis=1)
            for framework, names in self.single.items()
        ]
        return plans[~np.logical_or.reduce(split)].reset_index(drop=True) if split else plans


def _divides_ffns(degrees: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether TP of FFNs divides TP, or is all ranks of a stage, and differs from what it is unstated."""
    ffn, tp = degrees[FFN_TP], degrees["tp"]
    stage = degrees[["tp", "cp", "attention_dp"]].prod(axis=1)
    sends = (degrees["ep"] > 1) & (stage > tp)
    possible = (tp % ffn.clip(lower=1) == 0) | (ffn == stage)
    return np.asarray((ffn == 0) | (possible & (ffn != tp.where(sends, stage))))


def usual_space(
    scenario: Mapping[str, Any],
    over: Mapping[str, Sequence[Any]],
    model: Model,
    library: Library,
    most: int,
    searched: Sequence[str] = (),
    makers: Sequence[str] = (),
    host_memory: float | None = None,
) -> Space:
    """What is looked at where somebody fixes or lists a part of it.

    Frameworks that nobody names are those that `launch` starts. Data types are those of the checkpoint and
    those in which the model entry says that a checkpoint is published for an accelerator and a framework, and
    a KV cache in fp8. Files of a framework's own in smaller data types change what a model says: they are
    looked at where somebody names framework or weights, or no other framework runs. Degrees are powers of
    two; TP also other divisors of the heads. Attention-DP is for models with experts or latents alone, and a
    way that a framework calls experimental is looked at where somebody states its degree.

    Args:
        scenario: fields that are fixed.
        over: fields with values to choose from.
        most: accelerators at most.
        searched: what is looked at beyond the usual: cp, disaggregated, offload, per-layer-type.
        makers: whose accelerators may be chosen; all without.
        host_memory: GB of the host for each accelerator; None: twice what the accelerator has; 0: none.

    Raises:
        InputError: for a name that the library does not have, a degree that cannot be, a maker without
            chips.
    """
    fixed = {name: (value,) for name, value in scenario.items() if value is not None}
    given = {**fixed, **{name: tuple(values) for name, values in over.items()}}
    chosen = {
        "accelerator": given.get("accelerator", ("all",)),
        "system": given.get("system", (DEFAULT_SYSTEM,)),
        "framework": given.get("framework", ("all",)),
        "kv_dtype": given.get("kv_dtype", caches(model)),
    }
    chosen["accelerator"] = _chips(chosen["accelerator"], makers, library)
    chosen["system"] = tuple(
        name if name == DEFAULT_SYSTEM else library.system(str(name)).id for name in chosen["system"]
    )
    chosen["kv_dtype"] = tuple(library.datatype(str(name), "kv").id for name in chosen["kv_dtype"])
    decode = given.get(f"{DECODE}accelerator", ())
    decode = _chips(decode, (), library) if decode else ()
    named = engines(library) if chosen["framework"] == ("all",) else chosen["framework"]
    chosen["framework"] = tuple(library.framework(str(name)).id for name in named)
    weights = tuple(library.datatype(str(name), "weights").id for name in given.get("weights_dtype", ()))
    formats = {
        (chip, name): weights or published(model, library.framework(name), library.accelerator(chip))
        for chip in dict.fromkeys((*chosen["accelerator"], *decode))
        for name in chosen["framework"]
    }
    if not {"framework", "weights_dtype"} & given.keys():
        formats |= dict.fromkeys(_smaller(formats, model, library), ())
    powers = tuple(1 << place for place in range(most.bit_length()))
    heads, experts, latents = (
        int(model.architecture.value(fact) or 0) for fact in ("attention_heads", "experts", "kv_lora_rank")
    )
    usual = {
        "tp": tuple(n for n in range(1, most + 1) if n in powers or (heads and heads % n == 0)),
        "pp": tuple(n for n in powers if n <= MOST_STAGES),
        "cp": powers if "cp" in searched else (1,),
        "attention_dp": powers if experts or latents else (1,),
        "ep": (1, 0) if experts else (1,),
    }
    degrees = {name: _whole(name, given.get(name, usual[name])) for name in DEGREES}
    offload = {name: tuple(float(n) for n in given.get(name, (0.0,))) for name in OFFLOADED}
    return Space(
        chosen,
        formats,
        {
            name: tuple(way for way in library.framework(name).experimental if way not in given)
            for name in chosen["framework"]
        },
        degrees,
        _whole("dp", given.get("dp", ())),
        most,
        offload,
        apart=APART in searched,
        decode_chips=decode,
        host={} if given.keys() & {*OFFLOADED} else _host(chosen["accelerator"], host_memory, library),
        host_for_all=OFFLOAD in searched,
        contexts=_contexts(given.get(CONTEXT, ()), scenario, model),
        ffns=_ffns(given.get(FFN_TP, ()), PER_LAYER_TYPE in searched, degrees, model),
    )


def shares_ffns(model: Model) -> bool:
    """Whether a model has dense FFNs or shared experts, of which TP may differ from that of attention."""
    architecture = model.architecture
    return any("ffn" in layer for layer in architecture.sequence()) or bool(
        architecture.value("shared_expert_size")
    )


def _ffns(
    listed: Sequence[Any], searched: bool, degrees: Mapping[str, tuple[int, ...]], model: Model
) -> tuple[int, ...]:
    """Ranks that share a dense FFN, 0 first; usual are the degrees of attention and what they come to."""
    if listed:
        return tuple(sorted(_whole(FFN_TP, listed)))
    if not searched or not shares_ffns(model):
        return ()
    stages = {
        tp * groups * cp for tp, groups, cp in product(*(degrees[n] for n in ("tp", "attention_dp", "cp")))
    }
    return (0, *sorted({*degrees["tp"], *stages}))


def _contexts(listed: Sequence[Any], scenario: Mapping[str, Any], model: Model) -> tuple[int, ...]:
    """Tokens of the longest request, the most first; usual are powers of two that hold a request."""
    if tuple(listed) != (AUTO,):
        return tuple(sorted(_whole(CONTEXT, listed), reverse=True))
    least = sum(int(scenario.get(name) or 0) for name in ("input_tokens", "output_tokens"))
    most = int(model.architecture.value("max_positions") or MOST_CONTEXT)
    powers = (1 << place for place in range(most.bit_length()))
    return tuple(sorted({most, *(tokens for tokens in powers if least <= tokens < most)}, reverse=True))


def _host(chips: Sequence[str], stated: float | None, library: Library) -> dict[str, float]:
    """Host memory in GB for each accelerator; those without a link to such memory are left out."""
    known = [library.accelerator(chip) for chip in chips]
    linked = [chip for chip in known if chip.host_bandwidth is not None and chip.host_bandwidth.value]
    if stated is not None:
        return {chip.id: stated for chip in linked if stated > 0}
    return {chip.id: HOST_SHARE * chip.memory_capacity.value for chip in linked if chip.memory_capacity.value}


def _smaller(
    formats: Mapping[tuple[str, str], tuple[str, ...]], model: Model, library: Library
) -> Iterator[tuple[str, str]]:
    """Accelerators and frameworks with files of their own, where another framework runs the checkpoint's."""
    listed = {str(model.architecture.choices["weights_dtype"].value)}
    listed |= {one.weights_dtype for one in model.formats}
    keeps = {pair for pair, kinds in formats.items() if set(kinds) <= listed}
    runs = {
        pair for pair in keeps if library.accelerator(pair[0]).vendor in library.framework(pair[1]).vendors
    }
    served = {chip for chip, _ in runs}
    return (pair for pair in formats if pair[0] in served and pair not in keeps)


def _chips(names: Sequence[Any], makers: Sequence[str], library: Library) -> tuple[str, ...]:
    """Accelerators by their ids, those of some makers alone."""
    every = [chip.id for chip in library.accelerators]
    known = tuple(
        library.accelerator(str(name)).id for name in (every if tuple(names) == ("all",) else names)
    )
    if not makers:
        return known
    vendors = {chip.vendor.lower() for chip in library.accelerators}
    for maker in makers:
        if maker.lower() not in vendors:
            raise InputError(f"--makers: {unknown('maker', maker, sorted(vendors))}")
    wanted = {maker.lower() for maker in makers}
    of_makers = tuple(name for name in known if library.accelerator(name).vendor.lower() in wanted)
    if not of_makers:
        raise InputError(f"--makers {','.join(makers)}: none of the accelerators is of them")
    return of_makers


def _whole(name: str, values: Sequence[Any]) -> tuple[int, ...]:
    least = 0 if name in ("ep", FFN_TP) else 1
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{name}: expected whole numbers from {least} on, found {value!r:.40}")
    return tuple(values)


def engines(library: Library) -> tuple[str, ...]:
    """Frameworks that `launch` starts."""
    return tuple(one.id for one in library.frameworks if one.id in launch_tables() and not one.former)


def published(model: Model, framework: Framework, chip: Accelerator | None = None) -> tuple[str, ...]:
    """Data types of weights in which a model is published for a framework and an accelerator.

    That of its checkpoint first, then those of the checkpoints that the model entry lists. Of a framework
    with files of its own, which anybody makes, those that are usual, from the smallest on, unless it keeps
    the checkpoint's.

    Args:
        chip: None: of no checkpoint but its own.
    """
    own = str(model.architecture.choices["weights_dtype"].value)
    if framework.weights == CHECKPOINT:
        listed = (
            one.weights_dtype
            for one in model.formats
            if chip is not None and runs_on(one.hub_id, one.weights_dtype, chip.places, framework.id)
        )
        return tuple(dict.fromkeys((own, *listed)))
    if own in framework.keeps:
        return (own,)
    return tuple(dict.fromkeys((framework.weights, framework.attention)))
