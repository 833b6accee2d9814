"""Mixers that were recorded: attention, latent attention, short convolutions and recurrences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.library.architecture import Size
from mantile.library.errors import InputError
from mantile.library.from_code.recording import Event, Recording, Shape
from mantile.library.from_code.state import StateReader, module_of_state
from mantile.library.from_code.steps import BlockReader, Draft, is_matrix_product, is_norm


@dataclass(frozen=True)
class Heads:
    """The geometry of an attention core.

    Args:
        query, key, value, result: sizes over all heads.
        kind: mha, gqa or mqa.
    """

    query: Size
    key: Size
    value: Size
    result: Size
    kind: str


def read_mixer(reader: BlockReader, recording: Recording, cache: dict[str, Shape]) -> None:
    """The steps of a mixer, in the order of its events."""
    cores = [event for event in reader.events if event.kind == "attention"]
    reader.mixer = cores[0].module.partition(".")[0] if cores else ""
    shapes = cores[0].shapes if cores else _eager_shapes(reader, cache)
    if shapes is not None and not any(name.startswith("recurrent_states") for name in cache):
        reader.refuse_other_products(_known_products(reader, cores))
    if shapes is not None and _is_latent(reader, recording):
        _read_latent(reader, recording, shapes, cache)
    elif shapes is not None:
        _refuse_selection(reader)
        _read_attention(reader, shapes, cores[0].window if cores else 0, recording, cache)
    else:
        reader.mixer = module_of_state(reader)
        state = StateReader(reader, recording, cache)
        for index in range(len(reader.events)):
            state.read(index)
        reader.claim_the_rest("linear")


def _refuse_selection(reader: BlockReader) -> None:
    """Stop at attention that chooses what it looks at, unless an indexer scores each token for it.

    It is then priced as if it looked at all of them, and called so.

    Raises:
        InputError: for it.
    """
    choice = next((event for event in reader.events if event.kind == "choice"), None)
    scored = any(_is_indexer(event) for event in reader.between_results())
    if choice is not None and not scored:
        raise InputError(f"{choice.module or 'a mixer'} chooses {choice.outputs} of the tokens before")


def _eager_shapes(reader: BlockReader, cache: dict[str, Shape]) -> tuple[Shape, ...] | None:
    """Query, key and value of a class that works attention out by itself: two products of results."""
    keys = cache.get("keys")
    products = reader.between_results()
    for event in products:
        if event.outputs != reader.tokens:
            continue
        heads = event.rows // reader.tokens
        if keys is not None:
            return (1, heads, reader.tokens, event.inputs), keys, cache.get("values", keys)
        last = products[-1]
        fused = {one.outputs for one in reader.events if one.weight and one.inputs != one.outputs}
        if (
            cache
            or len(products) != 2
            or last.inputs != reader.tokens
            or 3 * heads * event.inputs not in fused
        ):
            return None
        ours = (1, heads, reader.tokens, event.inputs)  # a class without a cache: each head has its own keys
        return ours, ours, ours
    return None


def _heads(reader: BlockReader, shapes: tuple[Shape, ...]) -> Heads:
    """The facts of an attention core."""
    (_, heads, _, size), key, value = shapes
    book, block = reader.sizes.book, reader.sizes.block
    query_heads = book.add("attention_heads", heads, block)
    kv_heads = book.add("kv_heads", key[1], block)
    width = book.add("head_dim", size, block)
    value_width = width if value[-1] == size else book.add("value_head_dim", value[-1], block)
    kind = "mha" if heads == key[1] else "mqa" if key[1] == 1 else "gqa"
    found = Heads(
        query=f"{query_heads}*{width}",
        key=f"{kv_heads}*{width}",
        value=f"{kv_heads}*{value_width}",
        result=f"{query_heads}*{value_width}",
        kind=kind,
    )
    reader.sizes.know(query_heads, kv_heads, width)
    return found


def _read_attention(
    reader: BlockReader, shapes: tuple[Shape, ...], window: int, recording: Recording, cache: dict[str, Shape]
) -> None:
    heads = _heads(reader, shapes)
    core = _core_index(reader)
    widths = (heads.query, heads.key, heads.value, heads.result)
    state = _state(reader, recording, cache, core, widths)
    matrices = [index for index, one in enumerate(reader.events) if is_matrix_product(one, reader.parameters)]
    left = [heads.query, heads.key, heads.value]
    fused = _fused(reader, heads, reader.events[:core])
    indexed = _indexer(reader, recording, cache)
    for index, event in enumerate(reader.events):
        if index == core:
            _core(reader, heads, window, cache, recording)
            if indexed is not None:
                reader.drafts[-1].sizes["selected"] = _selected(reader, recording)
                reader.drafts.insert(-1, indexed)
            if state is not None and state.around:
                state.read_core()
        is_inside = matrices[0] < index < matrices[-1] and reader.may_have_heads(event)
        if state is not None and not state.around and state.holds(event):
            state.read(index)
        elif indexed is not None and _in_indexer(event):
            _indexer_step(reader, event, indexed)
        elif index in matrices:
            if index < core and not reader.may_have_heads(event):
                reader.product(event, kind=heads.kind)
            elif index < core:
                size = reader.sizes.first_of(event.outputs, [*left, heads.query, *fused])
                if size in left:
                    left.remove(size)
                step = {"step": "qkv", "label": "QKV projection", "short": "QKV"} if size else {}
                reader.product(event, kind=heads.kind, outputs=size, **step)
            else:
                inputs = reader.sizes.first_of(event.inputs, [heads.result, heads.query])
                outputs = reader.sizes.first_of(event.outputs, [reader.hidden])
                last = bool(inputs) and bool(outputs)
                names = {"step": "output", "label": "Output projection", "short": "output"} if last else {}
                reader.product(event, kind=heads.kind, inputs=inputs, outputs=outputs, **names)
        elif event.kind == "attention" and index > core:
            _core(reader, heads, event.window, {}, recording, again=True)
        elif reader.mixes_channels(event):
            reader.mixing_convolution(event, heads.kind, widths)
        elif event.kind == "convolution" and state is None and event.weight in reader.parameters:
            reader.convolution(event, widths if is_inside else ())
        elif is_norm(event):
            kind = heads.kind if "." in event.module else ""
            reader.norm(event, kind, widths if is_inside else ())
    reader.sizes.know(*sorted(set(widths)))
    reader.claim_the_rest(heads.kind)


def _fused(reader: BlockReader, heads: Heads, before: Sequence[Event]) -> list[Size]:
    """What one matrix may make at once, the likeliest first: queries with a gate, or with keys and values."""
    gated, others = f"{heads.query} + {heads.query}", f"{heads.key} + {heads.value}"
    keys = reader.sizes.number(heads.key)
    if any(event.weight and event.outputs == keys for event in before):  # which have a matrix of their own
        return [gated, f"{heads.query} + {others}", f"{gated} + {others}", others]
    return [f"{heads.query} + {others}", gated, f"{gated} + {others}", others]


def _state(
    reader: BlockReader, recording: Recording, cache: dict[str, Shape], core: int, widths: Sequence[Size]
) -> StateReader | None:
    """What reads a state that is kept besides keys and values, by a mixer of its own or inside attention."""
    if not any(name.startswith("recurrent_states") for name in cache):
        return None
    is_inside = module_of_state(reader) == reader.events[core].module.partition(".")[0]
    return StateReader(reader, recording, cache, widths[:3] if is_inside else ())


def _core_index(reader: BlockReader) -> int:
    """Where the attention core stands among the events."""
    for index, event in enumerate(reader.events):
        if event.kind == "attention":
            return index
    return next(i for i, event in enumerate(reader.events) if event.kind == "product" and not event.weight)


def _core(
    reader: BlockReader,
    heads: Heads,
    window: int,
    cache: dict[str, Shape],
    recording: Recording,
    again: bool = False,
) -> None:
    """Rotation and cache write, then scores and weighted values.

    Args:
        again: attention over the same keys once more.
    """
    width = f"{heads.query} + {heads.key} + {heads.value}"
    module = reader.events[_core_index(reader)].module
    if not again:
        names = {"step": "rope", "label": "RoPE and KV write", "short": "RoPE"}
        reader.small("rope", width, module, kind=heads.kind, **names)
    sizes = {"query": heads.query, "key": heads.key, "value": heads.value, "result": heads.result}
    if recording.data["caches"] and "keys" not in cache:
        sizes["kept"] = "0"
    kind = heads.kind
    if window:
        sizes["window"] = reader.sizes.book.add("sliding_window", window, reader.sizes.block)
        kind = f"{kind}, sliding"
    reader.drafts.append(
        Draft("attention", "Attention core", "attention", "attention", sizes, module, kind=kind)
    )


def _is_latent(reader: BlockReader, recording: Recording) -> bool:
    rank = recording.config.get("kv_lora_rank")
    return isinstance(rank, int) and any(event.inputs == rank and event.weight for event in reader.events)


def _read_latent(
    reader: BlockReader, recording: Recording, shapes: tuple[Shape, ...], cache: dict[str, Shape]
) -> None:
    """Latent attention: keys and values of all heads are made of one latent, which is what is kept."""
    (_, heads, _, size), _, value = shapes
    book, block = reader.sizes.book, reader.sizes.block
    config = recording.config
    rope = int(config.get("qk_rope_head_dim") or 0)
    names = {
        role: book.add(role, number, block)
        for role, number in (
            ("attention_heads", heads),
            ("kv_lora_rank", int(config["kv_lora_rank"])),
            ("qk_nope_head_dim", size - rope),
            ("qk_rope_head_dim", rope),
            ("v_head_dim", int(config.get("v_head_dim") or value[-1])),
        )
        if number
    }
    count, rank, turned = names["attention_heads"], names["kv_lora_rank"], names.get("qk_rope_head_dim", "")
    plain, rotated = f"{count}*{names['qk_nope_head_dim']}", f"{count}*{turned}" if turned else ""
    result = f"{count}*{names['v_head_dim']}"
    query, latent = _sum(plain, rotated), _sum(rank, turned)
    absorbed = f"{count}*{rank}"
    reader.sizes.know(query, f"{plain} + {result}", latent, rank, count)
    indexed = _indexer(reader, recording, cache)
    if config.get("q_lora_rank"):
        reader.sizes.know(book.add("q_lora_rank", int(config["q_lora_rank"]), block))
    core = _core_index(reader)
    for index, event in enumerate(reader.events):
        if index == core:
            width = _sum(rotated, turned, latent)
            reader.small(
                "rope",
                width,
                event.module,
                step="rope",
                label="RoPE and latent write",
                short="RoPE",
                kind="mla",
            )
            sizes = {
                "expanded": f"{query} + {result}",
                "absorbed": _sum(absorbed, absorbed, rotated),
                "latent": latent,
            }
            if indexed is not None:
                reader.drafts.append(indexed)
            if indexed is not None or "shared" in (config.get("indexer_types") or ()):
                sizes["selected"] = _selected(reader, recording)  # or what an earlier layer has chosen
            reader.drafts.append(
                Draft(
                    "attention",
                    "Attention core",
                    "attention",
                    "latent_attention",
                    sizes,
                    event.module,
                    kind="mla",
                )
            )
        if indexed is not None and _in_indexer(event):
            _indexer_step(reader, event, indexed)
        elif is_matrix_product(event, reader.parameters):
            _latent_product(reader, event, index < core, query, f"{plain} + {result}", result, rank)
        elif is_norm(event):
            reader.norm(event, "mla" if "." in event.module else "")
    reader.claim_the_rest("mla")


def _known_products(reader: BlockReader, cores: list[Event]) -> list[Event]:
    """The products of results that attention or an indexer stands for."""
    products = reader.between_results()
    eager = [one for one in products if reader.tokens in (one.inputs, one.outputs)]
    scores = [one for one in products if _is_indexer(one)]
    return eager if not cores and len(eager) == 2 else scores


def _is_indexer(event: Event) -> bool:
    return event.module.rpartition(".")[2] == "indexer"


def _in_indexer(event: Event) -> bool:
    """Whether an event is one of an indexer, or of a module in it."""
    return "indexer" in event.module.split(".")


def _indexer(reader: BlockReader, recording: Recording, cache: dict[str, Shape]) -> Draft | None:
    """The scores by which an indexer selects tokens, as they are worked out after its projections.

    It scores each token before, or groups of them; what it keeps of a token is what the class keeps.
    """
    scores = next((event for event in reader.between_results() if _is_indexer(event)), None)
    if scores is None:
        return None
    first, second, size = scores.shapes[0]
    heads = second if first == reader.tokens else first
    book, block = reader.sizes.book, reader.sizes.block
    count, width = book.add("index_heads", heads, block), book.add("index_head_dim", size, block)
    reader.sizes.know(f"{count}*{width}", width, count)
    sizes = {"query": f"{count}*{width}", "heads": count, "key": width}
    remark = ""
    if scores.shapes[1][-1] != reader.tokens:
        sizes["every"] = book.add("index_group", _group(scores, recording), block)
        kept = next((shape[-1] for name, shape in cache.items() if "index" in name), size)
        if kept != size:
            sizes["key"] = book.add("index_kept", kept, block)
            remark = "keeps of each token what the class keeps; an engine may keep less"
    return Draft(
        "indexer", "Indexer scores", "indexer", "indexer", sizes, scores.module, kind="dsa", remark=remark
    )


def _group(scores: Event, recording: Recording) -> int:
    """How many tokens an indexer scores together: the one field of the config that gives as many groups.

    Raises:
        InputError: if none does, or several.
    """
    groups = scores.shapes[1][-1]
    fields = {
        value
        for name, value in recording.config.items()
        if name.startswith("index") and isinstance(value, int) and not isinstance(value, bool) and value > 1
        and groups in (recording.tokens // value, -(-recording.tokens // value))
    }  # fmt: skip
    if len(fields) != 1:
        raise InputError(
            f"{scores.module} scores {groups} groups of {recording.tokens} tokens, and no field says how "
            "large a group is"
        )
    return fields.pop()


def _selected(reader: BlockReader, recording: Recording) -> str:
    """The fact that says how many tokens an indexer selects: one by one, or as blocks.

    Raises:
        InputError: if the config does not say it.
    """
    config = recording.config
    blocks, size = config.get("index_topk_blocks"), config.get("index_block_size")
    selected = config.get("index_topk") or config.get("indexer_budget")
    if isinstance(blocks, int) and isinstance(size, int):
        selected = blocks * size
    if not isinstance(selected, int):
        raise InputError("an indexer selects tokens, and no field of the config says how many")
    return reader.sizes.book.add("index_topk", selected, reader.sizes.block)


def _indexer_step(reader: BlockReader, event: Event, indexed: Draft) -> None:
    """A product or a norm of an indexer: it has widths of its own, and every rank has all of it."""
    heads, _, width = indexed.sizes["query"].partition("*")
    own = [indexed.sizes["query"], width, heads, f"{indexed.sizes['query']} + {width}"]
    if is_matrix_product(event, reader.parameters):
        reader.product(event, kind="dsa", outputs=reader.sizes.first_of(event.outputs, own))
    elif is_norm(event):
        reader.norm(event, "dsa", own)


def _sum(*sizes: Size) -> Size:
    """A sum of the sizes that there are."""
    return " + ".join(filter(None, sizes))


def _latent_product(
    reader: BlockReader, event: Event, before: bool, query: Size, expanded: Size, result: Size, rank: Size
) -> None:
    """A product of latent attention, by what it joins."""
    if not before:
        inputs = reader.sizes.first_of(event.inputs, [result])
        reader.product(
            event, kind="mla", inputs=inputs, step="output", label="Output projection", short="output"
        )
    elif reader.sizes.first_of(event.inputs, [rank]) and reader.sizes.first_of(event.outputs, [expanded]):
        reader.product(
            event,
            kind="mla",
            inputs=rank,
            outputs=expanded,
            step="keys_values",
            label="Keys and values from the latent",
            short="KV",
        )
    else:
        reader.product(event, kind="mla", outputs=reader.sizes.first_of(event.outputs, [query]))
