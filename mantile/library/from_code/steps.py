"""The events of a block as its steps, with the sizes and tensors of each.

What a step is follows from what was seen: a product before or after the core of a mixer, the last of the
products of an FFN, a parameter of three dimensions of which a token uses some slices. Names of modules only
decide what a step is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from mantile.library.architecture import NOT_RUN, Size, Step, StoredTensor, Work
from mantile.library.errors import InputError
from mantile.library.from_code.recording import Event, Parameter, Part
from mantile.library.from_code.sizes import Sizes

SMALL = 0.005  # of a block's values: what is larger and was not run is not left over, but missed
LONG = 8192  # tokens of a prompt for which what grows faster than it must still be small


@dataclass
class Draft:
    """A step that is being put together.

    Args:
        source: the same where two products read the same values.
        parts: of what it reads: parameter, and the sizes of its axes as far as the product tells them.
        rest: parameters of its module that no product reads.
    """

    step: str
    label: str
    short: str
    work: Work
    sizes: dict[str, Size]
    module: str
    weights: str = "attention"
    kind: str = ""
    remark: str = ""
    source: int = 0
    parts: list[tuple[Parameter, tuple[Size, ...]]] = field(default_factory=list)
    rest: list[tuple[Parameter, tuple[Size, ...]]] = field(default_factory=list)


@dataclass
class BlockReader:
    """Reads one block: a mixer, an FFN, or what runs once.

    Args:
        events: in order.
        parameters: what the block holds, by name.
        hidden: the size of the residual stream.
        mixer: the module in which attention looks back; what stands beside it has no widths of its heads.
    """

    sizes: Sizes
    events: Sequence[Event]
    parameters: dict[str, Parameter]
    tokens: int
    hidden: Size = "hidden_size"
    mixer: str = ""
    drafts: list[Draft] = field(default_factory=list)

    def product(self, event: Event, **known: str) -> Draft:
        """A product of every token with a matrix, or with several that read the same values, as one step.

        Args:
            known: step, label, short, weights, kind, inputs, outputs, as far as they are known.
        """
        parameter = self.parameters[event.weight]
        counts = self.may_have_heads(event)
        inputs = known.pop("inputs", "") or self.sizes.of(
            event.inputs, f"{event.module}_in", (self.hidden,), counts=False
        )
        outputs = known.pop("outputs", "") or self.sizes.of(event.outputs, event.module, counts=counts)
        parts = [(parameter, _axes(parameter, event, inputs, outputs))]
        if event.bias in self.parameters:
            parts.append((self.parameters[event.bias], (outputs,)))
        if event.rows > self.tokens:
            return self._often(event, parts)
        alike = (draft for draft in self.drafts if self._reads_alike(draft, event, inputs))
        before = None if ROUTER in known.values() else next(alike, None)
        if before is not None:
            before.sizes["outputs"] += f" + {outputs}"
            before.parts += parts
            name = _spoken(event.module.rpartition(".")[2]).lower()
            if name not in before.label:
                before.label += f", {name}" if before.step not in _NAMED else ""
            return before
        step = known.pop("step", "") or step_name(event.module)
        label = known.pop("label", "") or _spoken(event.module)
        draft = Draft(
            step=step,
            label=label,
            short=known.pop("short", "") or _short(event.module),
            work="product",
            sizes={"inputs": inputs, "outputs": outputs},
            module=event.module,
            source=event.source,
            parts=parts,
            **known,  # type: ignore[arg-type]
        )
        self.drafts.append(draft)
        return draft

    def may_have_heads(self, event: Event) -> bool:
        """Whether a width may be one over heads: not beside the module that has them."""
        return not self.mixer or event.module.partition(".")[0] == self.mixer

    def _often(self, event: Event, parts: list[tuple[Parameter, tuple[Size, ...]]]) -> Draft:
        """A product of several rows of each token, such as one for every head, with one small matrix."""
        done = event.rows * event.inputs * event.outputs // self.tokens
        sizes = {
            "state": "0",
            "conv": "0",
            "kernel": self.sizes.book.add("conv_kernel", 1, f"{self.sizes.block}_none"),
            "macs": self.sizes.of(done, event.module, counts=False),
        }
        label, remark = _spoken(event.module), "one matrix for several rows of each token"
        self.drafts.append(
            Draft(step_name(event.module), label, _short(event.module), "recurrence", sizes, event.module,
                  remark=remark, parts=parts)
        )  # fmt: skip
        return self.drafts[-1]

    def _reads_alike(self, draft: Draft, event: Event, inputs: Size) -> bool:
        return (
            draft.work == "product"
            and draft.weights != ROUTER
            and draft.source == event.source
            and draft.sizes["inputs"] == inputs
            and draft.module.rpartition(".")[0] == event.parent
            and event.rows == self.tokens
        )

    def small(self, work: Work, width: Size, module: str, **known: str) -> Draft:
        """A step that streams over the channels of every token."""
        draft = Draft(
            step=known.get("step") or step_name(module),
            label=known.get("label") or _spoken(module or work),
            short=known.get("short") or ("norm" if work == "norm" else _short(module or work)),
            work=work,
            sizes={"width": width},
            module=module,
            kind=known.get("kind", ""),
        )
        self.drafts.append(draft)
        return draft

    def norm(self, event: Event, kind: str = "", widths: Sequence[Size] = ()) -> None:
        """A norm as the module that ran it; norms of a mixer that follow each other are one step.

        One of each head, or of groups of heads, is a "qk_norm".

        Args:
            widths: of results of products, where it may be one of those; () for one of the residual stream.
        """
        held = [one for name, one in self.parameters.items() if name.rpartition(".")[0] == event.module]
        values = prod(event.shapes[0]) // self.tokens
        width = self.sizes.of(values, event.module, (*widths, self.hidden), counts=self.may_have_heads(event))
        shape = event.shapes[0]
        of_heads = len(shape) > 3 or values > (event.over or shape[-1])
        work: Work = "qk_norm" if of_heads else "norm"
        before = self.drafts[-1] if widths and self.drafts else None
        if before is not None and before.work == work and before.module.rpartition(".")[0] == event.parent:
            before.sizes["width"] += f" + {width}"
            before.label += f", {_spoken(event.module.rpartition('.')[2]).lower()}"
            draft = before
        else:
            short = {"short": "QK norm"} if of_heads else {}
            draft = self.small(work, width, event.module, kind=kind, **short)
        draft.parts += [
            (one, tuple(self.sizes.of(axis, event.module, (width,)) for axis in one.shape)) for one in held
        ]

    def convolution(self, event: Event, widths: Sequence[Size] = ()) -> None:
        """A short convolution over the tokens, whose last inputs are kept.

        Args:
            widths: as for `norm`.
        """
        kernel = self.parameters[event.weight]
        channels = self.sizes.made_of(kernel.shape[0], widths) or self.sizes.of(
            kernel.shape[0], event.module, (self.hidden,)
        )
        length = self.sizes.book.add("conv_kernel", kernel.shape[-1], self.sizes.block)
        sizes = {"state": "0", "conv": channels, "kernel": length, "macs": "0"}
        step, label = step_name(event.module), _spoken(event.module)
        draft = Draft(step, label, "short conv", "recurrence", sizes, event.module, kind="linear")
        draft.parts.append((kernel, (channels, "1", length)))
        self.drafts.append(draft)

    def mixes_channels(self, event: Event) -> bool:
        """Whether a convolution works like a matrix: each of its results is made of several channels."""
        kernel = self.parameters.get(event.weight)
        return event.kind == "convolution" and kernel is not None and kernel.shape[1] > 1

    def mixing_convolution(self, event: Event, kind: str, widths: Sequence[Size] = ()) -> None:
        """A convolution over tokens and channels, as the product that it is with each token.

        Args:
            widths: that its results may be made of.
        """
        kernel = self.parameters[event.weight]
        outputs = self.sizes.made_of(kernel.shape[0], widths) or self.sizes.of(
            kernel.shape[0], event.module, counts=False
        )
        inputs = self.sizes.of(prod(kernel.shape[1:]), f"{event.module}_in", counts=False)
        axes = (outputs, *(self.sizes.of(axis, event.module, counts=False) for axis in kernel.shape[1:]))
        step, label = step_name(event.module), _spoken(event.module)
        sizes = {"inputs": inputs, "outputs": outputs}
        draft = Draft(step, label, _short(event.module), "product", sizes, event.module, kind=kind)
        draft.parts.append((kernel, axes))
        self.drafts.append(draft)

    def between_results(self) -> list[Event]:
        """The products that no matrix of the block takes part in."""
        return [event for event in self.events if event.kind == "product" and not event.weight]

    def refuse_other_products(self, known: Sequence[Event] = ()) -> None:
        """Stop at products of results that no step stands for, unless they are small.

        Raises:
            InputError: for one; how its work grows with the prompt was not seen.
        """
        of_matrices = sum(one.rows * one.inputs * one.outputs for one in self.events if one.weight)
        done: Counter[str] = Counter()  # a class may go token by token
        for event in self.between_results():
            if event in known:
                continue
            values = prod(event.shapes[0]) * event.shapes[1][-1]
            if self.tokens in (event.inputs, event.outputs):  # it grows with the square of the prompt
                values *= LONG // self.tokens
            done[event.module] += values
            if done[event.module] > SMALL * of_matrices:
                factors = " by ".join(str(list(shape)) for shape in event.shapes)
                raise InputError(f"{event.module} multiplies two results, {factors}, which is no attention")

    def claim_the_rest(self, kind: str) -> None:
        """Parameters that no product reads: each to the step of its module, or of the nearest before it.

        Raises:
            InputError: for a large one that nothing read: how it is worked with was not seen.
        """
        largest = SMALL * sum(one.size for one in self.parameters.values())
        claimed = {parameter.name for draft in self.drafts for parameter, _ in draft.parts}
        for name, one in self.parameters.items():
            if name in claimed:
                continue
            if not one.is_run and one.size > largest:
                raise InputError(f"nothing that was seen reads {name} {list(one.shape)}")
            place = name.rpartition(".")[0]
            near = max(self.drafts, key=lambda draft: _common(draft.module, place), default=None)
            likely = [near.sizes[key] for key in _RESULTS if key in near.sizes] if near is not None else []
            shape = tuple(self.sizes.of(axis, name, likely) for axis in one.shape)
            if near is None:
                near = self.small("gate", shape[-1] if shape else "1", name, kind=kind)
            near.rest.append((one, shape))

    def steps(self) -> tuple[Step, ...]:
        """The drafts as steps."""
        used: dict[str, int] = {}
        labels: dict[str, int] = {}
        steps = []
        for draft in self.drafts:
            used[draft.step] = used.get(draft.step, 0) + 1
            labels[draft.label] = labels.get(draft.label, 0) + 1
            name = draft.step if used[draft.step] == 1 else f"{draft.step}_{used[draft.step]}"
            is_read = (
                draft.work in ("product", "experts")
                or draft.weights in ("head", "embedding")
                or draft.step == NOT_RUN
            )
            steps.append(
                Step(
                    step=name,
                    label=draft.label + (f" {labels[draft.label]}" if labels[draft.label] > 1 else ""),
                    short=draft.short,
                    work=draft.work,
                    sizes=draft.sizes,
                    tensors=tuple(
                        tensor
                        for one, axes, matrix in (
                            *((one, axes, is_read) for one, axes in draft.parts),
                            *((one, axes, False) for one, axes in draft.rest),
                        )
                        for tensor in self._stored(one, axes, matrix)
                    ),
                    weights=draft.weights,  # type: ignore[arg-type]
                    kind=draft.kind,
                    remark=draft.remark,
                )
            )
        return tuple(steps)

    def _stored(self, one: Parameter, axes: tuple[Size, ...], matrix: bool) -> Iterator[StoredTensor]:
        """A parameter as a checkpoint stores it."""
        pieces = [size for axis in axes for size in (axis, *axis.split(" + "))]
        for name, shape, count in one.stored:
            usual = axes[len(axes) - len(shape) :] if len(axes) >= len(shape) else ("1",) * len(shape)
            if len(axes) == len(shape) + 1 and count == 1 and "+" not in axes[1]:
                usual = (f"{axes[1]}*{axes[0]}", *axes[2:])  # experts below each other in one matrix
            sizes = tuple(
                size
                if self.sizes.number(size) == number
                else self.sizes.of(number, one.name, (*size.split(" + "), *pieces))
                for size, number in zip(usual, shape, strict=True)
            )
            yield StoredTensor(
                name=name,
                shape=sizes or ("1",),
                copies=self.sizes.fact_of(count, one.name) if count > 1 else "",
                matrix=matrix and len(shape) > 1,
                buffer=one.buffer,
            )


ROUTER = "router"  # the class of matrices that stay in 16 bit, each a product of its own
_RESULTS = ("outputs", "width", "conv")  # sizes of a step that a vector beside it may have
_NAMED = ("qkv", "ffn_up", "shared_up")


def step_name(module: str) -> str:
    """A module's name as the name of a step."""
    return (
        "_".join(part for part in module.lower().replace("-", "_").split(".") if not part.isdigit()) or "top"
    )


_CONTAINERS = (
    "model", "language_model", "text_model", "decoder", "transformer", "self_attn", "self_attention",
    "linear_attn", "attn", "mlp", "block_sparse_moe",
)  # fmt: skip
_WORDS = {"proj": "projection", "layernorm": "norm", "rmsnorm": "norm", "ln": "norm", "norms": "norm",
          "ffn": "FFN", "kv": "KV", "qkv": "QKV", "moe": "MoE"}  # fmt: skip


def _spoken(module: str) -> str:
    """A module's name as a label: self_attn.q_proj is "Q projection"."""
    *around, last = [part for part in module.split(".") if not part.isdigit()] or [module]
    parts = [*(part for part in around if part not in _CONTAINERS), last]
    words = " ".join(_WORDS.get(word, word) for part in parts for word in part.split("_"))
    return words[:1].upper() + words[1:]


def _short(module: str) -> str:
    """The last words of a module's name, as many as twelve characters hold."""
    words = _spoken(module.rpartition(".")[2]).lower().split()
    while len(" ".join(words)) > 12 and len(words) > 1:
        words = words[1:]
    return " ".join(words)[:12]


def _common(left: str, right: str) -> int:
    """How many names two paths share from the start."""
    count = 0
    for one, other in zip(left.split("."), right.split("."), strict=False):
        if one != other:
            break
        count += 1
    return count


def _axes(parameter: Parameter, event: Event, inputs: Size, outputs: Size) -> tuple[Size, ...]:
    """The sizes of a matrix in the order in which it is stored."""
    if parameter.shape[-2:] == (event.outputs, event.inputs):
        return (outputs, inputs)
    if parameter.shape[-2:] == (event.inputs, event.outputs):
        return (inputs, outputs)
    return ()


def is_matrix_product(event: Event, parameters: dict[str, Parameter]) -> bool:
    """Whether an event is a product of tokens with one matrix of the block."""
    return (
        event.kind == "product"
        and len(parameters[event.weight].shape if event.weight in parameters else ()) == 2
    )


def is_norm(event: Event) -> bool:
    """Whether an event is a norm, by the name of its class."""
    return event.kind == "leaf" and "norm" in event.class_name.lower()


def split(part: Part) -> tuple[list[Event], list[Event]]:
    """The events of a layer's mixer, and those of its FFN.

    The mixer ends with the last module of the layer in which attention looks back, or a state is kept.
    Convolutions alone are no mixer where there is attention.
    """
    states = any(name.startswith("recurrent_states") for name in part.cache)
    ranked = ({"attention", "convolution"},) if states else ({"attention"}, {"convolution"})
    found = [[event for event in part.events if event.kind in kinds] for kinds in ranked]
    found.append([event for event in part.events if event.kind == "product" and not event.weight])
    cores = next((events for events in found if events), [])
    if not cores:
        return [], list(part.events)
    core = cores[-1].module.partition(".")[0]
    last = max(i for i, event in enumerate(part.events) if event.module.partition(".")[0] == core)
    return list(part.events[: last + 1]), list(part.events[last + 1 :])
