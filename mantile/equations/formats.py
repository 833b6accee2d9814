"""Data types: bytes per value, the peak their products run at, whose kernels they use, and what stands in where there is no path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import BITS_PER_BYTE, ONE_TOKEN, VECTOR_BYTES
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    as_node,
    equal,
    index,
    join,
    match,
    maximum,
    minimum,
    span,
    where,
)
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import Library
from mantile.library.scenario import SAME

CLASSES = {
    "attention": "attention",
    "ffn": "FFN",
    "experts": "experts",
    "router": "router",
    "head": "embedding and LM head",
}


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
class Formats:
    """Data types of a scenario on its accelerator.

    Args:
        classes: those of the weights, by class.
        kv_bytes: per channel and token of the cache.
        sixteen_peak: FLOP/s of 16-bit products, which stand in where another format has no path.
        native: 1 if products run in the formats asked for.
    """

    classes: Mapping[str, WeightClass]
    kv_bytes: Quantity
    kv_format: Quantity
    sixteen_peak: Quantity
    native: Quantity
    sections: tuple[Section, ...]


def formats(library: Library, inputs: Workload, hardware: Hardware, ir: ModelGraph) -> Formats:
    """The rows of the Hardware sheet about data types."""
    sections: list[Section] = []
    peak_keys, peaks = hardware.peak_keys, hardware.peaks

    def text_rows(label: str, note: str, values: dict[str, str], what: str) -> tuple[Input, ...]:
        return tuple(
            Input(
                f"datatype.{key}.{what}",
                f"{label}, {key}",
                "1",
                value,
                note,
                "library",
                "defined",
                shared=True,
                fixed=True,
                name=label.lower(),
            )
            for key, value in values.items()
        )

    kinds = library.datatypes
    assert kinds[0].id == "bf16", "results and fallbacks are bf16, the first data type"
    kind_ids = tuple(
        Input(
            f"datatype.{kind.id}.id",
            f"Data type, {kind.id}",
            "1",
            kind.id,
            kind.name,
            kind.source,
            "defined",
            shared=True,
            fixed=True,
            name="data types",
        )
        for kind in kinds
    )
    bits = tuple(
        Input(
            f"datatype.{kind.id}.bits",
            f"Bits per value, {kind.id}",
            "bit",
            kind.bits,
            "scales included",
            kind.source,
            "defined",
            shared=True,
            minimum=0,
            name="bits per value",
        )
        for kind in kinds
    )
    peak_of = text_rows("Peak used", "peak its products run at", {k.id: k.peak for k in kinds}, "peak")
    bf16_kernels = text_rows(
        "Kernels with 16-bit activations",
        "which row of the efficiency tables applies",
        {k.id: k.kernels_bf16 for k in kinds},
        "kernels_bf16",
    )
    native_kernels = text_rows(
        "Kernels with native activations",
        "which row of the efficiency tables applies",
        {k.id: k.kernels_native for k in kinds},
        "kernels_native",
    )
    sections += [
        Section("Data types", kind_ids),
        Section("Bits per value", bits),
        Section("Peak used by a data type", peak_of),
        Section("Kernels with 16-bit activations", bf16_kernels),
        Section("Kernels with native activations", native_kernels),
    ]

    def number_of(name: str, dtype: Input) -> Quantity:
        return Quantity(
            f"hardware.{name}_number",
            f"Number of the {dtype.name}",
            "number",
            match(dtype, span(kind_ids)),
            note="place in the block of data types",
        )

    activations, kv = number_of("activation", inputs.activation_dtype), number_of("kv", inputs.kv_dtype)
    peak_span = span(peaks.values())
    sixteen_keys = tuple(key for key in peak_keys if key.value in ("bf16", "fp16"))

    def is_sixteen(key: Quantity) -> Node:
        return maximum(*(where(equal(key, each), 1, 0) for each in sixteen_keys))

    def peak_for(name: str, label: str, numbered: Quantity) -> tuple[Quantity, Quantity]:
        key = Quantity(
            f"hardware.{name}_peak_key",
            f"Peak used by {label}",
            "1",
            index(span(peak_of), numbered),
            note="its name",
        )
        return key, Quantity(
            f"hardware.{name}_peak",
            f"Dense peak for {label}",
            "FLOP/s",
            index(peak_span, match(key, span(peak_keys))),
            note="peak in use for that format",
        )

    activation_key, activation_peak = peak_for("activation", "activations", activations)
    sixteen = Quantity(
        "hardware.activations_sixteen_bit",
        "Activations are 16 bit",
        "flag",
        is_sixteen(activation_key),
        note="1 for bf16 and fp16",
    )
    activation_size = Quantity(
        "hardware.activation_size",
        "Bytes per activation as asked",
        "B",
        index(span(bits), activations) / BITS_PER_BYTE,
        note="bits ÷ 8 of the activation data type",
    )
    fallback = Quantity(
        "hardware.fallback_format",
        "Format that stands in",
        "1",
        where(peaks["bf16"] > 0, "bf16", "fp16"),
        note="for products in a format without a path: bf16, or fp16 where there is no bf16",
    )
    fallback_peak = Quantity(
        "hardware.fallback_peak",
        "Dense peak of what stands in",
        "FLOP/s",
        where(peaks["bf16"] > 0, peaks["bf16"], peaks["fp16"]),
    )
    sixteen_format = Quantity(
        "hardware.sixteen_format",
        "Format of 16-bit products",
        "1",
        where(all_of(sixteen > 0, activation_peak > 0), inputs.activation_dtype, fallback),
    )
    sixteen_peak = Quantity(
        "hardware.sixteen_peak",
        "Dense peak of 16-bit products",
        "FLOP/s",
        where(all_of(sixteen > 0, activation_peak > 0), activation_peak, fallback_peak),
        name="16-bit peak",
        note="of the activations' format where it has 16 bit and a path, else of what stands in",
    )
    kv_key = Quantity(
        "hardware.kv_key", "Peak name of the KV data type", "1", index(span(peak_of), kv), note="its name"
    )
    kv_sixteen = Quantity(
        "hardware.kv_sixteen_bit",
        "KV cache is 16 bit",
        "flag",
        is_sixteen(kv_key),
        note="1 for bf16 and fp16",
    )
    kv_format = Quantity(
        "hardware.kv_format",
        "KV format",
        "1",
        where(kv_sixteen > 0, "bf16", kv_key),
        note="which efficiency rows hold for decode attention; bf16 for all of 16 bit",
    )
    kv_bytes = Quantity(
        "hardware.kv_bytes",
        "Bytes per KV value",
        "B/token",
        index(span(bits), kv) / BITS_PER_BYTE / ONE_TOKEN,
        note="bits ÷ 8, per channel and token",
        name="bytes per KV value",
    )
    sections.append(
        Section(
            "Chosen data types",
            (
                activations,
                kv,
                activation_key,
                activation_peak,
                sixteen,
                fallback,
                fallback_peak,
                sixteen_format,
                sixteen_peak,
                activation_size,
                kv_key,
                kv_sixteen,
                kv_format,
                kv_bytes,
            ),
            "activations and KV cache",
        )
    )

    def weight_class(name: str, label: str, asked: Input | None) -> WeightClass:
        def row(what: str, title: str, unit: str, body: Node, note: str) -> Quantity:
            return Quantity(
                f"hardware.{name}.{what}", f"{title}, {label}", unit, body, note=note, name=title.lower()
            )

        follows: Node = (
            as_node("bf16")
            if name == "router"
            else inputs.weights_dtype
            if asked is None
            else (where(equal(asked, SAME), inputs.weights_dtype, asked) if SAME in asked.choices else asked)
        )
        dtype = row("dtype", "Data type", "1", follows, "as the weights unless the class has its own")
        number = row(
            "number",
            "Number of the data type",
            "number",
            match(dtype, span(kind_ids)),
            "place in the block of data types",
        )
        size = row(
            "bytes",
            "Bytes per weight",
            "B",
            index(span(bits), number) / BITS_PER_BYTE,
            "bits ÷ 8, scales included",
        )
        key, peak = peak_for(f"{name}.stored", f"weights, {label}", number)
        wide = row(
            "sixteen_bit",
            "Weights multiply in 16 bit",
            "flag",
            is_sixteen(key),
            "1 if so: 16-bit weights, or a format that is only stored",
        )
        low = row(
            "low_precision",
            "Products run below 16 bit",
            "flag",
            where(minimum(peak, activation_peak) > 0, (1 - sixteen) * (1 - wide), 0),
            "1 if both are narrower than 16 bit and the accelerator has both peaks",
        )
        used = row(
            "linear_peak",
            "Dense peak of products",
            "FLOP/s",
            where(low > 0, minimum(peak, activation_peak), sixteen_peak),
            "slower of weights' and activations' peak; that of 16-bit products where a format has no path",
        )
        kernels = row(
            "kernel_format",
            "Kernel format",
            "1",
            where(low > 0, index(span(native_kernels), number), index(span(bf16_kernels), number)),
            "which efficiency rows hold",
        )
        moved = row(
            "activation_bytes",
            "Bytes per activation",
            "B/token",
            where(low > 0, activation_size, VECTOR_BYTES) / ONE_TOKEN,
            "input of a product, per channel and token: 2 unless products run below 16 bit",
        )
        path = row(
            "path",
            "How products run",
            "1",
            where(low > 0, join("in ", dtype), join(dtype, " held, multiplied in ", sixteen_format)),
            "in the format of the weights, or in 16 bit",
        )
        only = None
        if name not in ("router", "head"):
            only = row(
                "stored_only",
                "A native format multiplied in 16 bit",
                "flag",
                where(peak > 0, (1 - wide) * (1 - low), 0),
                "1 if the accelerator could multiply in the weights' format, but activations are wider",
            )
        rows = (
            dtype,
            number,
            size,
            key,
            peak,
            wide,
            low,
            used,
            path,
            kernels,
            moved,
            *([only] if only is not None else []),
        )
        sections.append(
            Section(f"Data type: {label}", rows, "which peak and which kernels the choice leads to")
        )
        return WeightClass(size, low, used, kernels, moved, only)

    asked = {
        "attention": inputs.attention_dtype,
        "ffn": inputs.ffn_dtype,
        "experts": inputs.experts_dtype,
        "head": inputs.head_dtype,
    }
    classes: dict[str, WeightClass] = {
        name: weight_class(name, CLASSES[name], asked.get(name)) for name in ir.weight_classes()
    }
    narrow = [kind.low_precision for name, kind in classes.items() if name not in ("router", "head")]
    native = Quantity(
        "hardware.native",
        "Products run in the format of the activations",
        "flag",
        maximum(minimum(sixteen, where(activation_peak > 0, 1, 0)), *narrow),
        note="1 if the accelerator has a path for 16-bit activations asked for, or some matrices are multiplied below 16 bit",
    )
    sections.append(Section("Paths", (native,), "0 where another format stands in"))
    return Formats(classes, kv_bytes, kv_format, sixteen_peak, native, tuple(sections))
