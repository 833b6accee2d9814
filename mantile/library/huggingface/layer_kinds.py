"""Which layers look back over a window or a chunk only, and which without limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mantile.library.architecture import Architecture, Block, Fact
from mantile.library.huggingface.assembly import assemble, block
from mantile.library.huggingface.config import Config, Facts

SLIDING, FULL, CHUNKED = "sliding_attention", "full_attention", "chunked_attention"
MIXERS = {"sliding": block("attention", window="sliding_window"), "full": block("attention")}
DENSE_FFN = {"ffn": block("ffn")}
_BLOCK_NAMES = {SLIDING: "sliding", CHUNKED: "chunked", FULL: "full"}


def stated_mixers(config: Config, limited: str = SLIDING) -> list[str] | None:
    """Which mixer each layer has, by layer_types; None if it is missing."""
    kinds = config.texts("layer_types", config.layers().value, among=(limited, FULL))
    return None if kinds is None else [_BLOCK_NAMES[kind] for kind in kinds]


def periodic_mixers(config: Config, period: int, limited: str = SLIDING, field: str = "") -> list[str]:
    """Which mixer each layer has: by layer_types, else every `period`-th one without limit.

    Args:
        limited: the kind of the other layers, as layer_types calls it.
        field: states the period, where the class reads it from the file.
    """
    period = config.integer(field, default=period).value if field else period
    stated = stated_mixers(config, limited)
    return stated or [
        "full" if (layer + 1) % period == 0 else _BLOCK_NAMES[limited]
        for layer in range(config.layers().value)
    ]


def assemble_layers(
    config: Config,
    facts: Facts,
    mixers: Sequence[str],
    ffn: Mapping[str, Block],
    *,
    ffns: Sequence[str] | None = None,
    mixer_blocks: Mapping[str, Block] = MIXERS,
    pattern: str = "layer_types or the class's pattern",
    **more: Any,
) -> Architecture:
    """An architecture of layers with different mixers.

    Args:
        mixers: the mixer of each layer, by name; `mixer_blocks` are those there are.
        ffn: the FFNs there are.
        ffns: the FFN of each layer, by name; None where there is one only.
        pattern, more: as for `assemble`.
    """
    ffns = ffns or [next(iter(ffn))] * len(mixers)
    blocks = {**mixer_blocks, **ffn}
    return assemble(
        config,
        facts,
        {name: blocks[name] for name in blocks if name in mixers or name in ffns},
        list(zip(mixers, ffns, strict=True)),
        layer_count=config.layers(),
        pattern=pattern,
        **more,
    )


def assemble_with_window(
    config: Config,
    facts: Facts,
    window: Fact,
    has_window: Callable[[int], bool],
    ffn: Mapping[str, Block] = DENSE_FFN,
    *,
    pattern: str = "layer_types",
    **more: Any,
) -> Architecture:
    """An architecture whose layers may have a window: by layer_types, else as the class chooses.

    Args:
        window: its length; 0 turns it off.
        has_window: whether the class gives one to the layer of that number.
        ffn, pattern, more: as for `assemble_layers`.
    """
    mixers = stated_mixers(config) or [
        "sliding" if has_window(layer) else "full" for layer in range(config.layers().value)
    ]
    if window.value and "sliding" not in mixers:
        window = config.derived(0, f"{pattern}: no layer has a window")
    facts = facts | {"sliding_window": window}
    if window.value and "full" in mixers:
        return assemble_layers(config, facts, mixers, ffn, pattern=pattern, **more)
    alike = {"attention": MIXERS["sliding"]}
    names = ["attention"] * len(mixers)
    return assemble_layers(config, facts, names, ffn, mixer_blocks=alike, pattern=pattern, **more)


def window(config: Config, default: int) -> Fact:
    """The sliding window; 0 for none, as null says, or a class without default."""
    if "sliding_window" in config.data and config.data["sliding_window"] is None:
        return Fact(value=0, origin="config", source=f"{config.path}sliding_window is null")
    if default or "sliding_window" in config.data:
        return config.integer("sliding_window", default=default)
    return config.implied(0, "no sliding window")


def switched_window(config: Config) -> Fact:
    """The sliding window of Qwen, which is off unless the file turns it on."""
    flag = config.flag("use_sliding_window", default=False)
    if flag.value:
        return window(config, 4096)
    return Fact(value=0, origin=flag.origin, source="use_sliding_window is false")


def limited_window(config: Config, facts: Facts) -> Fact:
    """A window on all layers; one that is not shorter than the longest context is none."""
    if not config.has("sliding_window"):
        return Fact(
            value=0,
            origin="config" if "sliding_window" in config.data else "default",
            source=f"{config.path}sliding_window absent or null",
        )
    length = config.integer("sliding_window")
    if length.value >= facts["max_positions"].value:
        return config.derived(0, f"{length.source} {length.value} reaches over the longest context")
    return length


def sliding_window(config: Config, mixers: Sequence[str], default: int) -> Facts:
    """The window of the layers that have one; nothing where no layer has."""
    if "sliding" not in mixers:
        return {}
    return {"sliding_window": config.integer("sliding_window", default=default)}
