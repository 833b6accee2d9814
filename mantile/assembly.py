"""All equations of one model put together: inputs to results, block by block, sheet by sheet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mantile.equations import constants
from mantile.equations.checks import Checks, checks
from mantile.equations.decode import decode
from mantile.equations.efficiency import Efficiency, efficiency
from mantile.equations.forward import Pass, forward
from mantile.equations.hardware import Hardware, hardware
from mantile.equations.memory import Memory, Tensors, memory, tensors
from mantile.equations.prefill import prefill
from mantile.equations.serving import Serving, serving
from mantile.equations.sharding import Sharding, sharding
from mantile.equations.workload import Workload, workload
from mantile.floors import Dimensions, floors
from mantile.graph.quantity import Input, Named, Quantity, Section
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import Library


@dataclass(frozen=True)
class Equations:
    """The graph of a model on a library of hardware. `sheets` holds its blocks in the order a reader meets them."""

    ir: ModelGraph
    library: Library
    inputs: Workload
    hardware: Hardware
    efficiency: Efficiency
    plan: Sharding
    tensors: Tensors
    memory: Memory
    prefill: Pass
    decode: Pass
    serving: Serving
    checks: Checks
    model_parameters: Quantity
    sheets: dict[str, tuple[Section, ...]]

    @cached_property
    def figures(self) -> dict[str, Named]:
        """Every input and quantity by id."""
        found: dict[str, Named] = {}
        for sections in self.sheets.values():
            for section in sections:
                for figure in section.figures():
                    assert found.setdefault(figure.id, figure) is figure, f"two figures called {figure.id}"
        return found

    def all_inputs(self) -> tuple[Input, ...]:
        """Every input, shared ones included."""
        return tuple(figure for figure in self.figures.values() if isinstance(figure, Input))

    def quantities(self) -> tuple[Quantity, ...]:
        """Every worked-out figure."""
        return tuple(figure for figure in self.figures.values() if isinstance(figure, Quantity))


def _architecture(ir: ModelGraph) -> tuple[Quantity, Section]:
    """Parameters by the architecture's own formula, against which the tensors are checked."""
    facts = ir.facts
    query, key_value = ir.query_width, ir.kv_width
    two = constants.KEYS_AND_VALUES
    qkv = Quantity("model.qkv_width", "Width of queries, keys and values", "channel", query + two * key_value)
    biases = Quantity("model.attention_vectors", "Biases and QK norms of a layer", "parameter",
                      facts.qkv_bias * qkv + facts.output_bias * facts.hidden_size
                      + facts.qk_norm * two * facts.head_dim, note="QKV bias + output bias + two QK norms, where there are any")  # fmt: skip
    attention = Quantity("model.attention_parameters", "Parameters of attention in a layer", "parameter",
                         two * facts.hidden_size * (query + key_value) + biases,
                         note="2 × hidden × (query + KV width) + biases and QK norms")  # fmt: skip
    ffn = Quantity("model.ffn_parameters", "Parameters of the FFN in a layer", "parameter",
                   (facts.ffn_input_matrices + 1) * facts.hidden_size * facts.ffn_size
                   + facts.ffn_bias * (facts.ffn_input_matrices * facts.ffn_size + facts.hidden_size),
                   note="(input matrices + 1) × hidden × FFN size + biases")  # fmt: skip
    norms = Quantity("model.norm_parameters", "Parameters of a norm", "parameter", facts.hidden_size * (1 + facts.norm_bias))
    ends = Quantity("model.end_parameters", "Parameters of embedding and LM head", "parameter",
                    facts.vocabulary * facts.hidden_size * (two - facts.tied_embeddings),
                    note="vocabulary × hidden × 2, or × 1 where tied")  # fmt: skip
    parameters = Quantity("model.parameters", "Parameters by the architecture", "parameter",
                          facts.layers * (attention + ffn + two * norms) + norms + ends,
                          note="layers × (attention + FFN + 2 norms) + final norm + embedding and LM head")  # fmt: skip
    return parameters, Section("Size", (query, key_value, qkv, biases, attention, ffn, norms, ends, parameters), "from the facts above",
                               Section.SUBTOTAL)  # fmt: skip


def build(ir: ModelGraph, library: Library) -> Equations:
    """The equations of a model."""
    facts = ir.facts
    inputs, continuous, input_sections = workload(library)
    metal = hardware(library, inputs)
    reached = efficiency(library, inputs, metal)
    parameters, size = _architecture(ir)
    plan = sharding(ir, inputs)
    stored = tensors(ir, plan)
    held = memory(ir, inputs, metal, reached, plan, stored)
    phase, rows = prefill(inputs, continuous, held, facts)
    first = forward(phase, rows, ir, inputs, metal, reached, plan, held.weights_read)
    phase, rows = decode(inputs, held, facts)
    further = forward(phase, rows, ir, inputs, metal, reached, plan, held.weights_read)
    results = serving(inputs, continuous, plan, held, reached, first, further)
    lowest = floors(Dimensions(
        layers=facts.layers, hidden=facts.hidden_size, heads=facts.attention_heads, kv_heads=facts.kv_heads,
        head_dim=facts.head_dim, ffn=facts.ffn_size, ffn_matrices=facts.ffn_input_matrices, vocabulary=facts.vocabulary,
        window=facts.sliding_window, weight_bytes=metal.weight_bytes, head_bytes=metal.head_bytes, kv_bytes=metal.kv_bytes,
        peak=metal.linear_peak, bandwidth=metal.memory_bandwidth, tp=inputs.tp, prompts=first.phase.requests,
        input_tokens=inputs.input_tokens, output_tokens=inputs.output_tokens, decode_requests=further.phase.requests,
    ))  # fmt: skip
    standing = checks(ir, inputs, metal, reached, plan, stored, held, first, further, results, parameters, lowest.ttft,
                      lowest.tpot)  # fmt: skip
    sheets = {
        "Inputs": (*input_sections, constants.SECTION),
        "Hardware": metal.sections,
        "Efficiency": reached.sections,
        "Model": (Section("Architecture", facts.rows(), "facts of the checkpoint; structure is grey"), size),
        "Tensors": stored.sections[:-4],
        "Plan": (plan.section,),
        "Memory": (*stored.sections[-4:], *held.sections),
        "Prefill": first.sections,
        "Decode": further.sections,
        "Serving": (*results.sections, lowest.section, standing.section),
    }
    return Equations(ir, library, inputs, metal, reached, plan, stored, held, first, further, results, standing, parameters,
                     sheets)  # fmt: skip
