"""FFNs that were recorded: dense ones, and mixtures of experts with router and shared experts."""

from __future__ import annotations

from math import prod

from mantile.library.architecture import Fact, Size
from mantile.library.errors import InputError
from mantile.library.from_code.recording import Event, Recording
from mantile.library.from_code.steps import ROUTER, BlockReader, Draft, is_matrix_product, is_norm


def read_ffn(reader: BlockReader, recording: Recording) -> None:
    """The steps of an FFN, in the order of its events."""
    reader.refuse_other_products()
    experts, shared = _expert_products(reader)
    facts: tuple[str, ...] = _expert_facts(reader, recording, experts) if experts else ()
    latents = _latent_products(reader, experts) if experts else []
    kind = "moe" if experts else "dense"
    inner: dict[str, Size] = {}
    for parent in dict.fromkeys(event.parent for event in _products(reader)):
        own = [event for event in _products(reader) if event.parent == parent and event not in latents]
        inner[parent] = "" if any(inner.values()) else _inner(reader, own, bool(experts))
    for event in reader.events:
        if experts and event is experts[0]:
            _small_moe(reader, "experts_sorted", "Tokens by expert", "sort", _around(facts))
        if any(event is one for one in experts):
            _expert_product(reader, event, experts, facts)
        elif any(event is one for one in shared):
            _stacked(reader, event, shared)
        elif any(event is one for one in latents):
            _latent_product(reader, event, facts)
        elif is_matrix_product(event, reader.parameters):
            beside = _parents([event]) & _parents(experts)
            if beside and not _joins(reader, event, inner) and _chooses(reader, event, facts[0]):
                _router(reader, event, facts[0])
            else:
                _dense(reader, event, inner[event.parent], kind)
        elif event.kind == "convolution" and event.weight in reader.parameters:
            reader.convolution(event)
        elif is_norm(event):
            widths = [inner.get(event.parent, ""), _of_experts(reader, event, facts)]
            reader.norm(event, "", [size for size in widths if size])
        if experts and event is experts[-1]:
            _small_moe(reader, "experts_summed", "Results by token", "sum", _around(facts))
    reader.claim_the_rest(kind)


def _products(reader: BlockReader) -> list[Event]:
    return [event for event in reader.events if is_matrix_product(event, reader.parameters)]


def _parents(experts: list[Event]) -> set[str]:
    """The modules around some events: those that hold experts hold their router as well."""
    return {parent for event in experts for parent in (event.parent, event.parent.rpartition(".")[0])}


def _joins(reader: BlockReader, event: Event, inner: dict[str, Size]) -> bool:
    """Whether a product is one of an FFN: it joins the residual stream and the width inside."""
    size = inner[event.parent]
    if not size:
        return False
    width, hidden = reader.sizes.number(size), reader.sizes.number(reader.hidden)
    leads_in = event.inputs == hidden and event.outputs % width == 0
    return leads_in or (event.inputs == width and event.outputs == hidden)


def _chooses(reader: BlockReader, event: Event, count: Size) -> bool:
    """Whether a product is the router: a score for each expert, or the scores that a choice is made of."""
    chooses = any(one.kind == "choice" and one.module == event.module for one in reader.events)
    return event.outputs == reader.sizes.number(count) or chooses


def _expert_products(reader: BlockReader) -> tuple[list[Event], list[Event]]:
    """The products with slices of a parameter of three dimensions: of the routed experts, and of shared ones
    that stand beside them; one of each where a class runs expert by expert."""
    found: dict[str, Event] = {}
    for event in reader.events:
        parameter = reader.parameters.get(event.weight)
        if event.kind == "product" and parameter is not None and len(parameter.shape) == 3:
            found.setdefault(event.weight, event)
    most = max((reader.parameters[name].shape[0] for name in found), default=0)
    routed = [event for name, event in found.items() if reader.parameters[name].shape[0] == most]
    return routed, [event for event in found.values() if event not in routed]


def _stacked(reader: BlockReader, event: Event, shared: list[Event]) -> None:
    """A product of shared experts in one parameter: every token goes through all of them."""
    book, block = reader.sizes.book, reader.sizes.block
    parameter = reader.parameters[event.weight]
    is_last = event is shared[-1]
    count = book.add("shared_experts", parameter.shape[0], block)
    size = book.add("shared_expert_size", shared[-1].inputs * parameter.shape[0], block)
    inner = " + ".join([size] * (1 if is_last else event.outputs // shared[-1].inputs))
    inputs, outputs = (inner, reader.hidden) if is_last else (reader.hidden, inner)
    name = ("shared_down", "Shared experts down", "down") if is_last else (
        "shared_up", "Shared experts up", "up"
    )  # fmt: skip
    axes = (count, *(reader.sizes.of(axis, event.module, (reader.hidden,)) for axis in parameter.shape[1:]))
    reader.drafts.append(
        Draft(*name, "product", {"inputs": inputs, "outputs": outputs}, event.module, weights="ffn",
              kind="moe", parts=[(parameter, axes)])
    )  # fmt: skip


def _expert_facts(
    reader: BlockReader, recording: Recording, experts: list[Event]
) -> tuple[str, str, str, str]:
    """Experts, experts per token, the width inside one, and the width that they work in."""
    book, block = reader.sizes.book, reader.sizes.block
    count = reader.parameters[experts[0].weight].shape[0]
    slices = experts[0].shapes[0] if len(experts[0].shapes[0]) == 3 else experts[0].shapes[1]
    used = slices[0] // reader.tokens
    if (
        len(slices) != 3 or slices[0] % reader.tokens or slices[0] == count
    ):  # it runs expert by expert, or all
        chosen = [event.outputs for event in reader.events if event.kind == "choice"]
        stated = recording.config.get("num_experts_per_tok")
        used = chosen[-1] if chosen else int(stated or count)
    zeros = recording.zero_experts if _scores(reader, count + recording.zero_experts) else 0
    on_average, rest = divmod(used * count, count + zeros)
    if rest:
        raise InputError(
            f"{used} of {count} experts and {zeros} without weights are no whole number of experts on average"
        )
    names = (
        book.add("experts", count, block),
        book.add("experts_per_token", on_average, block),
        book.add("expert_size", experts[-1].inputs, block),
    )
    if zeros:
        without = book.add("zero_experts", zeros, block)
        fact = book.facts[names[1]]
        book.facts[names[1]] = Fact(value=fact.value, origin="derived", source=_expected(used, count, zeros))
        reader.sizes.know(f"{names[0]} + {without}")
    reader.sizes.know(names[0], names[2])
    hidden = reader.sizes.number(reader.hidden)
    if experts[0].inputs == experts[-1].outputs != hidden:
        latent = book.add("latent_size", experts[0].inputs, block, experts[0].module)
        reader.sizes.know_first(latent)
        return *names, latent
    return *names, reader.hidden


def _scores(reader: BlockReader, count: int) -> bool:
    """Whether a router gives that many scores."""
    return any(event.outputs == count for event in _products(reader))


def _expected(used: int, count: int, zeros: int) -> str:
    """What is assumed of experts without weights."""
    return (
        f"{used} of {count + zeros} experts are chosen, {zeros} of which have no weights: "
        f"{used * count // (count + zeros)} with weights on average, where all are chosen alike"
    )


def _latent_products(reader: BlockReader, experts: list[Event]) -> list[Event]:
    """The products that lead into the latent that experts work in, and out of it; [] where there is none."""
    hidden, latent = reader.sizes.number(reader.hidden), experts[0].inputs
    if latent == hidden or experts[-1].outputs != latent:
        return []
    first, last = (next(i for i, one in enumerate(reader.events) if one is event)
                   for event in (experts[0], experts[-1]))  # fmt: skip
    joined = {"in": (hidden, latent), "out": (latent, hidden)}
    around = {"in": reader.events[:first][::-1], "out": reader.events[last:]}
    found = [
        next((event for event in around[way] if is_matrix_product(event, reader.parameters)
              and (event.inputs, event.outputs) == joined[way]), None)
        for way in joined
    ]  # fmt: skip
    return [event for event in found if event is not None]


def _latent_product(reader: BlockReader, event: Event, facts: tuple[str, ...]) -> None:
    """The product into the latent that experts work in, or out of it."""
    leads_in = event.inputs == reader.sizes.number(reader.hidden)
    inputs, outputs = (reader.hidden, facts[3]) if leads_in else (facts[3], reader.hidden)
    name = {"step": "latent_down", "label": "Latent down", "short": "latent in"} if leads_in else {
        "step": "latent_up", "label": "Latent up", "short": "latent out"
    }  # fmt: skip
    reader.product(event, kind="moe", weights="ffn", inputs=inputs, outputs=outputs, **name)


def _of_experts(reader: BlockReader, event: Event, facts: tuple[str, ...]) -> Size:
    """The results of all experts of a token, where a norm is of them; else ""."""
    width = f"{facts[1]}*{facts[3]}" if facts else "0"
    return width if reader.sizes.number(width) * reader.tokens == prod(event.shapes[0]) else ""


def _around(facts: tuple[str, ...]) -> Size:
    """What is moved to the experts of a token, or back: its values, once and for each expert."""
    return f"{facts[1]}*{facts[3]} + {facts[3]}"


def _small_moe(reader: BlockReader, step: str, label: str, short: str, width: Size) -> None:
    reader.small("sorted", width, step, step=step, label=label, short=short, kind="moe")


def _expert_product(reader: BlockReader, event: Event, experts: list[Event], facts: tuple[str, ...]) -> None:
    """One product of the routed experts; the activation follows the products that lead in."""
    count, used, inner, width = facts
    parameter = reader.parameters[event.weight]
    is_last = event is experts[-1]
    factor = 1 if is_last else event.outputs // reader.sizes.number(inner)
    outputs = (
        reader.sizes.of(event.outputs, event.module, (width,)) if is_last else " + ".join([inner] * factor)
    )
    inputs = inner if is_last else reader.sizes.of(event.inputs, event.module, (width,))
    axes = (outputs, inputs) if parameter.shape[1:] == (event.outputs, event.inputs) else (inputs, outputs)
    gated = sum(one.outputs for one in experts[:-1]) > reader.sizes.number(inner)
    name = ("experts_down", "Experts down", "experts down") if is_last else (
        "experts_up", "Experts gate + up" if gated else "Experts up", "experts up"
    )  # fmt: skip
    sizes = {"inputs": inputs, "outputs": outputs, "count": count, "per_token": used}
    reader.drafts.append(
        Draft(*name, "experts", sizes, event.module, weights="experts", kind="moe",
              parts=[(parameter, (count, *axes))])
    )  # fmt: skip
    expected = reader.sizes.book.facts[used]
    if expected.origin == "derived" and not is_last:
        reader.drafts[-1].remark = expected.source
    for suffix in ("_bias", ".bias"):
        bias = reader.parameters.get(f"{event.weight.removesuffix('.weight')}{suffix}")
        if bias is not None:
            reader.drafts[-1].parts.append((bias, (count, outputs)))
    if len(experts) > 1 and event is experts[-2]:
        terms = sum(one.outputs for one in experts[:-1]) // reader.sizes.number(inner) + 1
        reader.small(
            "activation",
            " + ".join([f"{used}*{inner}"] * terms),
            event.module,
            step="experts_activation",
            label="Experts activation",
            short="activation",
            kind="moe",
        )


def _router(reader: BlockReader, event: Event, count: Size) -> None:
    scores = reader.sizes.first_of(event.outputs, [count, *_with_zero_experts(reader, count)])
    reader.product(
        event, kind="moe", outputs=scores, step="router", label="Router", short="router", weights="router"
    )
    width = scores or count
    reader.small("routing", width, event.module, step="routing", label="Routing", short="routing", kind="moe")


def _with_zero_experts(reader: BlockReader, count: Size) -> list[Size]:
    """All experts, those without weights among them, where there are any."""
    return [size for _, size in reader.sizes.known if size.startswith(f"{count} + zero_experts")]


def _inner(reader: BlockReader, events: list[Event], beside_experts: bool) -> Size:
    """The width inside the FFN of a module: what its last product takes in; "" where it is no FFN.

    Args:
        events: the products of the module.
    """
    if len(events) < 2:
        return ""
    hidden = reader.sizes.number(reader.hidden)
    last = events[-1]
    if last.outputs != hidden or events[0].inputs != hidden:
        return ""
    role = "shared_expert_size" if beside_experts else "ffn_size"
    return reader.sizes.book.add(role, last.inputs, reader.sizes.block, last.module)


def _dense(reader: BlockReader, event: Event, inner: Size, kind: str) -> None:
    """A product of a dense FFN, or of a shared expert."""
    if not inner:
        name = {"step": "shared_weight", "label": "Shared expert gate weight", "short": "shared gate"}
        is_gate = kind == "moe" and event.outputs == 1
        reader.product(event, kind=kind, **({"weights": ROUTER, **name} if is_gate else {"weights": "ffn"}))
        return
    stem, title = ("shared", "Shared expert") if kind == "moe" else ("ffn", "FFN")
    width = reader.sizes.number(inner)
    is_last = (
        event.inputs == width
        and event is [one for one in _products(reader) if one.parent == event.parent][-1]
    )
    if is_last:
        terms = sum(
            one.outputs for one in _products(reader) if one.parent == event.parent and one is not event
        ) // width + 1  # fmt: skip
        reader.small(
            "activation",
            " + ".join([inner] * terms),
            event.module,
            step="activation" if kind == "dense" else "shared_activation",
            label="Activation" if kind == "dense" else "Shared expert activation",
            short="activation",
            kind=kind,
        )
        reader.product(
            event,
            kind=kind,
            weights="ffn",
            inputs=inner,
            outputs=reader.hidden,
            step=f"{stem}_down",
            label=f"{title} down",
            short="down",
        )
    elif event.outputs % width == 0:
        reader.product(
            event,
            kind=kind,
            weights="ffn",
            outputs=" + ".join([inner] * (event.outputs // width)),
            step=f"{stem}_up",
            label=f"{title} gate + up",
            short="gate + up",
        )
    else:
        reader.product(event, kind=kind, weights="ffn")
