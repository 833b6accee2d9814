"""The vision tower: what the images of a prompt cost before the decoder sees them; nothing without images."""

from __future__ import annotations

from mantile.equations.constant import FLOPS_PER_MAC, TWO_KERNELS, VECTOR_BYTES, VISION_PRODUCTS
from mantile.equations.phase import Phase
from mantile.equations.roofline import Block, Work, operation, rows_of
from mantile.equations.workers import Workers
from mantile.graph.quantity import where
from mantile.ir.modules import Module, Vision


def vision(phase: Phase, tower: Vision, workers: Workers) -> Block:
    """The tower with its projector as one block of the prefill pass, in 16 bit, split over the TP ranks."""
    inputs, efficiency = workers.inputs, workers.efficiency
    assert inputs.image_tokens is not None
    module = Module(
        id="vision",
        step="vision",
        label="Vision tower",
        short="vision",
        part="vision",
        operation=tower,
        tensors=tower.tensors,
        kind="vision",
    )
    rows = rows_of(phase, module)
    images = rows(
        "image_tokens", "Image tokens in the pass", "token", phase.rank_requests * inputs.image_tokens
    )
    patches = rows("patches", "Patches in the pass", "token", images * tower.patches_per_token)
    products = rows(
        "product_flops",
        "FLOPs of products",
        "FLOP",
        FLOPS_PER_MAC * (patches * tower.patch_parameters + images * tower.token_parameters),
    )
    attended = rows(
        "attention_flops",
        "FLOPs of attention",
        "FLOP",
        FLOPS_PER_MAC * patches * tower.attended * (tower.width + tower.width),
        "once for scores, once for weighted values",
    )
    weights = rows(
        "weight_bytes",
        "Weight bytes",
        "B",
        (tower.patch_parameters + tower.token_parameters) * VECTOR_BYTES / inputs.tp,
    )
    used = rows("used", "Images in the prompt", "flag", where(images > 0, 1, 0))
    launches = (
        VISION_PRODUCTS * efficiency["gemm_launch_time.head"]
        + efficiency["attention_launch_time"]
        + TWO_KERNELS * efficiency["small_kernel"]
    )
    work = Work(
        launch=used * tower.layers * launches,
        flops=(products + attended) / inputs.tp,
        rate=efficiency["gemm_flops.head"],
        traffic=used * weights,
        bandwidth=efficiency["gemm_bytes.head"],
        reads=used * weights,
    )
    return operation(rows, module, work, "before the decoder; nothing without images")
