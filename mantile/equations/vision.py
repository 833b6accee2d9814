"""The vision tower: what the images of a prompt cost before the decoder sees them. Nothing without image tokens."""

from __future__ import annotations

from mantile.equations.constant import FLOPS_PER_MAC, TWO_KERNELS, VECTOR_BYTES, VISION_PRODUCTS
from mantile.equations.efficiency import Efficiency
from mantile.equations.inputs import Workload
from mantile.equations.roofline import Block, Phase, operation
from mantile.graph.quantity import Node, Quantity, where
from mantile.ir.modules import Module, Vision


def vision_tower(phase: Phase, vision: Vision, inputs: Workload, efficiency: Efficiency) -> Block:
    """The whole tower with its projector as one block of the prefill pass, in 16 bit, split over the TP ranks."""
    assert inputs.image_tokens is not None

    def row(name: str, label: str, unit: str, body: Node, note: str = "") -> Quantity:
        return Quantity(
            f"{phase.id}.vision.{name}", f"{label}, vision tower", unit, body, note=note, name=label.lower()
        )

    images = row(
        "image_tokens", "Image tokens in the pass", "token", phase.rank_requests * inputs.image_tokens
    )
    patches = row("patches", "Patches in the pass", "token", images * vision.patches_per_token)
    products = row(
        "product_flops",
        "FLOPs of products",
        "FLOP",
        FLOPS_PER_MAC * (patches * vision.patch_parameters + images * vision.token_parameters),
    )
    attended = row(
        "attention_flops",
        "FLOPs of attention",
        "FLOP",
        FLOPS_PER_MAC * patches * vision.attended * (vision.width + vision.width),
        note="2 × patches × patches attended to × widths of queries and results",
    )
    weights = row(
        "weight_bytes",
        "Weight bytes",
        "B",
        (vision.patch_parameters + vision.token_parameters) * VECTOR_BYTES / inputs.tp,
    )
    used = row("used", "Images in the prompt", "flag", where(images > 0, 1, 0), "1 if there are any")
    each = (
        VISION_PRODUCTS * efficiency["gemm_launch_time.head"]
        + efficiency["attention_launch_time"]
        + TWO_KERNELS * efficiency["small_kernel"]
    )
    module = Module(
        "vision", "vision", "Vision tower", "vision", "vision", vision, vision.tensors, kind="vision"
    )
    return operation(
        phase,
        module=module,
        launch=used * vision.layers * each,
        flops=(products + attended) / inputs.tp,
        rate=efficiency["gemm_flops.head"],
        traffic=used * weights,
        bandwidth=efficiency["gemm_bytes.head"],
        setup=(images, patches, products, attended, weights, used),
        reads=used * weights,
        note="before the decoder; nothing without images",
    )
