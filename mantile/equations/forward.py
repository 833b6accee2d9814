"""A forward pass: every module of the model as a block, then the pass as the sum of its modules, split by what binds."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.attention import attention
from mantile.equations.collectives import all_reduce, point_to_point
from mantile.equations.constants import KEYS_AND_VALUES, ONE_REQUEST, TOKENS_PER_STEP
from mantile.equations.efficiency import Efficiency
from mantile.equations.elementwise import elementwise
from mantile.equations.hardware import Hardware
from mantile.equations.linear import product
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block, Phase, limited
from mantile.equations.sharding import Sharding
from mantile.equations.workload import Workload
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Section,
    as_node,
    element,
    maximum,
    position,
    span,
    total,
)  # fmt: skip
from mantile.ir.modules import ModelGraph, Module


@dataclass(frozen=True)
class Pass:
    """One phase, worked out.

    Args:
        blocks: modules in execution order, then messages between ranks.
        time: seconds of the pass, all stages of a pipeline included.
        parts: the same by what binds: compute, memory, network, overhead.
        module_times, launch_parts, compute_parts, memory_parts, network_parts: per module, in the order of `blocks`
            followed by the step overhead; each a contiguous block of rows.
    """

    phase: Phase
    blocks: tuple[Block, ...]
    time: Quantity
    flops: Quantity
    bytes: Quantity
    mfu: Quantity
    mbu: Quantity
    parts: dict[str, Quantity]
    bottleneck: Quantity
    names: tuple[str, ...]
    module_times: tuple[Quantity, ...]
    launch_parts: tuple[Quantity, ...]
    compute_parts: tuple[Quantity, ...]
    memory_parts: tuple[Quantity, ...]
    network_parts: tuple[Quantity, ...]
    sections: tuple[Section, ...]


def forward(phase: Phase, workload_rows: tuple[Named, ...], ir: ModelGraph, inputs: Workload, hardware: Hardware,
            efficiency: Efficiency, plan: Sharding, weight_bytes_read: Node) -> Pass:  # fmt: skip
    """The rows of the Prefill or Decode sheet.

    Args:
        workload_rows: the quantities that say what enters the pass; the first block of the sheet.
        weight_bytes_read: weights a pass reads on one TP rank, all stages included, for the bandwidth used.
    """
    blocks = [_block(phase, module, ir, hardware, efficiency, plan) for module in ir.modules]
    blocks += [all_reduce(phase, inputs, efficiency, ir.facts), point_to_point(phase, inputs, efficiency, ir.facts)]
    step = Quantity(f"{phase.id}.step.time", "Time, step overhead", "s",
                    efficiency["step_host"] + efficiency["step_row"] * (phase.requests / ONE_REQUEST), name="step overhead",
                    note="host time per step + host time per request × requests")  # fmt: skip
    step_section = Section("Step overhead", (step,), "once per pass: scheduler, sampling", Section.SUBTOTAL)

    names = tuple(block.label for block in blocks) + ("Step overhead",)
    ids = tuple(block.id for block in blocks) + ("step",)

    def part(kind: str, label: str, bodies: list[Node], note: str) -> tuple[Quantity, ...]:
        return tuple(
            Quantity(f"{phase.id}.{kind}.{identifier}", f"{label}, {name}", "s", body, note=note, name=f"{label.lower()}, {name}")
            for identifier, name, body in zip(ids, names, bodies, strict=True)
        )  # fmt: skip

    times = part("pass", "Time in the pass", [*(block.time for block in blocks), step], "time of the block above")
    launches: list[Node] = [
        as_node(0) if block.launch is None else block.launch if block.repeats is None else block.launch * block.repeats
        for block in blocks
    ]
    launch_parts = part("overhead", "Overhead", [*launches, step], "launch time × repeats; all of the step overhead")
    bound: dict[str, list[Node]] = {COMPUTE: [], MEMORY: [], NETWORK: []}
    for index, block in enumerate(blocks):
        for kind, parts_of_kind in bound.items():
            part_of_block = limited(block, kind, times[index] - launch_parts[index])
            parts_of_kind.append(as_node(0) if part_of_block is None else part_of_block)
    bound_note = "time in the pass − overhead, where this is the larger time"
    compute_parts = part("compute", "Compute", [*bound[COMPUTE], as_node(0)], bound_note)
    memory_parts = part("memory", "Memory", [*bound[MEMORY], as_node(0)], bound_note)
    network_parts = part("network", "Network", [*bound[NETWORK], as_node(0)], "messages between ranks")

    time = Quantity(f"{phase.id}.time", f"{phase.id.capitalize()} time", "s", total(span(times)), note="sum of the module times",
                    name=f"{phase.id} time")  # fmt: skip
    parts = {
        kind: Quantity(f"{phase.id}.bound.{kind}", f"{kind.capitalize()} time of {phase.id}", "s", total(span(rows)),
                       note=f"sum of the {kind} rows above", name=f"{kind} time")
        for kind, rows in ((COMPUTE, compute_parts), (MEMORY, memory_parts), (NETWORK, network_parts), (OVERHEAD, launch_parts))
    }  # fmt: skip
    kinds = tuple(
        Input(f"{phase.id}.bound_name.{kind}", f"Bound {number}", "1", kind, "name of a limit", "definition", "defined",
              shared=True, fixed=True, name="limits")
        for number, kind in enumerate(parts, 1)
    )  # fmt: skip
    part_span = span(parts.values())
    bottleneck = Quantity(f"{phase.id}.bottleneck", "Bottleneck", "1", element(span(kinds), position(maximum(part_span), part_span)),
                          note="the limit with the largest time")  # fmt: skip
    computing = [block for block in blocks if block.flops is not None]
    flops = [
        Quantity(f"{phase.id}.flops.{block.id}", f"FLOPs in the pass, {block.label}", "FLOP",
                 block.flops * block.repeats if block.repeats is not None else block.flops,  # type: ignore[operator,arg-type]
                 note="FLOPs × repeats")
        for block in computing
    ]  # fmt: skip
    all_flops = Quantity(f"{phase.id}.flops", "FLOPs of the pass", "FLOP", total(span(flops)), note="sum of the rows above, per rank")
    attention_block = next(block for block in blocks if block.id == "attention")
    cache = () if attention_block.bytes is None else (
        Quantity(f"{phase.id}.kv_read", "KV cache read in the pass", "B", attention_block.bytes * ir.facts.layers),
    )  # fmt: skip
    read = Quantity(f"{phase.id}.bytes", "Weights and KV cache read in the pass", "B",
                    weight_bytes_read + cache[0] if cache else weight_bytes_read, name="bytes read")  # fmt: skip
    mfu = Quantity(f"{phase.id}.mfu", "Compute used, MFU", "1", all_flops / (time * hardware.linear_peak), name="MFU")
    mbu = Quantity(f"{phase.id}.mbu", "Bandwidth used, MBU", "1", read / (time * hardware.memory_bandwidth), name="MBU")
    sections = (
        Section("What enters", workload_rows, "workload of one pass"),
        *(block.section for block in blocks),
        step_section,
        Section("Time by module", (*times, time), "every module once; this is the number that Serving uses", Section.TOTAL),
        Section("Of it overhead", launch_parts, "launch of kernels, host time"),
        Section("Of it compute", compute_parts, "where the peak limits"),
        Section("Of it memory", memory_parts, "where bandwidth limits"),
        Section("Of it network", network_parts, "messages between ranks"),
        Section("What binds", (*kinds, *parts.values(), bottleneck), "the four add up to the pass", Section.SUBTOTAL),
        Section("Use of the hardware", (*flops, all_flops, *cache, read, mfu, mbu), "against the datasheet peaks"),
    )
    return Pass(phase, tuple(blocks), time, all_flops, read, mfu, mbu, parts, bottleneck, names, times, launch_parts,
                compute_parts, memory_parts, network_parts, sections)  # fmt: skip


def _block(phase: Phase, module: Module, ir: ModelGraph, hardware: Hardware, efficiency: Efficiency, plan: Sharding) -> Block:
    facts = ir.facts
    match module.id:
        case "qkv":
            return product(phase, "qkv", module.label, hardware, efficiency, inputs=facts.hidden_size,
                           outputs=plan.query_width + KEYS_AND_VALUES * plan.kv_width, weight_bytes=hardware.weight_bytes,
                           layers=facts.layers, note="columns split by heads; KV heads copied where there are too few")  # fmt: skip
        case "attention":
            return attention(phase, hardware, efficiency, plan, facts.layers)
        case "output":
            return product(phase, "output", module.label, hardware, efficiency, inputs=plan.query_width,
                           outputs=facts.hidden_size, weight_bytes=hardware.weight_bytes, layers=facts.layers,
                           note="rows split by heads")  # fmt: skip
        case "ffn_up":
            return product(phase, "ffn_up", module.label, hardware, efficiency, inputs=facts.hidden_size,
                           outputs=facts.ffn_input_matrices * plan.ffn, weight_bytes=hardware.weight_bytes, layers=facts.layers,
                           note="columns split over the ranks")  # fmt: skip
        case "ffn_down":
            return product(phase, "ffn_down", module.label, hardware, efficiency, inputs=plan.ffn, outputs=facts.hidden_size,
                           weight_bytes=hardware.weight_bytes, layers=facts.layers, note="rows split over the ranks")  # fmt: skip
        case "lm_head":
            return product(phase, "lm_head", module.label, hardware, efficiency, inputs=facts.hidden_size,
                           outputs=plan.vocabulary, weight_bytes=hardware.head_bytes, layers=None,
                           tokens=phase.requests * TOKENS_PER_STEP, flops_per_s=efficiency["head_flops"],
                           note="last token of every request; vocabulary split over the ranks")  # fmt: skip
        case _:
            return elementwise(phase, module, efficiency, plan, facts)


