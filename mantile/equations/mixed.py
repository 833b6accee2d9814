"""What a step with prompts holds, for the text: operations, and the devices that are not alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mantile.equations.forward import Pass
from mantile.equations.roofline import Block
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Node, defined
from mantile.graph.sentence import lowered
from mantile.ir.modules import GroupedMatMul, MatMul


def steps_of(rows: Equations, prefill: Pass, decode: Pass) -> None:
    """Name the operations of a prefill pass, and of those also in the decode step the products of weights."""
    end = "at_end" if "speculation" in rows.features else "lm_head"
    rows.make_in(
        "carried",
        Space(facts={"s": "", "prompts": "serving.prompts_together", "end": end}),
        Space("", ", full step", facts={"s": "full.", "prompts": "serving.prompts_at_most", "end": end}),
    )
    rows.make_in("stage", *(Space(facts={"d": f"{number}"}) for number, _ in enumerate(decode.devices, 1)))
    steps = {block.id: block for block in decode.blocks}
    on_devices = []
    for number, (device, other) in enumerate(zip(prefill.devices, decode.devices, strict=True), 1):
        rows.know_as(f"device.{number}.part", device.part)
        rows.know_as(f"device.{number}.last", device.last)
        on_devices += [
            _space(rows, block, steps_there.get(name), repeats, number)
            for steps_there in ({name: block for name, (block, _) in other.blocks.items()},)
            for name, (block, repeats) in device.blocks.items()
        ]
    shared = {space.facts["m"] for space in on_devices}
    whole = [
        _space(
            rows, block, steps.get(block.id), block.repeats, summed=block.id in shared and not block.network
        )
        for block in prefill.blocks
        if block.id != "host"
    ]
    rows.make_in("beside_on_device", *_without(on_devices, "product"))
    rows.make_in("beside_in_layers", *_once(_without(on_devices, "product")))
    rows.make_in("beside", *_without(whole, "product"))
    products = [space for space in whole if "product" in space.features]
    apart = [space for space in on_devices if "product" in space.features]
    rows.make_in("product", *apart, *_without(products, "on_devices"))
    rows.make_in("added", *products)
    rows.make_in("added_in_layers", *_once(apart))


def operations_of(rows: Equations, name: str, work: Pass) -> None:
    """Name the groups of operations of a pass: those that adapters start, and those of layers of a kind."""
    started = [block.kernels for block in work.blocks if block.kernels is not None]
    counts = Counter(
        block.module.layers for block in work.blocks if block.module is not None and block.kernels is None
    )
    groups = [Space(facts={"count": kernels.id}) for kernels in started]
    for number, (layers, count) in enumerate(counts.items(), 1):
        title = "Operations outside layers" if layers is None else f"Operations of a layer, group {number}"
        rows.know(defined(f"serving.{name}.{number}", title, "1", count, "of the list of modules"))
        facts = {"group": f"{number}", "count": f"serving.{name}.{number}"}
        if layers is not None:
            rows.know_as(f"layers_of.{name}.{number}", layers)
            facts |= {"layers": f"layers_of.{name}.{number}", "count": f"serving.{name}_of.{number}"}
        features = {"counted"} if layers is None else {"counted", "in_layers"}
        groups.append(Space(facts=facts, features=frozenset(features)))
    rows.make_in(name, *groups)


def _space(
    rows: Equations,
    block: Block,
    step: Block | None,
    repeats: Node | None,
    device: int = 0,
    summed: bool = False,
) -> Space:
    """An operation of a prefill pass.

    Args:
        step: the same in a decode step, if it is there.
        device: that it runs on, of several that are not alike; `summed` of all of them.
    """
    number, name = (f"{device}.", f", device {device}") if device else ("", "")
    facts = {"m": block.id, "w": f"{number}{block.id}", "time": block.layer_time.id}
    facts |= {"d": f"{device}"} if device else {}
    facts["name"] = f"{lowered(block.label)}{name}"
    features = {"in_layers"} if device else {"on_devices"} if summed else set()
    if repeats is not None:
        facts["repeats"] = f"repeats.{number}{block.id}"
        rows.know_as(facts["repeats"], repeats)
        features.add("repeated")
    if block.launch is not None:
        facts["launch"] = block.launch.id
        features.add("launched")
    products = MatMul | GroupedMatMul
    if step is not None and block.module is not None and isinstance(block.module.operation, products):
        for of, one in (("prefill", block), ("decode", step)):
            facts[of] = f"{of}_of.{number}{block.id}"
            _know_product(rows, facts[of], one)
        features.add("product")
    return Space(facts=facts, features=frozenset(features))


def _know_product(rows: Equations, name: str, block: Block) -> None:
    """Name what a product of weights takes."""
    assert block.reads is not None and block.bytes is not None
    assert block.compute is not None and block.memory is not None
    rows.know_as(f"{name}.weight_bytes", block.reads)
    rows.know_as(f"{name}.bytes", block.bytes)
    rows.know_as(f"{name}.compute_time", block.compute)
    rows.know_as(f"{name}.memory_time", block.memory)


def _without(spaces: Iterable[Space], feature: str) -> list[Space]:
    return [space for space in spaces if feature not in space.features]


def _once(spaces: Iterable[Space]) -> list[Space]:
    """The operations, whatever device they run on."""
    return [Space(facts={"m": name}) for name in dict.fromkeys(space.facts["m"] for space in spaces)]
