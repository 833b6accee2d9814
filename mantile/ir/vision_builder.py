"""What the builders of vision towers share: facts as inputs, and tensors by what goes through them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mantile.graph.quantity import Input, Node, floor
from mantile.ir.modules import Tensor
from mantile.library.architecture import Tower
from mantile.library.facts import VISION_FACTS

Stage = Literal["patch", "token", ""]
"""What goes through a matrix: every patch, every image token, or nothing."""


@dataclass
class VisionBuilder:
    """What a tower and its projector are built with; it collects their tensors.

    Args:
        text: width of the decoder.
        facts: inputs by the name of the fact; made from the tower.
        tensors: all tensors, in order.
        matrices: those that are multiplied with, by what goes through them.
        prefix, count: of the tensors added next: where they stand, and how often (None for once).
        stage: what goes through the matrices added next: every patch, every image token, or nothing.
    """

    tower: Tower
    text: Input
    facts: dict[str, Input] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)
    matrices: dict[Stage, list[Tensor]] = field(default_factory=lambda: {"patch": [], "token": [], "": []})
    stage: Stage = "patch"
    prefix: str = ""
    count: Node | None = None

    def __post_init__(self) -> None:
        for name, fact in self.tower.facts.items():
            kind = VISION_FACTS[name]
            self.facts[name] = Input(
                id=f"model.vision.{name}",
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
                maximum=10_000_000,
            )

    def __getitem__(self, name: str) -> Input:
        return self.facts[name]

    def has(self, flag: str) -> bool:
        """Whether a flag is set, or a count above 0, when the model is built."""
        return flag in self.tower.facts and self.tower.facts[flag].value > 0

    def within(self, prefix: str, count: Node | None = None, stage: Stage | None = None) -> None:
        """Where the tensors added next stand, how often, and what goes through them; None keeps the stage."""
        self.prefix, self.count = prefix, count
        self.stage = self.stage if stage is None else stage

    def matrix(self, name: str, *shape: Node, bias: Node | None = None) -> None:
        """A matrix or a convolution of a shape, and its bias of a width where it has one."""
        weight = Tensor(f"{self.prefix}{name}.weight", shape, layers=self.count)
        self.tensors.append(weight)
        self.matrices[self.stage].append(weight)
        if bias is not None:
            self.vector(f"{name}.bias", bias)

    def vector(self, name: str, *shape: Node, buffer: bool = False) -> None:
        """What no product reads: norms, biases, tables of positions."""
        self.tensors.append(
            Tensor(f"{self.prefix}{name}", shape, layers=self.count, matrix=False, buffer=buffer)
        )

    def norms(self, *names: str, width: Node | None = None, bias: bool = True) -> None:
        """Norms of the tower's width, or of another; LayerNorm has a bias."""
        for name in names:
            for suffix in (".weight", ".bias") if bias else (".weight",):
                self.vector(name + suffix, self["hidden_size"] if width is None else width)

    def attention(self, *names: str, bias: bool = True) -> None:
        """Query, key, value and output matrices, all of the tower's width."""
        width = self["hidden_size"]
        for name in names:
            self.matrix(name, width, width, bias=width if bias else None)

    def ffn(self, *inputs: str, down: str, bias: bool = True) -> None:
        """A plain FFN, or a gated one of two input matrices."""
        width, inner = self["hidden_size"], self["ffn_size"]
        for name in inputs:
            self.matrix(name, inner, width, bias=inner if bias else None)
        self.matrix(down, width, inner, bias=width if bias else None)

    def grid(self) -> Node:
        """Patches along a side of an image."""
        return floor(self["image_size"] / self["patch_size"])

    def merged(self) -> Node:
        """Patches that become one image token."""
        return self["merge"] * self["merge"]

    def patch_pixels(self) -> tuple[Node, ...]:
        """The shape of a patch: channels, frames of a video, height, width."""
        frames = (self["temporal_patch"],) if "temporal_patch" in self.facts else ()
        return (self["channels"], *frames, self["patch_size"], self["patch_size"])
