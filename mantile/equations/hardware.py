"""What the chosen accelerator, system and data types offer: looked up in the library, overridable, in SI units."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constants import BITS_PER_BYTE, GIBI, GIGA, ONE_TOKEN, TERA
from mantile.equations.workload import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Row,
    Section,
    element,
    equal,
    is_number,
    minimum,
    position,
    span,
    where,
)  # fmt: skip
from mantile.graph.sentence import called as called_
from mantile.library.profiles import Figure, Library

PEAKS = ("bf16", "fp8", "fp4")


@dataclass(frozen=True)
class Hardware:
    """Figures of the chosen accelerator, per accelerator unless the label says otherwise.

    Peaks in FLOP/s, bandwidths in B/s, sizes in B. `*_bytes` are per weight, or per channel and token.
    """

    accelerator_number: Quantity
    generation: Quantity
    peak_bf16: Quantity
    linear_peak: Quantity
    memory_bandwidth: Quantity
    memory_capacity: Quantity
    link_bandwidth: Quantity
    system_accelerators: Quantity
    weight_bytes: Quantity
    head_bytes: Quantity
    activation_bytes: Quantity
    kv_bytes: Quantity
    low_precision: Quantity
    activations_sixteen_bit: Quantity
    weights_sixteen_bit: Quantity
    weights_peak: Quantity
    kernel_format: Quantity
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


def hardware(library: Library, inputs: Workload) -> Hardware:
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

    def stored(name: str, label: str, numbered: Quantity, per_token: bool = False) -> Quantity:
        size = element(span(bits), numbered) / BITS_PER_BYTE
        if per_token:
            return Quantity(f"hardware.{name}_bytes", label, "B/token", size / ONE_TOKEN, note="bits ÷ 8, per channel and token",
                            name=label.lower().replace("kv", "KV"))  # fmt: skip
        return Quantity(f"hardware.{name}_bytes", label, "B", size, note="bits ÷ 8, scales included", name=label.lower())

    weights, head = number_of("weights", inputs.weights_dtype), number_of("head", inputs.head_dtype)
    activations, kv = number_of("activation", inputs.activation_dtype), number_of("kv", inputs.kv_dtype)
    peak_span = span(peaks)

    def peak_for(name: str, label: str, numbered: Quantity) -> tuple[Quantity, Quantity]:
        key = Quantity(f"hardware.{name}_peak_key", f"Peak used by {label}", "1", element(span(peak_of), numbered),
                       note="bf16, fp8 or fp4")  # fmt: skip
        return key, Quantity(f"hardware.{name}_peak", f"Dense peak for {label}", "FLOP/s",
                             element(peak_span, position(key, span(peak_keys))), note="peak in use for that format")  # fmt: skip

    weights_key, weights_peak = peak_for("weights", "weights", weights)
    activation_key, activation_peak = peak_for("activation", "activations", activations)
    sixteen = Quantity("hardware.activations_sixteen_bit", "Activations are 16 bit", "flag",
                       where(equal(activation_key, peak_keys[0]), 1, 0), note="1 if so: products run at the bf16 peak")  # fmt: skip
    weights_sixteen = Quantity("hardware.weights_sixteen_bit", "Weights multiply in 16 bit", "flag",
                               where(equal(weights_key, peak_keys[0]), 1, 0),
                               note="1 if so: 16-bit weights, or a format that is only stored")  # fmt: skip
    low = Quantity("hardware.low_precision", "Products run below 16 bit", "flag",
                   where(minimum(weights_peak, activation_peak) > 0, (1 - sixteen) * (1 - weights_sixteen), 0),
                   note="1 if both are narrower than 16 bit and the accelerator has both peaks")  # fmt: skip
    linear_peak = Quantity("hardware.linear_peak", "Dense peak of linear layers", "FLOP/s",
                           where(low > 0, minimum(weights_peak, activation_peak), peaks[0]),
                           note="slower of weights' and activations' peak; bf16 where a format has none",
                           name="peak")  # fmt: skip
    kernel_format = Quantity("hardware.kernel_format", "Kernel format", "1",
                             where(low > 0, element(span(native_kernels), weights), element(span(bf16_kernels), weights)),
                             note="which efficiency rows hold for linear layers")  # fmt: skip
    kv_format = Quantity("hardware.kv_format", "KV format", "1", element(span(peak_of), kv),
                         note="which efficiency rows hold for decode attention")  # fmt: skip
    activation_bytes = Quantity("hardware.activation_bytes", "Bytes per activation", "B/token",
                                where(low > 0, element(span(bits), activations), element(span(bits), 1))
                                / BITS_PER_BYTE / ONE_TOKEN,
                                note="input of a product, per channel and token: 2 unless products run below 16 bit")  # fmt: skip
    chosen_rows = (weights, head, activations, kv, weights_key, weights_peak, activation_key, activation_peak, sixteen, weights_sixteen, low, linear_peak,
            kernel_format, kv_format, stored("weight", "Bytes per weight", weights),
            stored("head", "Bytes per embedding weight", head), activation_bytes,
            stored("kv", "Bytes per KV value", kv, per_token=True))  # fmt: skip
    sections.append(Section("Chosen data types", chosen_rows, "which peak and which kernels the choice leads to"))
    named = {row.id.removeprefix("hardware."): row for row in chosen_rows}
    return Hardware(
        accelerator_number=number, generation=generation, peak_bf16=peaks[0], linear_peak=linear_peak,
        memory_bandwidth=single["memory_bandwidth"], memory_capacity=single["memory_capacity"],
        link_bandwidth=single["link_bandwidth"], system_accelerators=single["accelerators"],
        weight_bytes=named["weight_bytes"], head_bytes=named["head_bytes"], activation_bytes=activation_bytes,
        kv_bytes=named["kv_bytes"], low_precision=low, activations_sixteen_bit=sixteen,
        weights_sixteen_bit=weights_sixteen, weights_peak=weights_peak, kernel_format=kernel_format,
        kv_format=kv_format, sections=tuple(sections), overrides=tuple(overrides),
    )  # fmt: skip

