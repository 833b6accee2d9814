"""A plan in EXO's spelling: the shard of each device, as its ShardMetadata has it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from mantile.equations.graph import EstimateGraph
from mantile.graph.quantity import Node

PIPELINE, TENSOR = "PipelineShardMetadata", "TensorShardMetadata"


def shards(graph: EstimateGraph, values: Mapping[Node, Any]) -> list[dict[str, Any]]:
    """The shard of each device of a replica: layers from start_layer up to and without end_layer.

    Empty where EXO has no such plan: stages of several accelerators, and workers that only decode.

    Returns:
        shard (PipelineShardMetadata or TensorShardMetadata), device_rank, world_size, start_layer, end_layer,
        n_layers. A device without layers has no shard.

    Example:
        mantile.plan(estimate)["shards"]
    """
    (workers, *others), total = graph.workers, int(values[graph.ir.total_layers])
    tp, pp = int(values[workers.ranks.stage]), int(values[graph.inputs.pp])
    if others:
        return []
    if graph.devices is not None:
        if any(values[one.layers] > 0 and values[one.inputs.count] > 1 for one in graph.devices.devices):
            return []
        held = [int(values[one.layers]) for one in graph.devices.devices if values[one.layers] > 0]
    elif pp == 1 and tp > 1:
        return [_shard(TENSOR, rank, tp, 0, total, total) for rank in range(tp)]
    elif tp > 1:
        return []
    else:
        stages = workers.plan.stages
        starts = [int(values[before]) for before in stages.before[:pp]] + [total]
        held = [end - start for start, end in pairwise(starts)]
    found, start = [], 0
    for rank, count in enumerate(held):
        found.append(_shard(PIPELINE, rank, len(held), start, start + count, total))
        start += count
    return found


def _shard(kind: str, rank: int, world: int, start: int, end: int, total: int) -> dict[str, Any]:
    layers = {"start_layer": start, "end_layer": end, "n_layers": total}
    return {"shard": kind, "device_rank": rank, "world_size": world, **layers}
