"""What modules and layers are called where people read them."""

from __future__ import annotations

from mantile.ir.modules import Attention, Elementwise, LatentAttention, Layer, Module
from mantile.library.facts import block_title

_KINDS = {"dense": "Dense", "moe": "MoE", "dsa": "Indexer", "linear": "Linear", "streams": "Streams"}
_STEPS = {"embedding": "Embed", "lm_head": "Head"}


def kind_word(module: Module) -> str:
    """The kind of a module in a word or two: GQA, MLA, MoE, Norm, ..."""
    work = module.operation
    if module.id in _STEPS:
        return _STEPS[module.id]
    if isinstance(work, Elementwise) and work.kind in ("norm", "qk_norm"):
        return "Norm"
    kind, _, span = module.kind.partition(", ")
    if not kind:
        return "Other"
    word = _KINDS.get(kind, kind.upper() if len(kind) == 3 else kind.capitalize())
    return f"{word} {span}" if span else word


def layer_words(layer: Layer) -> str:
    """What a layer is made of: "MLA + MoE", "GQA sliding + dense FFN", "linear + MoE"."""
    cores = [module for module in layer.modules if isinstance(module.operation, Attention | LatentAttention)]
    words: list[str] = []
    for block in layer.blocks:
        title = block_title(block)
        if title == "FFN":
            words.append("dense FFN")
        elif "MoE" in title or not cores:
            words.append(title)
        elif title in ("attention", "full", "sliding", "chunked"):
            words.append(kind_word(cores[0]))
        else:
            words.append(f"{kind_word(cores[0])}, {title}")
    return " + ".join(words)
