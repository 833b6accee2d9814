"""What the builders of blocks share: facts by role, widths, tensors by the family's names, modules."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass

from mantile.graph.quantity import Apply, Input, Literal, Node, Quantity, as_node
from mantile.ir.modules import (
    Elementwise,
    ElementwiseKind,
    MatMul,
    Module,
    Operation,
    Part,
    Split,
    Tensor,
    Weights,
    Width,
)
from mantile.library.architecture import Architecture, Block, Step
from mantile.library.facts import fact_kind
from mantile.library.huggingface.tensor_names import TensorNames


@dataclass
class DecoderBuilder:
    """What the blocks of one decoder are built with.

    Args:
        names: what its checkpoint calls the tensors.
        facts: inputs by the name of the fact; made from the architecture.
        widths: dimensions that tensor parallelism splits, by what they are made of; filled while blocks are
            built.
    """

    architecture: Architecture
    names: TensorNames
    facts: dict[str, Input] = field(default_factory=dict)
    widths: dict[str, Width] = field(default_factory=dict)

    def __post_init__(self) -> None:
        recorded = any(block.kind == "recorded" for block in self.architecture.blocks.values())
        for name, fact in self.architecture.facts.items():
            kind = fact_kind(name)
            assert kind is not None
            fixed = kind.structural or (kind.most is not None and recorded)
            said = "user override" if fact.origin == "override" else fact.origin
            self.facts[name] = Input(
                id=f"model.{name}",
                label=kind.label,
                unit=kind.unit,
                value=fact.value,
                note=kind.note,
                shared=True,
                integer=True,
                source=f"{said}: {fact.source}",
                status=fact.origin,
                fixed=fixed,
                minimum=fact.value if fixed else min(kind.least, 1),
                maximum=fact.value if fixed else kind.most or 100_000_000,
            )

    def width(self, name: str, label: str, units: Input, size: Input, split: Split, called: str = "") -> Node:
        """A dimension of `units` x `size` channels, split by unit; made once for the same facts."""
        key = f"{units.id} × {size.id} {split}"
        if key not in self.widths:
            ids = {width.total.id for width in self.widths.values()}
            identifier = f"model.{name}"
            while identifier in ids:
                identifier += f".{units.id.removeprefix('model.')}"
                label = f"{label}, {_layers_of(units, size)}"
            total = Quantity(identifier, label, "channel", units * size, name=called)
            self.widths[key] = Width(total=total, units=units, size=size, split=split)
        return self.widths[key].total

    def count(self, units: Input, split: Split) -> Node:
        """A dimension of as many channels as there are units, split by unit."""
        width = Width(total=units, units=units, size=None, split=split)
        return self.widths.setdefault(f"{units.id} ×  {split}", width).total

    def columns(self, fact: Input) -> Node:
        """Columns of a matrix, split over the ranks."""
        return self.count(fact, "columns")

    def matrix(
        self,
        key: str,
        outputs: Node,
        inputs: Node,
        weights: Weights = "attention",
        bias: int = 0,
        copies: Node | None = None,
        routed: bool = False,
    ) -> tuple[Tensor, ...]:
        """A matrix of [outputs, inputs] in every layer, and its bias where there is one.

        Args:
            key: of the family's names.
            weights: class that its data type follows.
            bias: 1 if there is one.
            copies: how many a layer holds; None for one.
            routed: whether a token goes through some of the copies only.
        """
        name = f"{self.names.layer}{self.names[key]}"
        shape = (inputs, outputs) if self.names.transposed else (outputs, inputs)
        weight = Tensor(f"{name}.weight", shape, copies=copies, weights=weights, routed=routed)
        if not bias:
            return (weight,)
        return (weight, Tensor(f"{name}.bias", (outputs,), copies=copies, matrix=False, routed=routed))

    def vector(self, key: str, *shape: Node, suffix: str = ".weight", buffer: bool = False) -> Tensor:
        """A vector, or a small table that stays in 16 bit, in every layer; a buffer is no parameter."""
        name = f"{self.names.layer}{self.names[key]}{suffix}"
        return Tensor(name, shape, matrix=False, buffer=buffer)

    def norm(self, key: str, width: Node, bias: int = 0) -> tuple[Tensor, ...]:
        """Weights of a norm in every layer, with a bias if `bias` is 1."""
        suffixes = (".weight", ".bias") if bias else (".weight",)
        return tuple(self.vector(key, width, suffix=suffix) for suffix in suffixes)

    def convolution(self, key: str, channels: Node, facts: BlockFacts) -> tuple[Tensor, ...]:
        """A short convolution of every channel by itself, in 16 bit, and its bias where there is one."""
        weight = self.vector(key, channels, as_node(1), facts["conv_kernel"])
        if not facts.value("conv_bias"):
            return (weight,)
        return (weight, self.vector(key, channels, suffix=".bias"))


def _layers_of(*facts: Input) -> str:
    """The layers that a label names: "full layers" in "KV heads, full layers"; else the first label."""
    parts = [fact.label.partition(", ") for fact in facts]
    return next((layers for _, _, layers in parts if layers), parts[0][0])


class BlockFacts:
    """The facts of a model by the role they play in one block, which may name another fact for a role."""

    def __init__(self, builder: DecoderBuilder, block: Block) -> None:
        self._builder, self._block = builder, block

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of a recorded block."""
        return self._block.steps

    def __contains__(self, role: str) -> bool:
        return self._block.uses.get(role, role) in self._builder.facts

    def __getitem__(self, role: str) -> Input:
        return self._builder.facts[self._block.uses.get(role, role)]

    def get(self, role: str, default: Input) -> Input:
        """A fact by role, or what takes its place where the architecture has none."""
        if role not in self:
            return default
        return self[role]

    def value(self, role: str) -> int:
        """A fact's value when the model is built; 0 if there is none.

        It decides structure only: shapes take the input.
        """
        return self._builder.architecture.value(self._block.uses.get(role, role))


def build_module(
    step: str,
    operation: Operation,
    *tensors: tuple[Tensor, ...],
    label: str,
    short: str,
    part: Part,
    kind: str = "",
    reduces: bool = False,
) -> Module:
    """A module before its layers are counted; the arguments are those of `Module`."""
    return Module(
        id=step,
        step=step,
        label=label,
        short=short,
        part=part,
        operation=operation,
        tensors=tuple(tensor for group in tensors for tensor in group),
        kind=kind,
        reduces=reduces,
    )


def projection(
    step: str,
    inputs: Node,
    outputs: Node,
    *tensors: tuple[Tensor, ...],
    label: str,
    short: str,
    kind: str,
    reduces: bool = False,
) -> Module:
    """A matrix product of a mixer, from `inputs` to `outputs` channels of every token."""
    operation = MatMul(inputs, outputs, "attention")
    return build_module(
        step, operation, *tensors, label=label, short=short, part="projections", kind=kind, reduces=reduces
    )


def elementwise(
    step: str,
    work: ElementwiseKind,
    width: Node,
    *tensors: tuple[Tensor, ...],
    label: str,
    short: str,
    kind: str = "",
    wide: bool = False,
) -> Module:
    """A streaming kernel over `width` channels of every token as a module."""
    operation = Elementwise(work, width, wide)
    return build_module(step, operation, *tensors, label=label, short=short, part="small", kind=kind)


def signature(thing: object) -> object:
    """What makes two expressions, operations or modules the same, whoever built them."""
    if isinstance(thing, Input | Quantity):
        return thing.id
    if isinstance(thing, Literal):
        return thing.value
    if isinstance(thing, Apply):
        return (thing.operation, *(signature(argument) for argument in thing.arguments))
    if isinstance(thing, tuple):
        return tuple(signature(item) for item in thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        return (type(thing).__name__, *(signature(getattr(thing, item.name)) for item in fields(thing)))
    return thing
