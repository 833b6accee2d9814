"""What the independent floors are made of: tensors as stored and datasheets, no products of the equations."""

from __future__ import annotations

from collections.abc import Iterator

from mantile.equations.formats import Formats
from mantile.equations.forward import Pass
from mantile.equations.tables import Equations
from mantile.equations.workers import Workers
from mantile.floors import Core, Dimensions, Machine, Weights
from mantile.graph.quantity import Node, maximum, sum_of, where
from mantile.ir.modules import Attention, Indexer, LatentAttention, ModelGraph


def dimensions(
    ir: ModelGraph,
    prefill_workers: Workers,
    decode_workers: Workers,
    prefill: Pass,
    rows: Equations,
    pools: tuple[Workers, ...] = (),
) -> Dimensions:
    """The model, the machines of both phases and the workload, for `mantile.floors`.

    Args:
        rows: the requests of the step for which the floor of TPOT holds.
        pools: devices that are not alike; none where accelerators are.
    """
    inputs, formats = prefill_workers.inputs, prefill_workers.formats
    return Dimensions(
        weights=tuple(_weights(ir, prefill_workers)),
        head=Weights("head", ir.facts["vocabulary"] * ir.facts["hidden_size"], formats.classes["head"].bytes),
        cores=tuple(_cores(ir, formats)),
        kv_bytes=formats.kv_bytes,
        prefill=_best(pools, prefill_workers.ranks.replica)
        if pools
        else _machine(prefill_workers, prefill_workers.ranks.replica),
        decode=_best(pools, maximum(*(of.ranks.stage for of in pools)))
        if pools
        else _machine(decode_workers, decode_workers.ranks.stage),
        prompts=prefill.phase.requests,
        prompt_tokens=prefill_workers.prompt,
        input_tokens=inputs.input_tokens,
        output_tokens=inputs.output_tokens,
        decode_requests=rows.node("requests_of_floor"),
        step_tokens=rows["speculation.emitted"] if "speculation" in rows.features else None,
    )


def _weights(ir: ModelGraph, workers: Workers) -> Iterator[Weights]:
    """Matrices of the layers that a token is multiplied with; of the experts the share it goes through."""
    for module in ir.modules:
        matrices = [tensor for tensor in module.tensors if tensor.matrix and tensor.layers is not None]
        if not matrices:
            continue
        kinds = dict.fromkeys(tensor.stored for tensor in matrices)
        for kind in kinds:
            sizes = [workers.tensors.sizes[tensor] for tensor in matrices if tensor.stored == kind]
            parameters = sum_of(sizes)
            if matrices[0].routed:
                parameters = parameters * (ir.facts["experts_per_token"] / ir.facts["experts"])
            name = module.id if len(kinds) == 1 else f"{module.id}.{kind}"
            yield Weights(name, parameters, workers.formats.stored[kind].bytes)


def _cores(ir: ModelGraph, formats: Formats) -> Iterator[Core]:
    """Attention of the layers; what a chunk reaches has no simple lower bound and is left out."""
    for module in ir.modules:
        work, layers = module.operation, module.layers
        if layers is None:
            continue
        if isinstance(work, Indexer):
            yield Core(module.id, layers, None, work.key * formats.kept_bytes(work) / formats.kv_bytes, None)
        elif isinstance(work, Attention | LatentAttention) and work.span.kind != "chunked":
            query = work.query + work.result if isinstance(work, Attention) else work.expanded
            kept = work.key + work.value if isinstance(work, Attention) else work.latent
            yield Core(module.id, layers, query, kept, work.span.length)


def _machine(workers: Workers, ranks: Node) -> Machine:
    """The best peak of any matrices in the layers, the memory bandwidth, the ranks that work at once."""
    return Machine(workers.rows["hardware.best_peak"], workers.rows["hardware.memory_bandwidth"], ranks)


def _best(pools: tuple[Workers, ...], ranks: Node) -> Machine:
    """The best peak and bandwidth of several devices that hold any of the model: no device works faster."""
    held = list(zip(pools[0].ranks.counted, pools, strict=True))
    return Machine(
        maximum(*(where(count > 0, of.rows["hardware.best_peak"], 0) for count, of in held)),
        maximum(*(where(count > 0, of.rows["hardware.memory_bandwidth"], 0) for count, of in held)),
        ranks,
    )
