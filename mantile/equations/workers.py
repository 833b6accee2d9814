"""One set of accelerators before any pass: those that do everything, or prefill or decode workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from mantile.equations.efficiency import Efficiency, efficiency
from mantile.equations.formats import Formats, formats
from mantile.equations.hardware import Hardware, hardware
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.memory import Memory, memory
from mantile.equations.override import Overridable
from mantile.equations.plan import Sharding, sharding
from mantile.equations.support import support
from mantile.equations.tables import Equations, OfSpace
from mantile.equations.tensors import Tensors, tensors
from mantile.graph.quantity import Named, Node, Quantity, Section, all_of, join, maximum, text, where
from mantile.graph.rewrite import GraphRewrite
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import Library

DECODE = "decode."
"""What ids of decode workers begin with."""


@dataclass(frozen=True)
class Workers:
    """Accelerators, how a model is spread over them, and what lies in their memory.

    Args:
        rows: those that stand as text, with what these accelerators have to themselves.
    """

    inputs: Workload
    ranks: Ranks
    hardware: Hardware
    formats: Formats
    support: tuple[Section, ...]
    efficiency: Efficiency
    plan: Sharding
    tensors: Tensors
    memory: Memory
    rows: OfSpace

    @property
    def prompt(self) -> Node:
        """Tokens of a prompt to work out: those that no cache holds."""
        return self.rows["prefix.computed"] if "prefixes" in self.rows.features else self.inputs.input_tokens

    @property
    def prefix(self) -> str:
        """What ids of its rows begin with."""
        return self.rows["hardware.tdp"].id.removesuffix("hardware.tdp")

    def machine(self) -> Iterator[Named]:
        """What network rows follow from: accelerators, factors, and how ranks work together."""
        for section in (*self.hardware.sections, *self.efficiency.sections):
            yield from section.figures()
        yield from self.ranks.rows()

    def sections(self) -> tuple[Section, ...]:
        """All blocks of figures that follow from what these accelerators are."""
        return (
            *self.hardware.sections,
            *self.formats.sections,
            *self.support,
            *self.efficiency.sections,
            *self.plan.sections,
            *self.tensors.on_rank,
            *self.memory.sections,
        )

    def overridable(self) -> tuple[Overridable, ...]:
        """The cells that stand for figures of the library once filled."""
        return (*self.hardware.overridable, *self.efficiency.overridable)


def degrees(sets: tuple[Workers, ...]) -> list[Node]:
    """The degrees of parallelism in a few letters, a space behind each.

    Those of decode workers stand behind an arrow, where they are apart.
    """
    disaggregated = sets[0].ranks.disaggregated
    if disaggregated is None:
        return [_degrees(sets[0])]
    return [_degrees(sets[0]), _degrees(sets[-1], disaggregated > 0)]


def _degrees(workers: Workers, shown: Node | None = None) -> Node:
    """The degrees of parallelism above 1 in a few letters, and a space.

    Args:
        shown: when; behind an arrow then. Always, and without one, if it is not given.
    """

    def only(condition: Node, content: Node | str) -> Node:
        return where(condition if shown is None else all_of(shown, condition), content, "")

    names = {"tp": "TP", "attention_dp": "DPA", "cp": "CP", "ep": "EP", "pp": "PP", "dp": "DP"}
    if workers.inputs.dcp is not None:
        names["dcp"] = "DCP"
    degree_of = {letters: getattr(workers.inputs, name) for name, letters in names.items()}
    arrow = [] if shown is None else [where(shown, "→ ", "")]
    above = [only(degree > 1, join(letters, text(degree), " ")) for letters, degree in degree_of.items()]
    return join(*arrow, *above, *_without_degrees(workers, only))


def _without_degrees(workers: Workers, only: Callable[[Node, Node | str], Node]) -> Iterator[Node]:
    """Where no degree is above 1: how many accelerators there are, on devices that are not alike."""
    inputs, count = workers.inputs, workers.ranks.deployment
    yield only(count <= 1, "one accelerator ")
    if inputs.devices:
        alone = all_of(count > 1, inputs.tp <= 1, inputs.pp <= 1, inputs.dp <= 1)
        yield only(alone, join(text(count), " accelerators "))


def workers(
    ir: ModelGraph,
    library: Library,
    inputs: Workload,
    ranks: Ranks,
    rows: Equations,
) -> Workers:
    """The accelerators that prefill, or do everything."""
    chips = hardware(library, inputs, rows)
    dtypes = formats(library, inputs, ir, rows)
    factors = efficiency(library, dtypes, ir, rows)
    plan = sharding(ir, inputs, rows)
    stored = tensors(ir, plan, rows)
    rows.know(*(row for section in factors.sections for row in section.figures()))
    return Workers(
        inputs=inputs,
        ranks=ranks,
        hardware=chips,
        formats=dtypes,
        support=support(library, rows, chips.sources),
        efficiency=factors,
        plan=plan,
        tensors=stored,
        memory=memory(ir, dtypes, plan, stored, rows),
        rows=rows.in_space(""),
    )


def of_decode(prefill_workers: Workers) -> Workers:
    """Decode workers: the same figures with inputs of their own, and all requests of the deployment."""
    inputs, of_prefill = prefill_workers.inputs, prefill_workers.rows["memory.requests"]
    own = inputs.of_decode()
    requests = Quantity(
        f"{DECODE}{of_prefill.id}",
        f"{of_prefill.label}, decode",
        "request",
        maximum(1, inputs.concurrency / own[inputs.dp]),
        note="decode workers share all requests",
    )
    figures = [figure for section in prefill_workers.sections() for figure in section.figures()]
    rewrite = GraphRewrite(
        {**{entry: entry for entry in inputs.following()}, **own, of_prefill: requests},
        tuple(overridable.cell for overridable in prefill_workers.overridable()),
        DECODE,
        ", decode",
        (*figures, *prefill_workers.ranks.rows(), *prefill_workers.plan.copied.values()),
    )
    return replace(rewrite.rewrite(prefill_workers), rows=prefill_workers.rows.rows.in_space(DECODE))
