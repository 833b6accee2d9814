"""The drafter of a pass: which operations its layer has, and the step made again for one token.

What it costs stands in draft.eq.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mantile.equations.constant import TOKENS_PER_STEP
from mantile.equations.phase import Phase
from mantile.equations.plan import Scope, scope
from mantile.equations.roofline import MEMORY, Block
from mantile.equations.tables import Equations, Space
from mantile.equations.workers import DECODE, Workers
from mantile.graph.quantity import Named, Node, Section, as_node
from mantile.graph.rewrite import GraphRewrite
from mantile.ir.modules import ModelGraph

AGAIN = "draft."
"""What ids of figures begin with that are made again for one token of a request."""


@dataclass(frozen=True)
class Drafter:
    """Drafting as a block of a pass.

    Args:
        sections: its rows; of a step those made again for one token above them, and the step without drafts
            below.
    """

    block: Block
    sections: tuple[Section, ...]


def draft(
    phase: Phase,
    ir: ModelGraph,
    workers: Workers,
    blocks: Sequence[Block],
    after: Mapping[Scope, Block],
    host: Section,
    rows: Equations,
) -> Drafter | None:
    """The drafter of a pass; None where no scenario speculates.

    Args:
        blocks: of the pass; `after` the messages that follow partial results; `host` the step overhead.
    """
    if "speculation" not in rows.features:
        return None
    figures = tuple(row for of in (*(block.section for block in blocks), host) for row in of.figures())
    rows.know(*figures, *(block.layer_time for block in after.values()))
    own = f"{phase.id}."
    if phase.decode:
        again = _one_token(workers, figures)
        rows.make_again(AGAIN.removesuffix("."), ", one token", again)
        _make_step(rows, [*(block.time.id for block in blocks), f"{own}step.time"])
    else:
        _make_layers(rows, ir, {block.id: block for block in blocks}, after, own)
    (drafter,) = rows.sections("draft", "Drafter", prefix=own)
    sections: tuple[Section, ...] = (drafter, *rows.sections("draft", "Without drafts", prefix=own))
    if phase.decode:
        note = "the step made again, for the drafter and for what it brings"
        sections = (Section("One token of each request", again.made(figures), note), *sections)
    time = rows[f"{own}draft.time"]
    block = Block(
        id="draft",
        label="Drafter",
        section=drafter,
        time=time,
        bound=rows[f"{own}draft.bound"],
        layer_time=time,
        memory=time,
        reached={MEMORY: workers.efficiency["gemm_bytes.attention"]},
    )
    return Drafter(block, sections)


def _one_token(workers: Workers, figures: tuple[Named, ...]) -> GraphRewrite:
    """The step with one token of each request, with the batch there is."""
    rows = workers.rows
    one: dict[Named, Node] = {
        rows["speculation.checked"]: TOKENS_PER_STEP,
        rows["speculation.check_time"]: as_node(0),
    }
    one |= {figure: figure for section in workers.memory.sections for figure in section.figures()}
    return GraphRewrite(one, (), AGAIN, ", one token", figures)


def _make_layers(
    rows: Equations,
    ir: ModelGraph,
    blocks: Mapping[str, Block],
    after: Mapping[Scope, Block],
    own: str,
) -> None:
    """Make the rows of a layer like the model's own, in a prompt and in a step: modules, and messages behind
    them."""
    step = Space(home="decode", features=frozenset({"step"}))
    if "disaggregated" in rows.features:
        step = replace(step, prefix=DECODE, inputs="inputs.decode_")
    rows.make_in("drafted pass", Space(home="prefill", features=frozenset({"prompt"})), step)
    modules = dict.fromkeys(module for layer in ir.drafting for module in layer.modules)
    members = [blocks[module.id] for module in modules]
    sums = [after[scope(module)].layer_time.id.removeprefix(own) for module in modules if module.reduces]
    times = [*(block.layer_time.id.removeprefix(own) for block in members), *sums]
    launches = [block.launch.id.removeprefix(own) for block in members if block.launch is not None]
    facts = {
        "layer": _sum(rows, "part of a layer", "layer_of", times),
        "alone": _sum(rows, "part of a layer alone", "layer_alone_of", _alone(times)),
        "launches": _sum(rows, "part of launches", "fixed_of", launches),
        "fixed": _sum(rows, "part of launches alone", "fixed_of", _alone([*launches, *sums])),
    }
    rows.make_in("drafter of a pass", Space(suffix=_DRAFTER, facts=facts))


def _make_step(rows: Equations, times: list[str]) -> None:
    """Make the rows of the step without drafts."""
    total = _sum(rows, "part of a step", "plain_of", [f"{AGAIN}{time}" for time in times], _PLAIN)
    rows.make_in("plain step", Space(suffix=_PLAIN, facts={"times": total}))


_DRAFTER, _PLAIN = ", drafter", ", no drafts"
_MOST = 8
"""Times that a formula may add."""


def _alone(names: Iterable[str]) -> list[str]:
    """Times of a step made again for one token of each request."""
    return [f"{AGAIN}decode.{name}" for name in names]


def _sum(rows: Equations, each: str, name: str, parts: list[str], suffix: str = _DRAFTER) -> str:
    """What adds up parts; of many, some in a row each."""
    if len(parts) <= _MOST:
        return " + ".join(parts)
    some = [parts[start : start + _MOST] for start in range(0, len(parts), _MOST)]
    facts = [{"n": f"{number}", "times": " + ".join(of)} for number, of in enumerate(some, 1)]
    rows.make_in(each, *(Space(suffix=suffix, facts=fact) for fact in facts))
    return " + ".join(f"draft.{name}.{fact['n']}" for fact in facts)
