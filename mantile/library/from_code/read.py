"""A recording as an architecture, and the proof that nothing of the class was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from mantile.library.architecture import (
    AFTER,
    BEFORE,
    BESIDE,
    NOT_RUN,
    Architecture,
    Block,
    Choice,
    Fact,
    LayerKind,
    Size,
    runs,
    size_of,
)
from mantile.library.documents import validate
from mantile.library.errors import InputError
from mantile.library.from_code.ffn import read_ffn
from mantile.library.from_code.mixer import read_mixer
from mantile.library.from_code.recording import Event, Parameter, Part, Recording, Shape
from mantile.library.from_code.sizes import FactBook, Sizes
from mantile.library.from_code.steps import BlockReader, is_matrix_product, is_norm, split
from mantile.library.huggingface.config import LARGEST, Config
from mantile.library.huggingface.families import RECORDED
from mantile.library.huggingface.quantisation import stored

_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length")


def read_recording(data: dict[str, Any], config: Config) -> Architecture:
    """What a class was seen to do, as an architecture.

    Args:
        data: what the recorder wrote down.
        config: the config that the class was built from.

    Raises:
        InputError: if the class does what none of our operations stands for, a tensor was not read, or the
            class has other dimensions than the config says.
    """
    name = config.name
    recording = Recording(data, name)
    known = set(data["known"])
    stated = _numbers(config.data, known, is_whole=True)
    every = _numbers(config.data, None, is_whole=True)
    book = FactBook(
        recording.class_name,
        _numbers(recording.config, known),
        stated,
        {name: number for name, number in every.items() if name not in stated},
    )
    hidden = _hidden_size(recording)
    book.add("hidden_size", hidden, "")
    head = next((event for event in reversed(recording.after.events) if event.kind == "product"), None)
    if head is not None and not _embeds(recording, head.outputs):
        _vocabulary(book, head)  # of the head: the embedding has rows besides, of images say
    before = _once(recording, book, BEFORE, recording.before)
    kinds: dict[str, LayerKind] = {}
    blocks: dict[str, Block] = {BEFORE: before}
    layers: list[LayerKind] = []
    for layer in recording.layers:
        if layer.signature not in kinds:
            kinds[layer.signature] = _layer(recording, book, layer, blocks)
        layers.append(kinds[layer.signature])
    if not any(split(part)[0] for part in recording.layers):
        raise recording.refusal("no layer was seen to look back at the tokens before")
    blocks[AFTER] = _once(recording, book, AFTER, recording.after)
    if recording.never_run:
        blocks[BESIDE] = _not_run(recording, book, BESIDE, recording.beside())
    is_tied = head is not None and recording.is_tied(head.weight)
    book.facts["tied_embeddings"] = Fact(value=int(is_tied), origin="code", source=recording.class_name)
    kept = stored(config, blocks, layers, book.facts)
    blocks, layers = kept.blocks, kept.layers
    _count_layers(book, layers)
    positions = _positions(recording)
    if positions:
        book.add("max_positions", positions, "")
    architecture = validate(
        Architecture,
        {
            "model_type": config.model_type,
            "facts": book.facts,
            "blocks": blocks,
            "stack": runs(layers),
            "choices": _choices(recording) | kept.choices,
        },
        name,
    )
    _refuse_absurd(architecture, name)
    _prove(recording, architecture)
    _prove_products(recording, architecture)
    _agree(recording, architecture, config)
    return architecture


def _refuse_absurd(architecture: Architecture, name: str) -> None:
    """Stop at a size that no model has.

    Raises:
        InputError: for it, with the field that states it.
    """
    for fact, found in architecture.facts.items():
        if found.value > LARGEST:
            raise InputError(
                f"{name}: {fact} is {found.value:,} ({found.source}); expected at most {LARGEST:,}"
            )


def _positions(recording: Recording) -> int:
    """The longest sequence that the config states; 0 where it states none."""
    config = recording.config
    return next((config[key] for key in _POSITIONS if isinstance(config.get(key), int)), 0)


def _position_tables(recording: Recording) -> range:
    """How many rows a table of positions may have: some classes have a few before the first position."""
    return range(_positions(recording), _positions(recording) + 9)


def _numbers(config: Mapping[str, Any], known: set[str] | None, is_whole: bool = False) -> dict[str, int]:
    """The fields that hold a whole number and that the class knows.

    Args:
        known: None for all fields.
        is_whole: with those of its sections, but for towers of images or sound.
    """
    found: dict[str, int] = {}
    for name, value in config.items():
        if is_whole and isinstance(value, dict) and not name.startswith(("vision", "audio")):
            found |= _numbers(value, known, is_whole)
        elif (known is None or name in known) and isinstance(value, int) and not isinstance(value, bool):
            found[name] = value
    return found


def _hidden_size(recording: Recording) -> int:
    """The width of the residual stream: what the first module of the layers sees."""
    stated = (
        recording.config.get("hidden_size")
        or recording.config.get("n_embd")
        or recording.config.get("d_model")
    )
    if isinstance(stated, int) and stated:
        return stated
    shapes = [event.shapes[0][-1] for event in recording.before.events if event.kind == "leaf"]
    if not shapes:
        raise recording.refusal("the width of its residual stream was not seen")
    return shapes[-1]


def _layer(recording: Recording, book: FactBook, part: Part, blocks: dict[str, Block]) -> LayerKind:
    """The blocks of a layer; those that are there already are used again."""
    if not part.events:
        blocks[NOT_RUN] = _not_run(recording, book, NOT_RUN, part.parameters, _sizes_by_name(blocks, book))
        return (NOT_RUN,)
    mixer, ffn = split(part)
    names = []
    for events, is_mixer in ((mixer, True), (ffn, False)):
        if not events:
            continue
        parameters = _held(part, events, mixer, is_mixer)
        title = _title(events, parameters, part, is_mixer)
        number, name = 1, title
        while True:
            facts = dict(book.facts)
            trial = replace(book, facts=facts)
            sizes = Sizes(trial, name)
            sizes.know("hidden_size")
            reader = BlockReader(sizes, events, parameters, recording.tokens)
            try:
                if is_mixer:
                    read_mixer(reader, recording, dict(part.cache))
                else:
                    read_ffn(reader, recording)
            except InputError as error:
                raise recording.refusal(str(error)) from None
            block = Block(kind="recorded", steps=reader.steps())
            if blocks.get(name) in (None, block):
                break
            number += 1
            name = f"{title}_{number}"
        book.facts.update(facts)
        blocks[name] = block
        names.append(name)
    return tuple(names)


def _held(
    part: Part, events: Sequence[Event], mixer: Sequence[Event], is_mixer: bool
) -> dict[str, Parameter]:
    """The parameters of the mixer, or those of the FFN."""
    inside = {event.module.partition(".")[0] for event in mixer}
    used = {event.weight for event in mixer} | {event.bias for event in mixer}
    found = {}
    for one in part.parameters:
        of_mixer = one.name.partition(".")[0] in inside or one.name in used
        if of_mixer == is_mixer or not mixer:
            found[one.name] = one
    return found


def _title(events: Sequence[Event], parameters: dict[str, Parameter], part: Part, is_mixer: bool) -> str:
    """What a block is called."""
    if not is_mixer:
        return "moe" if any(len(one.shape) == 3 for one in parameters.values()) else "ffn"
    attention = [event for event in events if event.kind == "attention"]
    if attention:
        return "sliding" if attention[0].window else "attention"
    return "attention" if "keys" in part.cache or not part.cache else "linear"


def _once(recording: Recording, book: FactBook, name: str, part: Part) -> Block:
    """What runs before the layers, or after them."""
    sizes = Sizes(book, name)
    sizes.know("hidden_size")
    reader = BlockReader(sizes, part.events, {one.name: one for one in part.parameters}, recording.tokens)
    if name == BEFORE:
        _read_before(reader, book, _position_tables(recording))
    else:
        _read_after(reader, book)
    return Block(kind="recorded", steps=reader.steps())


def _not_run(
    recording: Recording,
    book: FactBook,
    name: str,
    parameters: Sequence[Parameter],
    alike: Mapping[tuple[str, Shape], tuple[Size, ...]] = MappingProxyType({}),
) -> Block:
    """What the class stores and a text does not run: towers for images or sound, layers that look at them.

    Args:
        alike: sizes of tensors of layers that run; ranks share what is called and shaped alike as they do.
    """
    sizes = Sizes(book, name)
    sizes.know("hidden_size")
    reader = BlockReader(sizes, (), {}, recording.tokens)
    label = "Beside the decoder, not run" if name == BESIDE else "Not run by a text"
    draft = reader.small("gate", "1", name, label=label, short="not run" if name != BESIDE else "beside")
    draft.weights = "head" if name == BESIDE else "attention"
    draft.parts = [
        (
            one,
            alike.get((_tail(one.name), one.shape)) or tuple(sizes.of(axis, one.name) for axis in one.shape),
        )
        for one in parameters
    ]
    return Block(kind="recorded", steps=reader.steps())


def _sizes_by_name(blocks: Mapping[str, Block], book: FactBook) -> dict[tuple[str, Shape], tuple[Size, ...]]:
    """Sizes of the tensors of blocks, by the end of their name and by their shape."""
    tensors = [one for block in blocks.values() for step in block.steps for one in step.tensors]
    return {
        (_tail(one.name), tuple(size_of(size, book.facts) for size in one.shape)): one.shape
        for one in tensors
    }


def _tail(name: str) -> str:
    """The last two parts of a tensor's name."""
    return ".".join(name.split(".")[-2:])


def _read_before(reader: BlockReader, book: FactBook, positions: range) -> None:
    """The embedding, and what else is done to it.

    Args:
        positions: how many rows a table of positions may have; others have rows for tokens.
    """
    for event in reader.events:
        table = reader.parameters.get(event.weight)
        if event.kind == "lookup" and table is not None:
            if any(part is table for draft in reader.drafts for part, _ in draft.parts):
                continue
            first = not any(draft.step == "embedding" for draft in reader.drafts)
            role = "position_rows" if not first and table.shape[0] in positions else "vocabulary"
            rows = book.add(role, table.shape[0], BEFORE, event.module)
            width = reader.sizes.of(table.shape[1], event.module, ("hidden_size",))
            draft = reader.small(
                "embedding",
                width,
                event.module,
                **({"step": "embedding", "label": "Embedding", "short": "embedding"} if first else {}),
            )
            draft.weights = "embedding"
            draft.parts.append((table, (rows, width)))
        elif is_matrix_product(event, reader.parameters):
            reader.product(event, weights="head")
        elif is_norm(event):
            reader.norm(event)
    reader.claim_the_rest("")


def _read_after(reader: BlockReader, book: FactBook) -> None:
    """The last norm, and the LM head."""
    heads = [event for event in reader.events if event.kind == "product"]
    norms = 0
    for event in reader.events:
        if heads and event is heads[-1]:
            _lm_head(reader, event, book)
        elif is_matrix_product(event, reader.parameters):
            reader.product(event, weights="head")
        elif is_norm(event):
            reader.norm(event)
            norms += 1
            if norms == 1:
                reader.drafts[-1].step, reader.drafts[-1].label = "final_norm", "Final norm"
                reader.drafts[-1].short = "final norm"
    reader.claim_the_rest("")


def _embeds(recording: Recording, tokens: int) -> bool:
    """Whether the first table before the layers has as many rows."""
    tables = {one.name: one.shape for one in recording.before.parameters}
    rows = (tables[event.weight][0] for event in recording.before.events
            if event.kind == "lookup" and event.weight in tables)  # fmt: skip
    return next(rows, 0) == tokens


def _vocabulary(book: FactBook, head: Event) -> str:
    """The fact that says how many tokens the LM head scores."""
    return book.add("vocabulary", head.outputs, AFTER, head.module)


def _lm_head(reader: BlockReader, event: Event, book: FactBook) -> None:
    """The product with the vocabulary; it holds no matrix of its own where that is the embedding."""
    vocabulary = _vocabulary(book, event)
    names = {"step": "lm_head", "label": "LM head", "short": "LM head", "weights": "head"}
    if event.weight in reader.parameters:
        reader.product(event, outputs=vocabulary, **names)
        return
    draft = reader.small("gate", "1", event.module)
    inputs = reader.sizes.of(event.inputs, event.module, ("hidden_size",))
    draft.step, draft.label, draft.short, draft.weights = "lm_head", "LM head", "LM head", "head"
    draft.work, draft.sizes = "product", {"inputs": inputs, "outputs": vocabulary}


def _count_layers(book: FactBook, layers: Sequence[LayerKind]) -> None:
    """How many layers there are of each kind."""
    counts = Counter(layers)
    for kind, count in counts.items():
        name = "layers" if len(counts) == 1 else ".".join(("layers", *kind))
        book.facts[name] = Fact(value=count, origin="code", source=book.class_name)


def _choices(recording: Recording) -> dict[str, Choice]:
    source = recording.class_name
    activation = (
        recording.config.get("hidden_act") or recording.config.get("hidden_activation") or "not known"
    )
    stated = {
        "norms": "as recorded",
        "norm": "as recorded",
        "activation": str(activation),
        "position_embedding": "RoPE" if "rope" in str(recording.config).lower() else "as recorded",
        "tensor_names": RECORDED,
    }
    return {name: Choice(value=value, origin="code", source=source) for name, value in stated.items()}


_STATED = {
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "vocabulary": ("vocab_size",),
    "attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "moe_topk", "moe_top_k", "top_k_experts", "moe_k"),
    "expert_size": ("moe_intermediate_size",),
}
"""What a config may call a fact: where it does, the class must have been run with that value."""


def _agree(recording: Recording, architecture: Architecture, config: Config) -> None:
    """The class has the dimensions that the config states: it may not know a field, or call it otherwise."""
    section = config.data.get("text_config")
    fields = {**config.data, **section} if isinstance(section, dict) else config.data
    dense = fields.get("first_k_dense_replace")
    if isinstance(dense, int) and dense > recording.built:
        raise InputError(
            f"{config.name}: field first_k_dense_replace is {dense}, and there are {recording.built} layers; "
            "expected at most as many dense layers as there are layers"
        )
    for role, names in _STATED.items():
        for name in names:
            value = fields.get(name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 2:
                continue
            found = {fact.value for key, fact in architecture.facts.items() if key.partition(".")[0] == role}
            if role == "experts_per_token" and "zero_experts" in architecture.facts:
                found = _chosen(recording)  # those without weights among them
            if role == "layers":
                found = {len(architecture.sequence()), recording.built}  # one of ours for each mixer
            is_off = not found and name in recording.data["known"]  # experts of a class that may be dense
            if value not in found and not is_off and (found or role.startswith("expert")):
                seen = " and ".join(map(str, sorted(found))) or "none"
                raise InputError(
                    f"{config.name}: field {name} is {value}, and {recording.class_name} runs with {seen}; "
                    "expected fields that the class reads"
                )


def _chosen(recording: Recording) -> set[int]:
    """How many of the largest the layers choose."""
    return {event.outputs for part in recording.layers for event in part.events if event.kind == "choice"}


def _prove_products(recording: Recording, architecture: Architecture) -> None:
    """The architecture multiplies as often as the class did."""
    facts = architecture.facts

    def ours(names: Sequence[str]) -> int:
        total = 0
        for step in (step for name in names for step in architecture.blocks[name].steps):
            if step.work == "recurrence" and step.sizes["state"] == step.sizes["conv"] == "0":
                total += size_of(step.sizes["macs"], facts)  # one matrix for several rows of each token
            if step.work in ("product", "experts"):
                used = size_of(step.sizes.get("per_token", "1"), facts)
                total += used * size_of(step.sizes["inputs"], facts) * size_of(step.sizes["outputs"], facts)
        return total

    parts = [recording.before, recording.after, *recording.layers]
    for part, names in zip(parts, ((BEFORE,), (AFTER,), *architecture.sequence()), strict=True):
        theirs = 0.0
        weights = {one.name: one for one in part.parameters}
        for event in part.events:
            kernel = weights.get(event.weight)
            if event.kind == "convolution" and kernel is not None and kernel.shape[1] > 1:
                theirs += kernel.size
            if event.kind != "product" or (event.weight not in weights and part is not recording.after):
                continue
            stacked = event.weight in weights and len(weights[event.weight].shape) == 3
            one_by_one = stacked and len(event.shapes[0]) == 2
            if one_by_one or (stacked and event.shapes[0][0] == weights[event.weight].shape[0]):
                return  # expert by expert, or all of them: not what a token goes through
            theirs += event.rows * event.inputs * event.outputs / recording.tokens
        if abs(ours(names) - theirs) > 0.001 * theirs:
            raise recording.refusal(
                f"{' + '.join(names)} multiplies {theirs:,.0f} times a token, and only {ours(names):,} of it "
                "was read"
            )


def _prove(recording: Recording, architecture: Architecture) -> None:
    """Every tensor of the class is in the architecture, as often and of the same shape."""
    facts = architecture.facts
    ours: Counter[tuple[str, tuple[int, ...]]] = Counter()
    layers = Counter(name for kind in architecture.sequence() for name in kind)
    layers += Counter((BEFORE, AFTER, BESIDE))
    for name, block in architecture.blocks.items():
        for tensor in (tensor for step in block.steps for tensor in step.tensors):
            shape = tuple(size_of(size, facts) for size in tensor.shape)
            copies = facts[tensor.copies].value if tensor.copies else 1
            ours[tensor.name, shape] += copies * layers[name]
    theirs: Counter[tuple[str, tuple[int, ...]]] = Counter()
    held = [one for part in (recording.before, recording.after, *recording.layers) for one in part.parameters]
    for one in (*held, *recording.beside()):
        for name, shape, count in one.stored:
            theirs[name, shape or (1,)] += count
    for key in (ours - theirs) | (theirs - ours):
        raise recording.refusal(
            f"{key[0]} {list(key[1])} was read {ours[key]} times, the class has it {theirs[key]} times"
        )
