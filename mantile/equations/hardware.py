"""What the chosen accelerator, system and data types offer: looked up in the library, overridable, in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constants import BITS_PER_BYTE, GIBI, GIGA, ONE_TOKEN, TERA, VECTOR_BYTES
from mantile.equations.workload import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Row,
    Section,
    as_node,
    element,
    equal,
    is_number,
    minimum,
    position,
    span,
    where,
)  # fmt: skip
from mantile.graph.sentence import called as called_
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import Figure, Library
from mantile.library.scenario import SAME

PEAKS = ("bf16", "fp8", "fp4")


CLASSES = {"attention": "attention", "ffn": "FFN", "experts": "experts", "router": "router", "head": "embedding and LM head"}


@dataclass(frozen=True)
class WeightClass:
    """What the data type of a class of matrices leads to: bytes per weight, the peak its products run at, whose kernels."""

    bytes: Quantity
    low_precision: Quantity
    linear_peak: Quantity
    kernel_format: Quantity
    activation_bytes: Quantity
    stored_only: Quantity | None


@dataclass(frozen=True)
class Hardware:
    """Figures of the chosen accelerator, per accelerator unless the label says otherwise.

    Peaks in FLOP/s, bandwidths in B/s, sizes in B; `kv_bytes` per channel and token. `classes` are those of the weights.
    """

    generation: Quantity
    peak_bf16: Quantity
    memory_bandwidth: Quantity
    memory_capacity: Quantity
    link_bandwidth: Quantity
    system_accelerators: Quantity
    classes: Mapping[str, WeightClass]
    kv_bytes: Quantity
    activations_sixteen_bit: Quantity
    kv_format: Quantity
    sections: tuple[Section, ...]
    overrides: tuple[Input, ...]


def describe(figure: Figure) -> str:
    """Source and date of a figure, as a cell shows it."""
    return f"{figure.status} {figure.date:%Y-%m}: {figure.source}"


def override(identifier: str, label: str, unit: str, called: str, low: float, high: float) -> Input:
    """An empty cell that replaces a looked-up figure once filled."""
    return Input(f"{identifier}.override", f"Override, {label}", unit, None, "empty: the figure of the library holds",
                 "scenario", "given", minimum=low, maximum=high, name=f"override of {called}")  # fmt: skip


def hardware(library: Library, inputs: Workload, ir: ModelGraph) -> Hardware:
    """The rows of the Hardware sheet."""
    sections: list[Section] = []
    overrides: list[Input] = []

    def text_rows(prefix: str, label: str, note: str, values: dict[str, str], what: str) -> tuple[Input, ...]:
        return tuple(
            Input(f"{prefix}.{key}.{what}", f"{label}, {key}", "1", value, note, "library", "defined", shared=True, fixed=True,
                  name=label.lower())
            for key, value in values.items()
        )  # fmt: skip

    ids = tuple(
        Input(f"library.{item.id}.id", f"Accelerator, {item.id}", "1", item.id, item.name, item.vendor, "defined", shared=True,
              fixed=True, name="accelerators")
        for item in library.accelerators
    )  # fmt: skip
    number = Quantity("hardware.accelerator_number", "Number of the accelerator", "number", position(inputs.accelerator, span(ids)),
                      note="place of the chosen accelerator in this block")  # fmt: skip
    sections.append(Section("Accelerators", (*ids, number)))
    generations = text_rows("library", "Generation", "architecture", {a.id: a.generation for a in library.accelerators},
                            "generation")  # fmt: skip
    generation = Quantity("hardware.generation", "Generation", "1", element(span(generations), number),
                          note="of the chosen accelerator; efficiency profiles fall back to it")  # fmt: skip
    sections.append(Section("Generation", (*generations, generation)))

    def looked_up(name: str, title: str, unit: str, figures: dict[str, Figure], scale: Input | None, called: str,
                  where_from: str = "accelerator") -> tuple[list[Input], Input, Quantity]:  # fmt: skip
        rows = [
            Input(f"library.{key}.{name}", f"{title}, {key}", unit, figure.value or 0.0, figure.note, describe(figure),
                  figure.status, shared=True, minimum=0, name=f"{called} in the library")
            for key, figure in figures.items()
        ]  # fmt: skip
        mine = override(f"hardware.{name}", title, unit, called, 0 if name.startswith("peak_fp") else 0.001, 1e9)
        overrides.append(mine)
        chosen: Node = where(is_number(mine), mine, element(span(rows), number))
        base = {"GiB": "B", "GB/s": "B/s", "TFLOP/s": "FLOP/s"}.get(unit, unit)
        quantity = Quantity(f"hardware.{name}", f"{title} in use", base, chosen if scale is None else chosen * scale,
                            note=f"of the chosen {where_from}, or the override" + (f", × {called_(scale)}" if scale is not None else ""),
                            name=called)  # fmt: skip
        return rows, mine, quantity

    accelerators = {item.id: item for item in library.accelerators}
    systems = {system.accelerator: system for system in library.systems}
    systems = {key: systems[key] for key in accelerators}
    peak_rows: list[Row] = []
    peak_overrides, peaks = [], []
    for kind in PEAKS:
        rows, mine, quantity = looked_up(f"peak_{kind}", f"Dense peak, {kind}", "TFLOP/s",
                                         {key: getattr(item, f"peak_{kind}") for key, item in accelerators.items()}, TERA,
                                         f"{kind} peak")  # fmt: skip
        peak_rows += rows
        peak_overrides.append(mine)
        peaks.append(quantity)
    peak_keys = tuple(
        Input(f"library.peak_key.{kind}", f"Peak {number_}", "1", kind, "name of the peak in the data types below", "library",
              "defined", shared=True, fixed=True, name="peaks")
        for number_, kind in enumerate(PEAKS, 1)
    )  # fmt: skip
    sections.append(Section("Dense peak", (*peak_rows, *peak_keys, *peak_overrides, *peaks),
                            "without sparsity; 0 where there is no native path", Section.SUBTOTAL))  # fmt: skip

    single = {}
    others: tuple[tuple[str, str, str, Input | None, str, str], ...] = (
        ("memory_capacity", "Memory", "GiB", GIBI, "accelerator", "as the driver reports it"),
        ("memory_bandwidth", "Memory bandwidth", "GB/s", GIGA, "accelerator", "datasheet"),
        ("link_bandwidth", "Link bandwidth", "GB/s", GIGA, "system", "between accelerators of one system, per direction"),
        ("accelerators", "Accelerators in a system", "accelerator", None, "system", "largest number that one link domain joins"),
    )
    for name, title, unit, scale, holder, note in others:
        held = accelerators if holder == "accelerator" else systems
        figures = {key: getattr(item, name) for key, item in held.items()}
        rows, mine, quantity = looked_up(name, title, unit, figures, scale, title.lower(), holder)
        sections.append(Section(title, (*rows, mine, quantity), note, Section.SUBTOTAL))
        single[name] = quantity

    kinds = library.datatypes
    assert kinds[0].id == "bf16", "results and fallbacks are bf16, the first data type"
    kind_ids = text_rows("datatype", "Data type", "", {kind.id: kind.id for kind in kinds}, "id")
    kind_ids = tuple(Input(row.id, row.label, "1", row.value, kind.name, kind.source, "defined", shared=True, fixed=True,
                           name="data types") for row, kind in zip(kind_ids, kinds, strict=True))  # fmt: skip
    bits = tuple(
        Input(f"datatype.{kind.id}.bits", f"Bits per value, {kind.id}", "bit", kind.bits, "scales included", kind.source,
              "defined", shared=True, minimum=0, name="bits per value")
        for kind in kinds
    )  # fmt: skip
    peak_of = text_rows("datatype", "Peak used", "peak its products run at", {k.id: k.peak for k in kinds}, "peak")
    bf16_kernels = text_rows("datatype", "Kernels with 16-bit activations", "which row of the efficiency tables applies",
                             {k.id: k.kernels_bf16 for k in kinds}, "kernels_bf16")  # fmt: skip
    native_kernels = text_rows("datatype", "Kernels with native activations", "which row of the efficiency tables applies",
                               {k.id: k.kernels_native for k in kinds}, "kernels_native")  # fmt: skip
    sections += [
        Section("Data types", kind_ids),
        Section("Bits per value", bits),
        Section("Peak used by a data type", peak_of),
        Section("Kernels with 16-bit activations", bf16_kernels),
        Section("Kernels with native activations", native_kernels),
    ]

    def number_of(name: str, dtype: Input) -> Quantity:
        return Quantity(f"hardware.{name}_number", f"Number of the {dtype.name}", "number", position(dtype, span(kind_ids)),
                        note="place in the block of data types")  # fmt: skip

    activations, kv = number_of("activation", inputs.activation_dtype), number_of("kv", inputs.kv_dtype)
    peak_span = span(peaks)

    def peak_for(name: str, label: str, numbered: Quantity) -> tuple[Quantity, Quantity]:
        key = Quantity(f"hardware.{name}_peak_key", f"Peak used by {label}", "1", element(span(peak_of), numbered),
                       note="bf16, fp8 or fp4")  # fmt: skip
        return key, Quantity(f"hardware.{name}_peak", f"Dense peak for {label}", "FLOP/s",
                             element(peak_span, position(key, span(peak_keys))), note="peak in use for that format")  # fmt: skip

    activation_key, activation_peak = peak_for("activation", "activations", activations)
    sixteen = Quantity("hardware.activations_sixteen_bit", "Activations are 16 bit", "flag",
                       where(equal(activation_key, peak_keys[0]), 1, 0), note="1 if so: products run at the bf16 peak")  # fmt: skip
    activation_size = Quantity("hardware.activation_size", "Bytes per activation as asked", "B", element(span(bits), activations) / BITS_PER_BYTE,
                               note="bits ÷ 8 of the activation data type")  # fmt: skip
    kv_format = Quantity("hardware.kv_format", "KV format", "1", element(span(peak_of), kv),
                         note="which efficiency rows hold for decode attention")  # fmt: skip
    kv_bytes = Quantity("hardware.kv_bytes", "Bytes per KV value", "B/token", element(span(bits), kv) / BITS_PER_BYTE / ONE_TOKEN,
                        note="bits ÷ 8, per channel and token", name="bytes per KV value")  # fmt: skip
    sections.append(Section("Chosen data types", (activations, kv, activation_key, activation_peak, sixteen, activation_size, kv_format, kv_bytes),
                            "activations and KV cache"))  # fmt: skip

    def weight_class(name: str, label: str, asked: Input | None) -> WeightClass:
        def row(what: str, title: str, unit: str, body: Node, note: str) -> Quantity:
            return Quantity(f"hardware.{name}.{what}", f"{title}, {label}", unit, body, note=note, name=title.lower())

        follows: Node = as_node("bf16") if name == "router" else inputs.weights_dtype if asked is None else (
            where(equal(asked, SAME), inputs.weights_dtype, asked) if SAME in asked.choices else asked)  # fmt: skip
        dtype = row("dtype", "Data type", "1", follows, "as the weights unless the class has its own")
        number = row("number", "Number of the data type", "number", position(dtype, span(kind_ids)), "place in the block of data types")
        size = row("bytes", "Bytes per weight", "B", element(span(bits), number) / BITS_PER_BYTE, "bits ÷ 8, scales included")
        key, peak = peak_for(f"{name}.stored", f"weights, {label}", number)
        wide = row("sixteen_bit", "Weights multiply in 16 bit", "flag", where(equal(key, peak_keys[0]), 1, 0),
                   "1 if so: 16-bit weights, or a format that is only stored")  # fmt: skip
        low = row("low_precision", "Products run below 16 bit", "flag",
                  where(minimum(peak, activation_peak) > 0, (1 - sixteen) * (1 - wide), 0),
                  "1 if both are narrower than 16 bit and the accelerator has both peaks")  # fmt: skip
        used = row("linear_peak", "Dense peak of products", "FLOP/s", where(low > 0, minimum(peak, activation_peak), peaks[0]),
                   "slower of weights' and activations' peak; bf16 where a format has none")  # fmt: skip
        kernels = row("kernel_format", "Kernel format", "1",
                      where(low > 0, element(span(native_kernels), number), element(span(bf16_kernels), number)),
                      "which efficiency rows hold")  # fmt: skip
        moved = row("activation_bytes", "Bytes per activation", "B/token",
                    where(low > 0, activation_size, VECTOR_BYTES) / ONE_TOKEN,
                    "input of a product, per channel and token: 2 unless products run below 16 bit")  # fmt: skip
        only = None
        if name not in ("router", "head"):
            only = row("stored_only", "A native format multiplied in 16 bit", "flag", where(peak > 0, (1 - wide) * (1 - low), 0),
                       "1 if the accelerator could multiply in the weights' format, but activations are wider")  # fmt: skip
        rows = (dtype, number, size, key, peak, wide, low, used, kernels, moved, *([only] if only is not None else []))
        sections.append(Section(f"Data type: {label}", rows, "which peak and which kernels the choice leads to"))
        return WeightClass(size, low, used, kernels, moved, only)

    asked = {"attention": inputs.attention_dtype, "ffn": inputs.ffn_dtype, "experts": inputs.experts_dtype, "head": inputs.head_dtype}
    classes: dict[str, WeightClass] = {name: weight_class(name, CLASSES[name], asked.get(name)) for name in ir.weight_classes()}
    return Hardware(
        generation=generation, peak_bf16=peaks[0],
        memory_bandwidth=single["memory_bandwidth"], memory_capacity=single["memory_capacity"],
        link_bandwidth=single["link_bandwidth"], system_accelerators=single["accelerators"], classes=classes,
        kv_bytes=kv_bytes, activations_sixteen_bit=sixteen, kv_format=kv_format, sections=tuple(sections),
        overrides=tuple(overrides),
    )  # fmt: skip
