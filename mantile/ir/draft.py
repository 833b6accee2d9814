"""What the builders of blocks share: facts by role, widths made once, tensors by the family's names."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass

from mantile.graph.quantity import Apply, Input, Literal, Node, Quantity
from mantile.ir.modules import Elementwise, Module, Operation, Part, Split, Tensor, Weights, Width
from mantile.library.architecture import Architecture, Block
from mantile.library.facts import fact_kind
from mantile.library.huggingface.tensor_names import TensorNames


@dataclass
class DecoderBuilder:
    """A model being drawn up."""

    architecture: Architecture
    names: TensorNames
    facts: dict[str, Input] = field(default_factory=dict)
    widths: dict[str, Width] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, fact in self.architecture.facts.items():
            kind = fact_kind(name)
            assert kind is not None
            self.facts[name] = Input(
                id=f"model.{name}",
                label=kind.label,
                unit=kind.unit,
                value=fact.value,
                note=kind.note,
                shared=True,
                integer=True,
                source=f"{fact.origin}: {fact.source}",
                status=fact.origin,
                fixed=kind.structural,
                minimum=min(kind.least, 1),
                maximum=100_000_000,
            )

    def width(
        self, name: str, label: str, units: Input, size: Input | None, split: Split, called: str = ""
    ) -> Node:
        """A dimension that tensor parallelism splits, made once for the same facts: units x size channels, or plain columns."""
        key = f"{units.id} × {size.id if size is not None else ''} {split}"
        if key not in self.widths:
            taken = {width.whole.id for width in self.widths.values()}
            identifier = f"model.{name}"
            while identifier in taken:
                identifier += f".{units.id.removeprefix('model.')}"
                label = f"{label} ({units.label.lower()})"
            whole = (
                units if size is None else Quantity(identifier, label, "channel", units * size, name=called)
            )
            self.widths[key] = Width(whole, units, size, split)
        return self.widths[key].whole

    def columns(self, fact: Input) -> Node:
        """Columns of a matrix, split over the ranks."""
        return self.width("columns", fact.label, fact, None, "columns")

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
        """A stored matrix, and its bias where there is one."""
        name = self.names[key]
        shape = (inputs, outputs) if self.names.transposed else (outputs, inputs)
        weight = Tensor(
            f"{self.names.layer}{name}.weight", shape, copies=copies, weights=weights, routed=routed
        )
        if not bias:
            return (weight,)
        return (
            weight,
            Tensor(f"{self.names.layer}{name}.bias", (outputs,), copies=copies, matrix=False, routed=routed),
        )

    def vector(
        self, key: str, *shape: Node, suffix: str = ".weight", routed: bool = False, buffer: bool = False
    ) -> Tensor:
        """A stored vector, or a small table that stays in 16 bit."""
        return Tensor(
            f"{self.names.layer}{self.names[key]}{suffix}",
            shape,
            matrix=False,
            routed=routed,
            buffer=buffer,
        )

    def norm(self, key: str, width: Node, bias: int = 0) -> tuple[Tensor, ...]:
        """Weights of a norm inside a layer."""
        return tuple(
            self.vector(key, width, suffix=suffix)
            for suffix in ((".weight", ".bias") if bias else (".weight",))
        )


class BlockFacts:
    """A block's facts by role."""

    def __init__(self, draft: DecoderBuilder, block: Block) -> None:
        self._draft, self._block = draft, block

    def __contains__(self, role: str) -> bool:
        return self._block.uses.get(role, role) in self._draft.facts

    def __getitem__(self, role: str) -> Input:
        return self._draft.facts[self._block.uses.get(role, role)]

    def get(self, role: str, otherwise: Input) -> Input:
        """A fact by role, or what stands for it where the architecture has none."""
        if role not in self:
            return otherwise
        return self[role]

    def value(self, role: str) -> int:
        """What a fact is when the model is drawn up; 0 if there is none. For structure only: shapes take the input."""
        return self._draft.architecture.value(self._block.uses.get(role, role))


def step(
    name: str,
    label: str,
    short: str,
    part: Part,
    operation: Operation,
    *tensors: tuple[Tensor, ...],
    reduces: bool = False,
    kind: str = "",
) -> Module:
    """A module before its layers are counted."""
    held = tuple(tensor for group in tensors for tensor in group)
    return Module(name, name, label, short, part, operation, held, reduces=reduces, kind=kind)


def small(
    name: str, label: str, short: str, operation: Elementwise, *tensors: tuple[Tensor, ...], kind: str = ""
) -> Module:
    """A streaming kernel as a module."""
    return step(name, label, short, "small", operation, *tensors, kind=kind)


def signature(thing: object) -> object:
    """What makes two expressions, operations or modules the same whoever built them."""
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
