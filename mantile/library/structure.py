"""The structure of a model as a scenario states it: facts of its config, facts it lacks, kinds of layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mantile.library.architecture import (
    FFN_KINDS,
    Architecture,
    Block,
    BlockKind,
    Fact,
    LayerKind,
    Model,
    runs,
)
from mantile.library.documents import validate
from mantile.library.errors import InputError
from mantile.library.facts import fact_kind

OVERRIDE = "override"
"""The origin of a fact that a scenario states."""
MODEL = "model."
"""What ids of facts of the model begin with."""
_LAYERS = "layers."
_VISION = "vision."

# What a block needs, and what it may have beside it.
_READS: dict[BlockKind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "attention": ((), ("qkv_bias", "output_bias", "qk_norm", "sinks")),
    "ffn": (("ffn_size", "ffn_input_matrices"), ("ffn_bias",)),
    "moe": (
        ("experts", "experts_per_token", "expert_size", "ffn_input_matrices"),
        ("shared_expert_size", "shared_expert_gate", "router_bias", "expert_bias", "correction_bias"),
    ),
    "gated_delta": (
        (
            "linear_key_heads",
            "linear_value_heads",
            "linear_key_dim",
            "linear_value_dim",
            "linear_chunk",
            "conv_kernel",
        ),
        ("conv_bias",),
    ),
}
_ANYWHERE = ("norm_bias", "head_bias")
_MIXERS, _FFNS = ("full", "sliding", "linear"), ("ffn", "moe")


def override_model(model: Model, stated: Mapping[str, tuple[float, str]], name: str) -> Model:
    """A model with facts as a scenario states them, each with "override" as its origin.

    A fact that its config lacks may be stated where a block of it reads that fact. Layers of a kind that the
    model lacks, `model.layers.sliding.ffn`, are taken evenly from the kind it has most layers of.

    Args:
        stated: value and reason by id: {"model.layers": (16, "pruned")}.
        name: of the scenario, for errors.

    Raises:
        InputError: naming the fact and what was expected.
    """
    facts = {identifier.removeprefix(MODEL): one for identifier, one in stated.items()}
    if not facts:
        return model
    architecture = model.architecture
    own = dict(architecture.facts)
    if architecture.vision is not None:
        own |= {f"{_VISION}{fact}": one for fact, one in architecture.vision.facts.items()}
    for fact, (value, _) in facts.items():
        if not float(value).is_integer() or (fact not in own and fact_kind(fact) is None):
            raise InputError(
                f"{name}: overrides: {MODEL}{fact} = {value:g}: expected a whole number for one of "
                + ", ".join(f"{MODEL}{known}" for known in own)
            )
    overridden = {fact: _fact(value, reason, own.get(fact)) for fact, (value, reason) in facts.items()}
    kinds = [fact for fact in facts if fact.startswith(_LAYERS) and fact not in own]
    data = architecture.model_dump()
    data["facts"] |= {
        fact: one.model_dump()
        for fact, one in overridden.items()
        if fact not in kinds and not fact.startswith(_VISION)
    }
    if data["vision"]:
        data["vision"]["facts"] |= {
            fact.removeprefix(_VISION): one.model_dump()
            for fact, one in overridden.items()
            if fact.startswith(_VISION)
        }
    changed = validate(Architecture, data, f"{name}: overrides")
    for fact in kinds:
        changed = _with_layers(changed, fact, overridden, name)
    _require_read(changed, [fact for fact in facts if fact not in own and fact not in kinds], model.id, name)
    return model.model_copy(update={"architecture": changed})


def _fact(value: float, reason: str, was: Fact | None) -> Fact:
    """A fact of a scenario; its source says what it replaces."""
    before = "not in the config" if was is None else f"was {was.value} ({was.source})"
    return Fact.model_construct(value=int(value), origin="override", source=f"{reason}; {before}")


def _with_layers(
    architecture: Architecture, fact: str, overridden: Mapping[str, Fact], name: str
) -> Architecture:
    """An architecture with layers of a kind that it lacks, in place of as many others."""
    said, count = f"{name}: overrides: {MODEL}{fact}", overridden[fact].value
    kind = tuple(fact.split(".")[1:])
    blocks = dict(architecture.blocks)
    if any(block.kind == "recorded" for block in blocks.values()):
        raise InputError(f"{said}: the layers of a model that was read from its code stay as they are")
    mixers = [block for block, of in blocks.items() if of.kind not in FFN_KINDS]
    ffns = [block for block, of in blocks.items() if of.kind in FFN_KINDS]
    choices = tuple(dict.fromkeys((*mixers, *_MIXERS))), tuple(dict.fromkeys((*ffns, *_FFNS)))
    if len(kind) != 2 or any(block not in among for block, among in zip(kind, choices, strict=True)):
        raise InputError(
            f"{said}: expected {MODEL}layers.MIXER.FFN with a mixer of {', '.join(choices[0])} and an FFN "
            f"of {', '.join(choices[1])}"
        )
    for block in kind:
        if block not in blocks:
            blocks = _with_block(blocks, block, architecture, said)
    layers = architecture.sequence()
    fixed = {
        kind for kind, of in architecture.groups().items() if of.startswith(_LAYERS) and of in overridden
    }
    others = Counter(layer for layer in layers if layer not in fixed)
    if others:
        donor, most = others.most_common(1)[0]
        if not 1 <= count <= most:
            raise InputError(
                f"{said} = {count}: expected 1 to {most} of the {most} {' + '.join(donor)} layers, which "
                "they replace"
            )
        layers = _spread(layers, donor, kind, count)
    else:  # the number of every other kind is stated
        layers += [kind] * count
    return _rebuilt(architecture, blocks, layers, {kind: overridden[fact]}, said)


def _with_block(
    blocks: Mapping[str, Block], added: str, architecture: Architecture, said: str
) -> dict[str, Block]:
    """Blocks with one more; attention is like that of the model, but for how far back it looks."""
    if added in _FFNS:
        return {**blocks, added: Block(kind="moe" if added == "moe" else "ffn")}
    if added == "linear":
        return {**blocks, added: Block(kind="gated_delta")}
    like = next((block for block in blocks.values() if block.kind == "attention"), None)
    if like is None:
        raise InputError(f"{said}: expected a model that has attention over keys and values")
    uses = {role: fact for role, fact in like.uses.items() if role not in ("window", "chunk")}
    if added == "full":
        return {**blocks, added: like.model_copy(update={"uses": uses})}
    if not architecture.value("sliding_window"):
        raise InputError(f"{said}: expected {MODEL}sliding_window beside it, in tokens")
    sliding = like.model_copy(update={"uses": uses | {"window": "sliding_window"}})
    without = {}
    for block, of in blocks.items():
        window = architecture.facts.get(of.uses.get("window", ""))
        endless = window is not None and (window.origin == OVERRIDE or not window.value)
        kept = {role: fact for role, fact in of.uses.items() if role != "window"}
        without[block] = of.model_copy(update={"uses": kept}) if endless else of
    return {**without, added: sliding}


def _spread(layers: Sequence[LayerKind], donor: LayerKind, kind: LayerKind, count: int) -> list[LayerKind]:
    """Layers with `count` of one kind replaced by another, as evenly as they go."""
    places = [place for place, layer in enumerate(layers) if layer == donor]
    taken = {
        place
        for number, place in enumerate(places)
        if (number + 1) * count // len(places) > number * count // len(places)
    }
    return [kind if place in taken else layer for place, layer in enumerate(layers)]


def _rebuilt(
    architecture: Architecture,
    blocks: Mapping[str, Block],
    layers: Sequence[LayerKind],
    stated: Mapping[LayerKind, Fact],
    said: str,
) -> Architecture:
    """An architecture of these layers, with the blocks and facts that they use."""
    used = {name for layer in layers for name in layer}
    gone = _read(architecture.blocks.values()) - _read(blocks[name] for name in used)
    facts = {
        name: fact.model_dump()
        for name, fact in architecture.facts.items()
        if name != "layers" and not name.startswith(_LAYERS) and name not in gone
    }
    counts = Counter(layers)
    for layer, count in counts.items():
        name = "layers" if len(counts) == 1 else ".".join(("layers", *layer))
        before = architecture.facts.get(".".join(("layers", *layer))) or architecture.facts.get("layers")
        fact = stated.get(layer)
        if fact is None and before is not None and before.value == count:
            fact = before
        rest = Fact(value=count, origin="derived", source="the layers that an override leaves")
        facts[name] = (fact or rest).model_dump()
    missing = [
        fact
        for name in used
        for fact in _READS.get(blocks[name].kind, ((), ()))[0]
        if name not in architecture.blocks and fact not in facts
    ]
    if missing:
        raise InputError(f"{said}: expected {', '.join(f'{MODEL}{fact}' for fact in missing)} beside it")
    data = architecture.model_dump() | {
        "facts": facts,
        "blocks": {name: block.model_dump() for name, block in blocks.items() if name in used},
        "stack": [run.model_dump() for run in runs(layers)],
    }
    return validate(Architecture, data, said)


def _read(blocks: Iterable[Block]) -> set[str]:
    """The facts that some blocks read, of those that a scenario may add."""
    return {fact for block in blocks for facts in _READS.get(block.kind, ((), ())) for fact in facts}


def _require_read(architecture: Architecture, added: Sequence[str], model: str, name: str) -> None:
    """Refuse a fact that no layer reads.

    Raises:
        InputError: with both readings where a fact of experts is stated for a model without.
    """
    known = _read(architecture.blocks.values()) | {*_ANYWHERE}
    known |= {fact for block in architecture.blocks.values() for fact in block.uses.values()}
    for fact in added:
        if fact in known:
            continue
        said = f"{name}: overrides: {MODEL}{fact}: no layer of {model} reads it: either leave it out, or "
        if fact in _read([Block(kind="moe")]):
            mixer = next(iter(architecture.groups()))[0]
            raise InputError(
                f"{said}say which layers are a mixture: {MODEL}layers.{mixer}.moe, with {MODEL}experts, "
                f"{MODEL}experts_per_token and {MODEL}expert_size"
            )
        raise InputError(f"{said}say which layers do, such as {MODEL}layers.sliding.ffn")
