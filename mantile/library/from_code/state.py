"""Mixers that keep a state which does not grow, or the last inputs of a short convolution.

A token writes the product of its key and its value into the state of every head, and reads the state with
its query; groups of heads may share keys and queries. So the matrices of a mixer, its convolution and its
products are made of the values of all heads, of their keys, and of one channel for each head. Tensor-parallel
ranks share these; what is made of nothing of the kind stands on every rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mantile.library.architecture import Size
from mantile.library.errors import InputError
from mantile.library.from_code.recording import Event, Recording, Shape
from mantile.library.from_code.steps import BlockReader, Draft, is_matrix_product, is_norm

CHUNK = 64  # tokens, of classes whose config states none
_CHUNKS = ("mamba_chunk_size", "chunk_size", "block_size")  # what a config calls it


@dataclass(frozen=True)
class Widths:
    """What a mixer that keeps a state is made of; "" for what it has not.

    Args:
        heads: how many keep a state.
        rows, columns: of the state of a head.
        results: channels of the results of all heads, which the last matrix takes in.
        keys: channels of the keys of all heads, or of all groups that share them.
        convolved: channels of the short convolution.
    """

    heads: Size = ""
    rows: Size = ""
    columns: Size = ""
    results: Size = ""
    keys: Size = ""
    convolved: Size = ""

    def known(self) -> list[Size]:
        """What its matrices are made of, the likeliest first, then what every rank has as a whole."""
        sizes = (self.convolved, self.results, self.heads, self.keys, self.rows, self.columns)
        return [size for size in sizes if size]

    def shared(self) -> list[Size]:
        """What its matrices are made of and ranks share, the likeliest first."""
        return [size for size in (self.convolved, self.results, self.heads, self.keys) if size]


class StateReader:
    """Reads the events of such a mixer in their order.

    Args:
        cache: what the layer keeps.
        around: widths of the attention that the state stands inside; () for a mixer of its own.

    Raises:
        InputError: if what it keeps was not seen, or no matrix of it.
    """

    def __init__(
        self,
        reader: BlockReader,
        recording: Recording,
        cache: dict[str, Shape],
        around: Sequence[Size] = (),
    ) -> None:
        self.reader, self.recording, self.around = reader, recording, around
        self.core = _core(reader)
        place = reader.events[self.core].module
        if not any(name.startswith(("recurrent_states", "conv_states")) for name in cache):
            raise InputError(f"{place} looks back, and what it keeps of the tokens before was not seen")
        states = [shape[1:] for name, shape in cache.items() if name.startswith("recurrent_states")]
        self.state = states[0] if states else ()
        inside = [(index, event) for index, event in enumerate(reader.events) if self.holds(event)]
        self.matrices = [index for index, one in inside if is_matrix_product(one, reader.parameters)]
        if not self.matrices:
            raise InputError(f"{place} keeps a state, and no matrix of it was seen")
        self.results = [one for _, one in inside if one.kind == "product" and not one.weight]
        self.kernels = list(dict.fromkeys(one.weight for _, one in inside if _is_short(reader, one)))
        channels = sum(reader.parameters[name].shape[0] for name in self.kernels) or sum(
            shape[1] for name, shape in cache.items() if name.startswith("conv_states")
        )
        self.widths = self._inside_attention(channels, around) if around else self._of_its_own(channels)
        reader.sizes.know_first(*self.widths.known())
        self.of_stream: set[int] = set()  # the sources of products with values of the residual stream

    def holds(self, event: Event) -> bool:
        """Whether an event is one of this mixer: attention may stand beside it in a layer."""
        return _top(event) == module_of_state(self.reader)

    def _inside_attention(self, channels: int, around: Sequence[Size]) -> Widths:
        sizes = self.reader.sizes
        if not channels:
            return Widths()
        return Widths(convolved=sizes.made_of(channels, around) or sizes.of(channels, "convolved"))

    def _of_its_own(self, channels: int) -> Widths:
        """The last matrix takes in the results of all heads; the convolution has keys and queries as well."""
        sizes, book, block = self.reader.sizes, self.reader.sizes.book, self.reader.sizes.block
        last = self.reader.events[self.matrices[-1]]
        roles = zip(("state_heads", "state_rows", "state_columns"), self.state, strict=False)
        heads, rows, columns = [*(book.add(role, number, block) for role, number in roles), "", "", ""][:3]
        by_head = [f"{heads}*{rows}", f"{heads}*{columns}"] if columns else [heads] if heads else []
        results = sizes.first_of(last.inputs, by_head) or book.add(
            "mixer_size", last.inputs, block, last.module
        )
        keys, convolved = "", ""
        if columns:
            key = columns if results == by_head[0] and self.state[1] != self.state[2] else rows
            groups, rest = divmod(channels - sizes.number(results), 2 * sizes.number(key))
            has_keys = groups > 0 and not rest and self.state[0] % groups == 0  # beside the values
            is_shared = has_keys and groups < self.state[0]
            keys = f"{book.add('state_groups', groups, block) if is_shared else heads}*{key}"
            convolved = f"{results} + {keys} + {keys}" if has_keys else ""
        if channels and not convolved:
            parts = [size for size in (results, keys) if size]
            convolved = sizes.made_of(channels, parts) or sizes.of(channels, f"{block}_convolved")
        return Widths(heads, rows, columns, results, keys, convolved)

    def read(self, index: int) -> None:
        """The step of an event, if it is one."""
        reader, event = self.reader, self.reader.events[index]
        if index == self.core:
            self.read_core()
        is_inside = self.holds(event) and self.matrices[0] < index < self.matrices[-1]
        if index in self.matrices:
            self._product(index, event)
        elif is_matrix_product(event, reader.parameters):
            reader.product(event)
        elif reader.mixes_channels(event):
            reader.mixing_convolution(event, "linear")
        elif is_norm(event):
            reader.norm(event, "linear" if is_inside else "", self.widths.shared() if is_inside else ())

    def _product(self, index: int, event: Event) -> None:
        """A product with a matrix, by what it joins."""
        reader, hidden = self.reader, self.reader.sizes.number(self.reader.hidden)
        if index == self.matrices[-1] and event.outputs == hidden:
            names = {"step": "output", "label": "Output projection", "short": "output"}
            reader.product(event, kind="linear", inputs=self.widths.results, outputs=reader.hidden, **names)
            return
        inputs = ""
        if event.inputs == hidden and (index < self.core or event.source in self.of_stream):
            inputs = reader.hidden
            self.of_stream.add(event.source)
        inputs = inputs or self._width(event.inputs)
        reader.product(event, kind="linear", inputs=inputs, outputs=self._width(event.outputs))

    def _width(self, channels: int) -> Size:
        """A width as one of what the mixer is made of, or the sum of several; "" where it is neither."""
        sizes = self.reader.sizes
        return sizes.first_of(channels, self.widths.known()) or sizes.made_of(channels, self.widths.shared())

    def read_core(self) -> None:
        """The convolution and the state."""
        reader, widths = self.reader, self.widths
        sizes, book, block = reader.sizes, reader.sizes.book, reader.sizes.block
        parameters = [reader.parameters[name] for name in self.kernels]
        length = book.add("conv_kernel", parameters[0].shape[-1] if parameters else 1, block)
        by_head = "*".join(filter(None, (widths.heads, widths.rows, widths.columns)))
        state = by_head or (sizes.of(prod(self.state), f"{block}_state") if self.state else "0")
        named = {"state": state, "conv": widths.convolved or "0", "kernel": length, "macs": state}
        remark = ""
        if self.results and widths.columns:
            fields = (self.recording.config.get(name) for name in _CHUNKS)
            stated = next((number for number in fields if isinstance(number, int)), 0)
            why = "" if stated else "kernels work in chunks of this length"
            named["chunk"] = book.add("state_chunk", stated or CHUNK, block, why)
            named["macs"] = self._products(named["chunk"])
            sizes.know(named["chunk"])
        elif self.state:
            remark = "priced as one product with the state; the class works it out element by element"
        module = reader.events[self.core].module
        kept = "Convolution and state" if widths.convolved else "State"
        label = kept if self.state else "Short convolution"
        draft = Draft("state_core", label, "state", "recurrence", named, module, kind="linear", remark=remark)
        draft.parts += [(one, (self._width(one.shape[0]) or sizes.of(one.shape[0], one.name), "1", length))
                        for one in parameters]  # fmt: skip
        reader.drafts.append(draft)

    def _products(self, chunk: Size) -> Size:
        """Multiply-adds of a token: what a chunk's matrices of rows, columns and tokens come to.

        One of the three sizes of a product is a chunk's tokens, so the other two are what a token costs.
        Passing states on from chunk to chunk is left out, as it is for mixers with a reader of ours.
        """
        sizes, widths, tokens = self.reader.sizes, self.widths, self.reader.tokens
        rows, columns, length = widths.rows, widths.columns, sizes.number(chunk)
        chunks = -(-tokens // length)
        done: Counter[tuple[int, ...]] = Counter()
        for event in self.results:
            left, right = event.shapes
            done[tuple(sorted((*left[-2:], right[-1])))] += prod(left[:-2])
        found: list[Size] = []
        for sides, often in done.items():
            is_whole = tokens in sides  # a class may take the prompt as one chunk
            numbers = {chunk: tokens if is_whole else length}
            fitting = [
                f"{widths.heads}*{one}*{other}"
                for one, other in ((columns, chunk), (rows, chunk), (rows, columns), (chunk, chunk))
                if sorted(numbers.get(size, sizes.number(size)) for size in (one, other, chunk)) == [*sides]
            ]
            times, rest = divmod(often, self.state[0] * (1 if is_whole else chunks))
            if fitting and not rest:
                found += [*fitting[:times], *fitting[-1:] * (times - len(fitting))]
            elif sides[0] != sides[1] or sides[0] not in (chunks, chunks + 1):
                total = sum(prod(one) * many for one, many in done.items())
                return sizes.of(total // (chunks * length), f"{sizes.block}_chunk")
        return " + ".join(found)


def _core(reader: BlockReader) -> int:
    """Where the convolution and the state stand among the events."""
    events = list(enumerate(reader.events))
    convolution = next((i for i, event in events if event.kind == "convolution"), None)
    if convolution is not None:
        return convolution
    return next((i for i, event in events if event.kind == "product" and not event.weight), 0)


def module_of_state(reader: BlockReader) -> str:
    """The module of a layer that a state is kept in."""
    return _top(reader.events[_core(reader)])


def _is_short(reader: BlockReader, event: Event) -> bool:
    """Whether it is a short convolution of every channel by itself."""
    return (
        event.kind == "convolution" and event.weight in reader.parameters and not reader.mixes_channels(event)
    )


def _top(event: Event) -> str:
    """The module of a layer that an event happens in."""
    return event.module.partition(".")[0]
