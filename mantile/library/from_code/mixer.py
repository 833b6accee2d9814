"""Mixers that were recorded: attention, latent attention, short convolutions and recurrences."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mantile.library.architecture import Size
from mantile.library.errors import InputError
from mantile.library.from_code.recording import Event, Recording, Shape
from mantile.library.from_code.steps import BlockReader, Draft, is_matrix_product

CHUNK = 64  # tokens, of classes whose config states none


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
        _read_recurrence(reader, recording, cache)


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
    known = {heads.query, heads.key, heads.value, heads.result}
    both = f"{heads.query} + {heads.query}"
    fused = f"{heads.query} + {heads.key} + {heads.value}"
    left = [heads.query, heads.key, heads.value]
    has_state = any(name.startswith("recurrent_states") for name in cache)
    indexed = _indexer(reader, recording, cache)
    for index, event in enumerate(reader.events):
        if index == core:
            _core(reader, heads, window, cache, recording)
            if indexed is not None:
                reader.drafts[-1].sizes["selected"] = _selected(reader, recording)
                reader.drafts.insert(-1, indexed)
            if has_state:
                _recurrence(reader, recording, cache)
        if indexed is not None and _in_indexer(event):
            _indexer_step(reader, event, indexed)
        elif is_matrix_product(event, reader.parameters):
            if index < core and not reader.may_have_heads(event):
                reader.product(event, kind=heads.kind)
            elif index < core:
                size = _first_of(reader, event.outputs, [*left, heads.query, fused, both, f"{both} + {heads.key} + {heads.value}", f"{heads.key} + {heads.value}"])  # fmt: skip  # noqa: E501
                if size in left:
                    left.remove(size)
                step = {"step": "qkv", "label": "QKV projection", "short": "QKV"} if size else {}
                reader.product(event, kind=heads.kind, outputs=size or "", **step)
            else:
                inputs = _first_of(reader, event.inputs, [heads.result, heads.query])
                outputs = _first_of(reader, event.outputs, [reader.hidden])
                last = bool(inputs) and bool(outputs)
                names = {"step": "output", "label": "Output projection", "short": "output"} if last else {}
                reader.product(event, kind=heads.kind, inputs=inputs, outputs=outputs, **names)
        elif event.kind == "attention" and index > core:
            _core(reader, heads, event.window, {}, recording, again=True)
        elif reader.mixes_channels(event):
            reader.mixing_convolution(event, heads.kind)
        elif event.kind == "convolution" and not has_state and event.weight in reader.parameters:
            reader.convolution(event)
        elif _is_norm(event):
            reader.norm(event, heads.kind if "." in event.module else "", (heads.query, heads.key))
    reader.sizes.know(*sorted(known))
    reader.claim_the_rest(heads.kind)


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
                sizes["selected"] = _selected(reader, recording)
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
        elif _is_norm(event):
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

    Raises:
        InputError: if the class scores the tokens for one query after another.
    """
    scores = next((event for event in reader.between_results() if _is_indexer(event)), None)
    if scores is None:
        return None
    if len(scores.shapes[0]) != 3:
        raise InputError(f"{scores.module} works through one query after another")
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
        if name.startswith("index_") and isinstance(value, int) and not isinstance(value, bool) and value > 1
        and -(-recording.tokens // value) == groups
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
    selected = (
        blocks * size if isinstance(blocks, int) and isinstance(size, int) else config.get("index_topk")
    )
    if not isinstance(selected, int):
        raise InputError("an indexer selects tokens, and no field of the config says how many")
    return reader.sizes.book.add("index_topk", selected, reader.sizes.block)


def _indexer_step(reader: BlockReader, event: Event, indexed: Draft) -> None:
    """A product or a norm of an indexer: it has widths of its own, and every rank has all of it."""
    heads, _, width = indexed.sizes["query"].partition("*")
    own = [indexed.sizes["query"], width, heads]
    if is_matrix_product(event, reader.parameters):
        reader.product(event, kind="dsa", outputs=_first_of(reader, event.outputs, own))
    elif _is_norm(event):
        reader.norm(event, "dsa", own)


def _sum(*sizes: Size) -> Size:
    """A sum of the sizes that there are."""
    return " + ".join(filter(None, sizes))


def _latent_product(
    reader: BlockReader, event: Event, before: bool, query: Size, expanded: Size, result: Size, rank: Size
) -> None:
    """A product of latent attention, by what it joins."""
    if not before:
        inputs = _first_of(reader, event.inputs, [result])
        reader.product(
            event, kind="mla", inputs=inputs, step="output", label="Output projection", short="output"
        )
    elif _first_of(reader, event.inputs, [rank]) and _first_of(reader, event.outputs, [expanded]):
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
        reader.product(event, kind="mla", outputs=_first_of(reader, event.outputs, [query]))


def _read_recurrence(reader: BlockReader, recording: Recording, cache: dict[str, Shape]) -> None:
    """A mixer with a state that does not grow, or with a short convolution alone.

    Raises:
        InputError: if what it keeps was not seen.
    """
    core = next(
        (i for i, event in enumerate(reader.events) if event.kind == "convolution"),
        next((i for i, event in enumerate(reader.events) if event.kind == "product" and not event.weight), 0),
    )
    if not any(name.startswith(("recurrent_states", "conv_states")) for name in cache):
        place = reader.events[core].module
        raise InputError(f"{place} looks back, and what it keeps of the tokens before was not seen")
    book, block = reader.sizes.book, reader.sizes.block
    hidden = reader.sizes.number(reader.hidden)
    last = next((one for one in reversed(reader.events) if is_matrix_product(one, reader.parameters)), None)
    for index, event in enumerate(reader.events):
        if index == core:
            _recurrence(reader, recording, cache)
        if is_matrix_product(event, reader.parameters):
            if event is not last and event.inputs == hidden:
                reader.product(
                    event, kind="linear", outputs=book.add("mixer_size", event.outputs, block, event.module)
                )
            elif event is last and event.outputs == hidden:
                inputs = book.add("mixer_size", event.inputs, f"{block}_out", event.module)
                reader.product(
                    event,
                    kind="linear",
                    inputs=inputs,
                    step="output",
                    label="Output projection",
                    short="output",
                )
            else:
                reader.product(event, kind="linear")
        elif reader.mixes_channels(event):
            reader.mixing_convolution(event, "linear")
        elif _is_norm(event):
            reader.norm(event)
    reader.claim_the_rest("linear")


def _recurrence(reader: BlockReader, recording: Recording, cache: dict[str, Shape]) -> None:
    """The convolution and the state of a mixer."""
    convolution = next(
        (one for one in reader.events if one.kind == "convolution" and not reader.mixes_channels(one)), None
    )
    states = [shape for name, shape in cache.items() if name.startswith("recurrent_states")]
    convolved = [shape for name, shape in cache.items() if name.startswith("conv_states")]
    book, block, sizes = reader.sizes.book, reader.sizes.block, reader.sizes
    parameter = reader.parameters.get(convolution.weight) if convolution else None
    kernel = parameter.shape[-1] if parameter else 1
    channels = parameter.shape[0] if parameter else sum(shape[1] for shape in convolved)
    state = "0"
    if states:
        state = "*".join(
            book.add(role, number, block)
            for role, number in zip(
                ("state_heads", "state_rows", "state_columns"), states[0][1:], strict=False
            )
        )
    done = sum(_macs(event) for event in reader.events if event.kind == "product" and not event.weight)
    chunk = recording.config.get("mamba_chunk_size") or recording.config.get("chunk_size") or CHUNK
    named = {
        "state": state,
        "conv": sizes.of(channels, f"{block}_convolved") if channels else "0",
        "kernel": book.add("conv_kernel", kernel, block),
        "macs": state,
    }
    remark = ""
    if done and len(states[0] if states else ()) == 4:
        tokens = -(-reader.tokens // int(chunk)) * int(chunk)
        named["macs"] = sizes.of(done // tokens, f"{block}_chunk")
        named["chunk"] = book.add("state_chunk", int(chunk), block)
    elif states:
        remark = "priced as one product with the state; the class works it out element by element"
    draft = Draft(
        "state_core",
        "Convolution and state" if states else "Short convolution",
        "state",
        "recurrence",
        named,
        convolution.module if convolution else reader.events[0].module,
        kind="linear",
        remark=remark,
    )
    if parameter is not None:
        draft.parts.append((parameter, tuple(sizes.of(axis, parameter.name) for axis in parameter.shape)))
    reader.drafts.append(draft)


def _macs(event: Event) -> int:
    """Multiply-adds of a product of results."""
    left, right = event.shapes[0], event.shapes[1]
    return prod(left) * right[-1]


def _first_of(reader: BlockReader, number: int, sizes: list[Size]) -> Size:
    """The first of some sizes that a number is; "" if it is none."""
    return next((size for size in sizes if reader.sizes.number(size) == number), "")


def _is_norm(event: Event) -> bool:
    return event.kind == "leaf" and "norm" in event.class_name.lower()
