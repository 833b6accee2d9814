"""What lies in the memory of the fullest accelerator, and how many sequences its KV cache holds."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constants import KEYS_AND_VALUES, LOGIT_BYTES, RESULT_BYTES, TOKENS_PER_STEP, VECTOR_BYTES
from mantile.equations.efficiency import Efficiency
from mantile.equations.hardware import Hardware
from mantile.equations.sharding import Sharding
from mantile.equations.workload import Workload
from mantile.graph.quantity import Node, Quantity, Section, maximum, minimum, span, total, where
from mantile.ir.modules import ModelGraph, Tensor


@dataclass(frozen=True)
class Tensors:
    """Stored tensors: parameters of each, and what the fullest rank holds of a layer and of the ends."""

    sections: tuple[Section, ...]
    parameters: Quantity
    layer_matrices: Quantity
    layer_vectors: Quantity
    embedding: Quantity
    head: Quantity
    final_vectors: Quantity


def tensors(ir: ModelGraph, plan: Sharding) -> Tensors:
    """The rows of the Tensors sheet: every tensor once, with its repeats."""
    facts = ir.facts
    sections: list[Section] = []
    whole: list[Quantity] = []
    for module in ir.modules:
        rows = []
        for tensor in module.tensors:
            size: Node = tensor.shape[0]
            for dimension in tensor.shape[1:]:
                size = size * dimension
            rows.append(
                Quantity(f"tensor.{tensor.name}", tensor.name.replace("{}", "n"), "parameter",
                         size * facts.layers if tensor.per_layer else size,
                         source=f"split by {tensor.split}" if tensor.split != "none" else "on every rank")
            )  # fmt: skip
        whole += rows
        if rows:
            sections.append(Section(module.label, tuple(rows), "in every layer" if module.per_layer else "once"))
    parts = [
        Quantity(f"tensors.module.{module.id}", f"Parameters, {module.label}", "parameter", total(span(section.figures())),
                 note="sum of its tensors")
        for module, section in zip((module for module in ir.modules if module.tensors), sections, strict=True)
    ]  # fmt: skip
    parameters = Quantity("tensors.parameters", "Parameters", "parameter", total(span(parts)), note="sum of the modules")

    def on_rank(tensor: Tensor) -> Node:
        shards: dict[str, dict[Node, Node]] = {
            "heads": {ir.query_width: plan.query_width},
            "kv heads": {ir.kv_width: plan.kv_width},
            "ffn columns": {facts.ffn_size: plan.ffn},
            "vocabulary": {facts.vocabulary: plan.vocabulary},
            "none": {},
        }
        replaced = shards[tensor.split]
        size: Node | None = None
        for dimension in tensor.shape:
            part = replaced.get(dimension, dimension)
            size = part if size is None else size * part
        assert size is not None
        return size

    ranks: dict[str, list[Quantity]] = {"layer_matrices": [], "layer_vectors": [], "final_vectors": []}
    for tensor in ir.tensors():
        if tensor.split == "vocabulary":
            continue
        group = "final_vectors" if not tensor.per_layer else "layer_matrices" if tensor.matrix else "layer_vectors"
        ranks[group].append(Quantity(f"tensor.{tensor.name}.rank", f"On a rank, {tensor.name.replace('{}', 'n')}", "parameter",
                                     on_rank(tensor)))  # fmt: skip
    sums = {
        "layer_matrices": ("Matrix weights of a layer on a rank", "sum of the rows above"),
        "layer_vectors": ("Norm and bias weights of a layer on a rank", "sum of the rows above"),
        "final_vectors": ("Final norm weights on a rank", "sum of the rows above"),
    }
    totals = {name: Quantity(f"tensors.{name}", label, "parameter", total(span(ranks[name])), note=note)
              for name, (label, note) in sums.items()}  # fmt: skip
    embedding = Quantity("tensors.embedding", "Embedding weights on a rank", "parameter", plan.vocabulary * facts.hidden_size)
    head = Quantity("tensors.head", "LM head weights on a rank", "parameter",
                    where(facts.tied_embeddings > 0, 0, plan.vocabulary * facts.hidden_size),
                    note="vocabulary rows × hidden size; 0 where tied to the embedding")  # fmt: skip
    sections += [
        Section("Parameters", (*parts, parameters), "whole model", Section.TOTAL),
        *(Section(label, (*ranks[name], totals[name]), "fullest rank, one layer" if name != "final_vectors" else "fullest rank",
                  Section.SUBTOTAL) for name, (label, _) in sums.items()),
        Section("Embedding and LM head on a rank", (embedding, head), "vocabulary split over the TP ranks"),
    ]  # fmt: skip
    return Tensors(tuple(sections), parameters, totals["layer_matrices"], totals["layer_vectors"], embedding, head,
                   totals["final_vectors"])  # fmt: skip


@dataclass(frozen=True)
class Memory:
    """Bytes in the fullest accelerator, and the batch that its KV cache allows."""

    layer_weights: Quantity
    weights_read: Quantity
    embedding_weights: Quantity
    head_weights: Quantity
    logits: Quantity
    weights: Quantity
    kv: Quantity
    activations: Quantity
    reserve: Quantity
    used: Quantity
    usable: Quantity
    headroom: Quantity
    free: Quantity
    outside: Quantity
    fits: Quantity
    kv_bytes_per_token: Quantity
    kv_bytes_per_request: Quantity
    capacity_sequences: Quantity
    requests: Quantity
    batch: Quantity
    sections: tuple[Section, ...]


def memory(ir: ModelGraph, inputs: Workload, hardware: Hardware, efficiency: Efficiency, plan: Sharding,
           stored: Tensors) -> Memory:  # fmt: skip
    """The rows of the Memory sheet."""
    facts = ir.facts
    layer = Quantity("memory.layer_weights", "Weights of a layer", "B",
                     stored.layer_matrices * hardware.weight_bytes + stored.layer_vectors * VECTOR_BYTES)  # fmt: skip
    embedding = Quantity("memory.embedding_weights", "Weights of the embedding", "B", stored.embedding * hardware.head_bytes)
    head = Quantity("memory.head_weights", "Weights of the LM head", "B",
                    stored.head * hardware.head_bytes + stored.final_vectors * VECTOR_BYTES
                    + where(inputs.pp > 1, facts.tied_embeddings * embedding, 0),
                    note="LM head and final norm; a copy of a tied embedding where there are several stages",
                    name="weights of the LM head")  # fmt: skip
    ends = Quantity("memory.end_weights", "Weights of the fuller end", "B",
                    where(inputs.pp > 1, maximum(embedding, head), embedding + head),
                    note="embedding and LM head: on one stage, or the larger of the two with several stages")  # fmt: skip
    weights = Quantity("memory.weights", "Weights", "B", layer * plan.layers + ends)

    read = Quantity("memory.weights_read", "Weights a pass reads on a rank", "B",
                    layer * facts.layers + plan.vocabulary * facts.hidden_size * hardware.head_bytes,
                    note="all layers and the LM head, over all stages of a pipeline", name="weights read")  # fmt: skip

    per_token = Quantity("memory.kv_bytes_per_token", "KV bytes per token", "B/token",
                         KEYS_AND_VALUES * plan.kv_width * hardware.kv_bytes * plan.layers,
                         note="keys and values × width per rank × bytes per KV value × layers per stage",
                         name="KV bytes per token")  # fmt: skip
    length = Quantity("memory.sequence_length", "Length of a finished request", "token/request",
                      inputs.input_tokens + inputs.output_tokens)  # fmt: skip
    kept = Quantity("memory.cached_tokens", "Tokens a request keeps in the cache", "token/request",
                    where(facts.sliding_window > 0, minimum(length, facts.sliding_window), length),
                    note="its full length, at most the sliding window")  # fmt: skip
    per_request = Quantity("memory.kv_bytes_per_request", "KV bytes per request", "B/request", per_token * kept)
    activations = Quantity(
        "memory.activations", "Activations", "B",
        inputs.token_budget * (facts.hidden_size + plan.query_width + KEYS_AND_VALUES * plan.kv_width
                               + facts.ffn_input_matrices * plan.ffn) * RESULT_BYTES,
        note="token budget × (hidden + QKV + FFN width per rank) × result bytes",
    )  # fmt: skip
    requests = Quantity("memory.requests", "Requests per replica", "request", maximum(1, inputs.concurrency / inputs.dp),
                        note="concurrency ÷ DP, at least 1")  # fmt: skip
    seat_logits = Quantity("memory.logits_per_request", "Logits per request", "B/request",
                           TOKENS_PER_STEP * plan.vocabulary * LOGIT_BYTES)  # fmt: skip
    reserve = Quantity("memory.reserve", "Runtime", "B", efficiency["runtime_reserve"], note="runtime reserve of the profile")
    usable = Quantity("memory.usable", "Usable memory", "B", efficiency["memory_usable"] * hardware.memory_capacity)
    room = Quantity("memory.kv_room", "Room for requests", "B",
                    maximum(0, usable - weights - activations - reserve))  # fmt: skip
    capacity = Quantity("memory.capacity_sequences", "KV capacity in sequences", "request", room / (per_request + seat_logits),
                        note="room for requests ÷ (KV bytes + logits per request)", name="KV capacity")  # fmt: skip
    batch = Quantity("memory.batch", "Batch", "request", maximum(1, minimum(requests, capacity)),
                     note="requests per replica, at most the KV capacity, at least 1")  # fmt: skip
    logits = Quantity("memory.logits", "Logits", "B", batch * seat_logits)
    kv = Quantity("memory.kv", "KV cache", "B", batch * per_request)
    used = Quantity("memory.used", "Memory used", "B", weights + kv + activations + logits + reserve)
    headroom = Quantity("memory.headroom", "Headroom", "B", usable - used, note="usable memory − memory used; negative if it does not fit")
    free = Quantity("memory.free", "Free memory", "B", maximum(0, headroom))
    outside = Quantity("memory.outside", "Memory left to others", "B", hardware.memory_capacity - usable)
    fits = Quantity("memory.fits", "Fits in memory", "flag", where(used <= usable, 1, 0), note="1 if memory used is at most usable memory")
    sections = (
        Section("Weights", (layer, read, embedding, head, ends, weights), "fullest accelerator", Section.SUBTOTAL),
        Section("KV cache", (per_token, length, kept, per_request), "per accelerator"),
        Section("Working memory", (requests, activations, seat_logits, reserve), "per accelerator"),
        Section("Capacity", (usable, room, capacity, batch), "how many requests run at once in a replica",
                Section.SUBTOTAL),
        Section("Memory used", (kv, logits, used, headroom, free, outside, fits), "weights + KV cache of the batch + working memory"),
    )  # fmt: skip
    return Memory(layer, read, embedding, head, logits, weights, kv, activations, reserve, used, usable, headroom, free, outside, fits, per_token, per_request,
                  capacity, requests, batch, sections)  # fmt: skip
