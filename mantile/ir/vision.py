"""A vision tower with its projector: tensors, and what a patch and an image token go through."""

from __future__ import annotations

from mantile.graph.quantity import Input, Node, Quantity, as_node, floor, span, sum_range
from mantile.ir.modules import Vision
from mantile.ir.towers import PROJECTORS, TOWERS
from mantile.ir.vision_builder import Stage, VisionBuilder
from mantile.library.architecture import Tower
from mantile.library.facts import VISION_FACTS


def vision(tower: Tower, text: Input) -> Vision:
    """A tower as tensors and what running it takes.

    Args:
        text: width of the decoder, which the projector ends in.
    """
    builder = VisionBuilder(tower, text)
    TOWERS[tower.kind](builder)
    if tower.projector in PROJECTORS:
        PROJECTORS[tower.projector](builder)
    patches = _patches_per_image(builder)
    patch_rows, patch_parameters = _parameters(
        builder, "patch", "Matrix parameters per patch", "every patch goes through these matrices"
    )
    token_rows, token_parameters = _parameters(
        builder,
        "token",
        "Matrix parameters per image token",
        "only what is merged into image tokens goes through these matrices",
    )
    return Vision(
        facts=builder.facts,
        tensors=tuple(builder.tensors),
        patches_per_image=patches,
        patches_per_token=_patches_per_token(builder, patches),
        matrices=(*patch_rows, patch_parameters, *token_rows, token_parameters),
        patch_parameters=patch_parameters,
        token_parameters=token_parameters,
        attended=Quantity(
            "model.vision.attended", "Patches attended to, all layers", "1", _attended(builder, patches)
        ),
        width=_width(builder),
        layers=builder["layers"],
    )


def _patches_per_image(builder: VisionBuilder) -> Input | Quantity:
    """As the tower states it, or what makes its tokens, or a grid over the image."""
    if "patches_per_image" in builder.facts:
        return builder["patches_per_image"]
    if "tokens_per_image" in builder.facts and "merge" in builder.facts:
        body = builder["tokens_per_image"] * builder.merged()
    else:
        body = builder.grid() * builder.grid()
    fact = VISION_FACTS["patches_per_image"]
    return Quantity("model.vision.patches_per_image", fact.label, fact.unit, body)


def _patches_per_token(builder: VisionBuilder, patches: Node) -> Quantity:
    """Patches that become one token: a square that is merged, a share of the image, or a single one."""
    body, why = as_node(1), "every patch becomes a token"
    if "merge" in builder.facts:
        body, why = builder.merged(), ""
    elif "tokens_per_image" in builder.facts:
        body, why = patches / builder["tokens_per_image"], ""
    return Quantity("model.vision.patches_per_token", "Patches per image token", "1", body, note=why)


def _attended(builder: VisionBuilder, patches: Node) -> Node:
    """Patches that a patch attends to: the image in layers without window, one window in the others."""
    layers = builder["layers"]
    if "window" not in builder.facts:
        return layers * patches
    window = floor(builder["window"] / builder["patch_size"])
    return builder["full_layers"] * patches + (layers - builder["full_layers"]) * window * window


def _width(builder: VisionBuilder) -> Input | Quantity:
    if "head_dim" not in builder.facts:
        return builder["hidden_size"]
    heads = builder["heads"] * builder["head_dim"]
    return Quantity("model.vision.attention_width", "Width of all vision heads", "channel", heads)


def _parameters(
    builder: VisionBuilder, stage: Stage, label: str, why: str
) -> tuple[tuple[Quantity, ...], Quantity]:
    """Values in the matrices of a stage: a row for each matrix, and their sum."""
    rows = []
    for number, tensor in enumerate(builder.matrices[stage]):
        size = tensor.shape[0]
        for dimension in tensor.shape[1:]:
            size = size * dimension
        name = tensor.name.removesuffix(".weight").replace("{}", "n")
        rows.append(
            Quantity(
                f"model.vision.{stage}_matrix.{number}",
                f"Values of {name}",
                "parameter",
                size if tensor.layers is None else size * tensor.layers,
            )
        )
    total = sum_range(span(rows)) if rows else as_node(0)
    return tuple(rows), Quantity(f"model.vision.{stage}_parameters", label, "parameter", total, note=why)
