"""What the device before computes of layers: their experts, as --n-cpu-moe of llama.cpp has it, or attention,
whose KV cache lies there, as --no-kv-offload.

    id                                              function
    ----------------------------------------------  ------------------------
    devices.<n>.memory.experts_away .kv_away        moved
    devices.<phase>.<n>.experts_share .kv_share     on_device_before
    devices.<phase>.<n>.experts_bytes .kv_bytes     on_device_before
    devices.<phase>.<n>.experts_sent .kv_sent       on_device_before
    devices.<phase>.<n>.experts_over .kv_over       on_device_before
    devices.<phase>.<n>.<module>.<figure>.both      on_device_before
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mantile.equations.constant import BOTH_WAYS
from mantile.equations.devices_links import Link
from mantile.equations.forward import Pass
from mantile.equations.inputs import DeviceInputs
from mantile.equations.kv_cache import channels_of
from mantile.equations.roofline import Block
from mantile.equations.workers import Workers
from mantile.graph.quantity import Input, Node, Quantity, as_node, maximum, minimum, sum_of, where
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph, Module, Recurrence

OF_RUN = {
    "layer_time": "s",
    "launch": "s",
    "compute": "s",
    "memory": "s",
    "flops": "FLOP",
    "bytes": "B",
    "reads": "B",
}
"""Figures of one run of a module, and their units."""
_EXPERTS = "experts_"


@dataclass(frozen=True)
class _Part:
    """A part of layers that may lie on the device before.

    Args:
        name: what ids call it; its layers are `<name>_away` of a device.
        label: in words.
        holds: whether a module belongs to it.
        further: bytes that go to the device before, beside the activations there and back, per byte of these.
    """

    name: str
    label: str
    holds: Callable[[Module], bool]
    further: Node | None = None


def layers_away(name: str, device: DeviceInputs, before: DeviceInputs) -> Node | None:
    """How many layers of a device have a part on the one before; none where that has been taken out.

    Args:
        name: of the part, `experts` or `kv`.

    Returns:
        None where no scenario states any.
    """
    stated: Input | None = getattr(device, f"{name}_away")
    return None if stated is None else where(before.count > 0, stated, 0)


def _parts(ir: ModelGraph, caches: tuple[Module, ...]) -> Iterator[_Part]:
    yield _Part("experts", "experts", lambda module: module.id.startswith(_EXPERTS))
    states = (module for module in ir.modules if isinstance(module.operation, Recurrence))
    kept = {module.id for module in (*caches, *states)}
    written = channels_of(caches[0]) if caches else None
    yield _Part(
        "kv",
        "KV cache",
        lambda module: module.id in kept,
        None if written is None else written / ir.facts["hidden_size"],
    )


def parts_away(
    ir: ModelGraph, caches: tuple[Module, ...], devices: Sequence[DeviceInputs]
) -> tuple[str, ...]:
    """Parts that layers of the model have and that a scenario lets lie on the device before."""
    return tuple(
        part.name
        for part in _parts(ir, caches)
        if any(part.holds(module) for kind in ir.layers for module in kind.modules)
        and getattr(devices[-1], f"{part.name}_away") is not None
    )


@dataclass(frozen=True)
class Moved:
    """What of a device lies on the one before.

    Args:
        weights: bytes of each rank; None where no scenario moves any.
        share: of the KV cache; None likewise.
        kv: bytes of a request on a rank, of all its layers; `ranks` that it has.
    """

    weights: Quantity | None
    share: Quantity | None
    kv: Node
    ranks: Node

    def weights_there(self, ranks: Node) -> Node:
        """Bytes on a rank of the device before, which has so many."""
        assert self.weights is not None
        return self.weights * self.ranks / ranks

    def kv_there(self, ranks: Node) -> Node:
        """Bytes of a request likewise."""
        assert self.share is not None
        return self.kv * self.share * self.ranks / ranks


def moved(
    inputs: DeviceInputs,
    before: DeviceInputs,
    rows: Callable[..., Quantity],
    experts: Node | None,
    kv: Node,
    ranks: Node,
) -> Moved:
    """What of a device lies on the one before.

    Args:
        inputs: of the device, `before` of the one before.
        rows: makes a row of it.
        experts: bytes of those of a layer on a rank; None in a model without.
        kv: bytes of a request on a rank, of all its layers.
    """
    weights = share = None
    layers, cached = (layers_away(name, inputs, before) for name in ("experts", "kv"))
    if layers is not None and experts is not None:
        weights = rows(
            "memory.experts_away",
            "Experts on the device before",
            "B",
            minimum(layers, inputs.layers) * experts,
            "of each rank",
        )
    if cached is not None:
        share = rows(
            "memory.kv_away",
            "Share of the KV cache on the device before",
            "1",
            minimum(1, cached / maximum(1, inputs.layers)),
            "layers counted, not bytes",
        )
    return Moved(weights, share, kv, ranks)


def on_device_before(
    rows: Rows,
    ir: ModelGraph,
    base: Workers,
    devices: Sequence[DeviceInputs],
    links: Sequence[Link],
    work: Pass,
    passes: Sequence[Pass],
) -> list[Pass]:
    """The passes of devices, where parts of some layers are computed on the device before.

    A module of such a part then takes the mean over its layers; activations go there and back.

    Args:
        links: from each device to the next.
        passes: of each device, as if it had all of its layers.
    """
    made = [*passes]
    for part in _parts(ir, base.memory.caches):
        kinds = [*dict.fromkeys(kind.count for kind in ir.layers if any(map(part.holds, kind.modules)))]
        for place, device in enumerate(devices):
            away = layers_away(part.name, device, devices[place - 1])
            if away is None or not kinds:
                continue
            own = Rows(rows.prefix, f", device {device.number}{rows.suffix}", rows.rows)
            held = sum_of([base.plan.stages.layers[count][place] for count in kinds])
            share = own(
                f"{device.number}.{part.name}_share",
                f"Share of its layers with {part.label} elsewhere",
                "1",
                minimum(1, away / maximum(1, held)),
            )
            sent = _sent(own, part, device.number, links[place - 1], work)
            blocks = _mixed(own, part, device.number, share, sent, made[place], passes[place - 1])
            made[place] = replace(made[place], blocks=tuple(blocks))
            own(
                f"{device.number}.{part.name}_over",
                f"Time of activations to the {part.label} and back, of all its layers",
                "s",
                sent * share * held,
            )
    return made


def _sent(rows: Rows, part: _Part, number: int, link: Link, work: Pass) -> Quantity:
    """Seconds of activations to the device before and back, of one layer."""
    messages = next(block for block in work.blocks if block.id == "p2p")
    size = next(
        figure
        for figure in messages.section.figures()
        if isinstance(figure, Quantity) and figure.id.endswith("message_bytes")
    )
    times: Node = as_node(BOTH_WAYS) if part.further is None else BOTH_WAYS + part.further
    sent = rows(
        f"{number}.{part.name}_bytes",
        f"Activations to the {part.label} and back, of a layer",
        "B",
        size.body * times,
        "" if part.further is None else "and the keys and values of new tokens",
    )
    return rows(
        f"{number}.{part.name}_sent",
        f"Time of activations to the {part.label} and back",
        "s",
        where(link["rate"] > 0, BOTH_WAYS * link["latency"] + sent / link["rate"], 0),
    )


def _mixed(
    rows: Rows, part: _Part, number: int, share: Quantity, sent: Quantity, here: Pass, before: Pass
) -> Iterator[Block]:
    """The blocks of a device, those of the part as they are in the mean of its layers."""
    hop = True
    for block, elsewhere in zip(here.blocks, before.blocks, strict=True):
        if block.network or block.module is None or not part.holds(block.module):
            yield block
            continue
        mixed: dict[str, Any] = {}
        for name, unit in OF_RUN.items():
            one, other = getattr(block, name), getattr(elsewhere, name)
            if one is None or other is None:
                continue
            body = one + share * (other - one)
            if name == "layer_time" and hop:
                body, hop = body + share * sent, False
            mixed[name] = rows(
                f"{number}.{block.id}.{name}.both",
                f"{block.label}, {name.replace('_', ' ')}, here and on the device before",
                unit,
                body,
            )
        yield replace(block, **mixed)
