"""Rows "hardware" about data types: bytes per value, the peak that products run at, whose kernels they use.

Where an accelerator has no path for a format, 16-bit products stand in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import BITS_PER_BYTE, INDEX_BYTES, ONE_TOKEN, VECTOR_BYTES
from mantile.equations.datatype import DataTypes, datatypes
from mantile.equations.framework import QUANTISED
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    as_node,
    defined,
    equal,
    index,
    join,
    match,
    maximum,
    minimum,
    span,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import Indexer, ModelGraph, Operation
from mantile.library.profiles import Library
from mantile.library.scenario_fields import SAME

CLASSES = {
    "attention": "attention",
    "ffn": "FFN",
    "experts": "experts",
    "router": "router",
    "head": "LM head",
    "embedding": "embedding",
}


def class_label(name: str) -> str:
    """What a class of matrices is called, or the part of it that is kept in a data type of its own."""
    of_class, _, kept = name.partition(".")
    return f"{CLASSES[of_class]} kept in {kept}" if kept else CLASSES[of_class]


@dataclass(frozen=True)
class PeakInUse:
    """Which of the accelerator's peaks products run at.

    Args:
        key, value: that of the weights' format, and its FLOP/s.
        other_key, other_value: those of the activations' format: below 16 bit the smaller peak counts.
        wide: the name of the peak of products with 16-bit activations.
    """

    key: Quantity
    value: Quantity
    other_key: Quantity
    other_value: Quantity
    wide: Quantity


@dataclass(frozen=True)
class StoredClass:
    """How a class of matrices is stored.

    Args:
        dtype: the data type itself.
        number: its place among all.
        bytes: per weight, scales included.
    """

    dtype: Quantity
    number: Quantity
    bytes: Quantity


@dataclass(frozen=True)
class WeightClass(StoredClass):
    """What the data type of a class of matrices leads to.

    Args:
        low_precision: 1 if products run below 16 bit.
        linear_peak: FLOP/s that its products run at.
        kernel_format: whose efficiency figures hold.
        activation_bytes: of a product's input, per channel and token.
        widened: 1 if kernels widen the weights before they multiply; None of all but experts.
        stored_only: 1 if the accelerator could multiply in the format, but activations are wider; None where
            nobody asks.
    """

    low_precision: Quantity
    linear_peak: Quantity
    kernel_format: Quantity
    activation_bytes: Quantity
    widened: Quantity | None
    stored_only: Quantity | None
    peak: PeakInUse


@dataclass(frozen=True)
class Formats:
    """Data types of a scenario on its accelerator.

    Args:
        classes: those of the weights that are multiplied by themselves, by class.
        stored: how all weights are stored: those, the embedding, and experts that are kept apart.
        kv_bytes: per channel and token of the cache.
        kv_number: the place of its data type among all.
        families: of all data types: those that frameworks read with the same programs.
        sixteen_peak: FLOP/s of 16-bit products, which stand in where another format has no path.
        sixteen_format: the name of that peak.
        native: 1 if products run in the formats asked for.
        best: FLOP/s of the fastest products of the layers, where it is a row.
        defaults: the data types of activations, LM head and embedding until somebody states them, by input.
        types: those of the library.
    """

    classes: Mapping[str, WeightClass]
    stored: Mapping[str, StoredClass]
    kv_bytes: Quantity
    kv_format: Quantity
    kv_number: Quantity
    families: tuple[Input, ...]
    sixteen_peak: Quantity
    sixteen_format: Quantity
    native: Quantity
    best: Quantity | None
    defaults: Mapping[str, Quantity]
    types: DataTypes
    sections: tuple[Section, ...]

    @property
    def best_peak(self) -> Node:
        """FLOP/s of the fastest products of the layers and of attention, of these workers."""
        return maximum(*_peaks(self.classes), self.sixteen_peak) if self.best is None else self.best

    def kept_bytes(self, work: Operation) -> Node:
        """Bytes of a cached value; the keys of an indexer have a format of their own."""
        return INDEX_BYTES if isinstance(work, Indexer) else self.kv_bytes


def formats(library: Library, inputs: Workload, hardware: Hardware, ir: ModelGraph) -> Formats:
    """The rows of the Hardware sheet about data types."""
    types = datatypes(library, tied="embedding" not in ir.weight_classes())
    rows = Rows("hardware")
    activations = _number(rows, "activation", inputs.activation_dtype, types)
    kv = _number(rows, "kv", inputs.kv_dtype, types)
    chosen = _activations(rows, activations, inputs, hardware, types)
    kv_format, kv_bytes = _kv(rows, kv, types)
    checkpoint = _Checkpoint(ir)
    classes, stored, sections = _classes(ir, inputs, checkpoint, chosen, hardware, types)
    native = _native(chosen, classes)
    best = _best_peak(classes, chosen.sixteen_peak)
    defaults = _activation_default(checkpoint, inputs, hardware, types)
    ends = _end_defaults(ir, checkpoint, inputs, types)
    return Formats(
        classes=classes,
        stored=stored,
        kv_bytes=kv_bytes,
        kv_format=kv_format,
        kv_number=kv,
        families=types.families,
        sixteen_peak=chosen.sixteen_peak,
        sixteen_format=chosen.sixteen_format,
        native=native,
        best=best,
        defaults={"activation_dtype": defaults.last} | ends,
        types=types,
        sections=(
            *types.sections(),
            rows.section("Chosen data types", "activations and KV cache"),
            *checkpoint.sections(),
            *sections,
            Section(
                "Paths", (native, *(() if best is None else (best,))), "0 where another format stands in"
            ),
            defaults.section("Activations by default", "until somebody types over them"),
            Section("Ends by default", tuple(ends.values()), "until somebody types over them"),
        ),
    )


class _Checkpoint:
    """What a checkpoint is stored in, as its config states it: texts, each made when it is asked for."""

    def __init__(self, ir: ModelGraph) -> None:
        self._choices = ir.model.architecture.choices
        self._rows: dict[str, Input] = {}

    def __contains__(self, field: str) -> bool:
        return field in self._choices

    def __getitem__(self, field: str) -> Input:
        if field not in self._rows:
            choice = self._choices[field]
            label = f"{_CHECKPOINT[field]} of the checkpoint"
            row = f"model.{field}"
            self._rows[field] = defined(
                row, label, "1", choice.value, "what its config states", choice.source, status=choice.origin
            )
        return self._rows[field]

    def of_class(self, name: str) -> Input:
        """The data type of a class of matrices."""
        return self[f"{name}_dtype" if f"{name}_dtype" in self else "weights_dtype"]

    def kept(self, name: str, dtype: str) -> Input:
        """The data type of matrices that are kept in one of their own."""
        field = f"kept.{name}.{dtype}"
        if field not in self._rows:
            self._rows[field] = defined(
                f"model.{field}",
                f"Of {CLASSES[name]}, kept in {dtype}",
                "1",
                dtype,
                "matrices that the checkpoint keeps in another data type than the most of their class",
                self._choices["weights_dtype"].source,
                status="config",
            )
        return self._rows[field]

    def sections(self) -> tuple[Section, ...]:
        """What was asked for."""
        rows = tuple(self._rows.values())
        return (Section("Data types of the checkpoint", rows, "as its config states them"),) if rows else ()


_CHECKPOINT = {
    "weights_dtype": "Weights",
    "activation_dtype": "Activations",
    "attention_dtype": "Attention weights",
    "ffn_dtype": "FFN weights",
    "experts_dtype": "Expert weights",
    "head_dtype": "LM head",
    "embedding_dtype": "Embedding",
}


def _classes(
    ir: ModelGraph,
    inputs: Workload,
    checkpoint: _Checkpoint,
    chosen: _Activations,
    hardware: Hardware,
    types: DataTypes,
) -> tuple[dict[str, WeightClass], dict[str, StoredClass], list[Section]]:
    """The classes of matrices: those that are multiplied by themselves, and how all are stored."""
    own_types = {
        "attention": inputs.attention_dtype,
        "ffn": inputs.ffn_dtype,
        "experts": inputs.experts_dtype,
        "head": inputs.head_dtype,
        "embedding": inputs.embedding_dtype,
    }
    stored: dict[str, StoredClass] = {}
    sections: list[Section] = []
    apart = [f"{name}.{dtype}" for name, dtype in ir.kept_apart()]
    for name in (*ir.weight_classes(), *apart):
        of_class, _, kept = name.partition(".")
        if kept:
            dtype = _kept(stored[of_class], checkpoint.of_class(of_class), checkpoint.kept(of_class, kept))
        else:
            dtype = _dtype(name, own_types.get(name), inputs)
        if name == "embedding" or (kept and of_class == "experts"):
            stored[name], section = _stored_class(name, dtype, types)
        else:
            stored[name], section = _weight_class(name, dtype, chosen, hardware, types)
        sections.append(section)
    classes = {name: kind for name, kind in stored.items() if isinstance(kind, WeightClass)}
    return classes, stored, sections


def _kept(of_class: StoredClass, in_checkpoint: Node, kept: Node) -> Node:
    """What matrices are kept in as long as their class has the data type that the checkpoint gives it."""
    return where(equal(of_class.dtype, in_checkpoint), kept, of_class.dtype)


def _end_defaults(
    ir: ModelGraph, checkpoint: _Checkpoint, inputs: Workload, types: DataTypes
) -> dict[str, Quantity]:
    """The data types of LM head and embedding, by input: the checkpoint's beside its own weights.

    Beside other weights they are as files in that data type have them.
    """
    ends = {"head": types.heads} | ({"embedding": types.embeddings} if types.embeddings else {})
    defaults: dict[str, Quantity] = {}
    for name, of_files in ends.items():
        field = f"{name}_dtype"
        body: Node = index(span(of_files), match(inputs.weights_dtype, span(types.ids)))
        if field in checkpoint:
            body = where(equal(inputs.weights_dtype, checkpoint["weights_dtype"]), checkpoint[field], body)
        label = f"{CLASSES[name][0].upper()}{CLASSES[name][1:]} by default"
        defaults[field] = Quantity(f"hardware.{name}_default", label, "1", body)
    return defaults


def _activation_default(
    checkpoint: _Checkpoint, inputs: Workload, hardware: Hardware, types: DataTypes
) -> Rows:
    """The data type that activations have by default, in the last row.

    They follow the weights, or what the checkpoint states beside its own weights, where the accelerator has a
    peak for that format; else they are bf16.
    """
    weights: Node = inputs.weights_dtype
    rows = Rows("hardware")
    if "activation_dtype" in checkpoint:
        same = equal(weights, checkpoint["weights_dtype"])
        weights = where(same, checkpoint["activation_dtype"], weights)
    basis = rows("activation_basis", "Format that activations follow", "1", weights)
    number = rows(
        "activation_basis_number", "Place of the format followed", "number", match(basis, span(types.ids))
    )
    key, peak = _peak(rows, "activation_basis", "activations by default", number, hardware, types, inputs)
    native = rows(
        "activation_native",
        "Activations where there is a path",
        "1",
        where(peak > 0, index(span(types.activations), number), "bf16"),
    )
    rows("activation_default", "Activations by default", "1", where(equal(key, "bf16"), "bf16", native))
    return rows


@dataclass(frozen=True)
class _Activations:
    """The data type of activations, and 16-bit products.

    Args:
        key: name of the peak of their format.
        peak: FLOP/s in the format of the activations; 0 where there is no path.
        sixteen_bit: 1 if that format has 16 bit.
        size: bytes of a value.
        sixteen_format, sixteen_peak: the format of 16-bit products, and their FLOP/s.
        quantised_format, quantised_peak: the same of products of weights that are only stored in fewer bits.
    """

    key: Quantity
    peak: Quantity
    sixteen_bit: Quantity
    size: Quantity
    sixteen_format: Quantity
    sixteen_peak: Quantity
    quantised_format: Quantity
    quantised_peak: Quantity


def _activations(
    rows: Rows, number: Quantity, inputs: Workload, hardware: Hardware, types: DataTypes
) -> _Activations:
    key, peak = _peak(rows, "activation", "activations", number, hardware, types, inputs)
    sixteen_bit = rows(
        "activations_sixteen_bit", "Activations are 16 bit", "flag", _is_sixteen_bit(key, hardware)
    )
    has_bf16 = hardware.peaks["bf16"] > 0
    fallback = rows(
        "fallback_format",
        "Format that stands in",
        "1",
        where(has_bf16, "bf16", "fp16"),
        "for products in a format without a path",
    )
    fallback_peak = rows(
        "fallback_peak",
        "Dense peak of what stands in",
        "FLOP/s",
        where(has_bf16, hardware.peaks["bf16"], hardware.peaks["fp16"]),
    )
    has_path = all_of(sixteen_bit > 0, peak > 0)
    sixteen_format = rows(
        "sixteen_format",
        "Format of 16-bit products",
        "1",
        where(has_path, inputs.activation_dtype, fallback),
    )
    sixteen_peak = rows(
        "sixteen_peak",
        "Dense peak of 16-bit products",
        "FLOP/s",
        where(has_path, peak, fallback_peak),
        called="16-bit peak",
    )
    quantised_format, quantised_peak = _quantised(rows, inputs, hardware, sixteen_format, sixteen_peak)
    return _Activations(
        key=key,
        peak=peak,
        sixteen_bit=sixteen_bit,
        sixteen_format=sixteen_format,
        sixteen_peak=sixteen_peak,
        quantised_format=quantised_format,
        quantised_peak=quantised_peak,
        size=rows(
            "activation_size",
            "Bytes per activation as asked",
            "B",
            index(span(types.bits), number) / BITS_PER_BYTE,
        ),
    )


def _quantised(
    rows: Rows, inputs: Workload, hardware: Hardware, sixteen_format: Quantity, sixteen_peak: Quantity
) -> tuple[Quantity, Quantity]:
    """The format in which weights are multiplied that are only stored in fewer than 16 bits, and its peak."""
    eight_bit = rows(
        "quantised_in_int8",
        "Quantised weights are multiplied in int8",
        "flag",
        hardware.pairs.holds(inputs.framework, QUANTISED, "int8"),
        "what the framework does where that is faster",
    )
    peak = hardware.peaks["int8"]
    faster = rows(
        "int8_is_faster",
        "and the accelerator is faster in it",
        "flag",
        where(peak > sixteen_peak, eight_bit, 0),
    )
    return (
        rows(
            "quantised_format",
            "Format of products of quantised weights",
            "1",
            where(faster > 0, "int8", sixteen_format),
        ),
        rows(
            "quantised_peak",
            "Dense peak of products of quantised weights",
            "FLOP/s",
            where(faster > 0, peak, sixteen_peak),
        ),
    )


def _kv(rows: Rows, number: Quantity, types: DataTypes) -> tuple[Quantity, Quantity]:
    """The KV format, by which efficiency figures are found, and bytes of a value."""
    key = rows("kv_key", "Peak name of the KV data type", "1", index(span(types.peak), number))
    return (
        rows(
            "kv_format",
            "KV format",
            "1",
            where(equal(key, "fp8"), "fp8", "bf16"),
            "attention was timed over caches in 16 bit and fp8; figures of 16 bit stand in for other types",
        ),
        rows(
            "kv_bytes",
            "Bytes per KV value",
            "B/token",
            index(span(types.bits), number) / BITS_PER_BYTE / ONE_TOKEN,
            "per channel and token",
        ),
    )


def _dtype(name: str, own: Input | None, inputs: Workload) -> Node:
    """The data type of a class of matrices: its own, or that of the weights."""
    if name == "router":
        return as_node("bf16")
    if own is None:
        return as_node(inputs.weights_dtype)
    return where(equal(own, SAME), inputs.weights_dtype, own) if SAME in own.choices else own


def _rows(name: str) -> Rows:
    return Rows(f"hardware.{name}", f", {class_label(name)}")


def _stored_rows(rows: Rows, dtype: Node, types: DataTypes) -> StoredClass:
    """How a class is stored."""
    own_type = rows("dtype", "Data type", "1", dtype)
    number = rows("number", "Place of the data type", "number", match(own_type, span(types.ids)))
    size = rows("bytes", "Bytes per weight", "B", index(span(types.bits), number) / BITS_PER_BYTE)
    return StoredClass(own_type, number, size)


def _stored_class(name: str, dtype: Node, types: DataTypes) -> tuple[StoredClass, Section]:
    """A class that is only stored: no product of its own reads it."""
    rows = _rows(name)
    of_class = _stored_rows(rows, dtype, types)
    return of_class, rows.section(f"Data type: {class_label(name)}", "what it takes to store")


def _weight_class(
    name: str, dtype: Node, chosen: _Activations, hardware: Hardware, types: DataTypes
) -> tuple[WeightClass, Section]:
    """What the data types of a class of matrices and of the activations lead to: bytes, peak, kernels."""
    label, rows = class_label(name), _rows(name)
    of_class = _stored_rows(rows, dtype, types)
    own_type, number, size = of_class.dtype, of_class.number, of_class.bytes
    key, peak = _peak(rows, "stored", "weights", number, hardware, types)
    wide_kernels = rows(
        "wide_kernels",
        "Kernels with 16-bit activations",
        "1",
        index(span(types.kernels_bf16), number),
    )
    products = _products(rows, key, peak, wide_kernels, chosen, hardware)
    low = products.low_precision > 0
    in_wide_format = join(own_type, " held, multiplied in ", products.wide_format)
    if "." not in name:
        rows("path", "How products run", "1", where(low, join("in ", own_type), in_wide_format))
    kernel_format = rows(
        "kernel_format",
        "Kernel format",
        "1",
        where(low, index(span(types.kernels_native), number), wide_kernels),
        "efficiency figures are found by it",
    )
    activation_bytes = rows(
        "activation_bytes",
        "Bytes per activation",
        "B/token",
        where(low, chosen.size, VECTOR_BYTES) / ONE_TOKEN,
        "the input of a product, per channel and token",
    )
    weight_class = WeightClass(
        dtype=own_type,
        number=number,
        bytes=size,
        low_precision=products.low_precision,
        linear_peak=products.linear_peak,
        kernel_format=kernel_format,
        activation_bytes=activation_bytes,
        widened=None if name != "experts" else _widened(rows, size, products),
        stored_only=None if name in ("router", "head") else _stored_only(rows, peak, products),
        peak=PeakInUse(key, peak, chosen.key, chosen.peak, products.wide_format),
    )
    note = "which peak and which kernels the choice leads to"
    return weight_class, rows.section(f"Data type: {label}", note)


@dataclass(frozen=True)
class _Products:
    """Products of a class of matrices.

    Args:
        sixteen_bit: 1 if the weights allow for no less than 16 bit.
        low_precision: 1 if products run below 16 bit.
        linear_peak: FLOP/s that they run at.
        wide_format: in which they run otherwise.
    """

    sixteen_bit: Quantity
    low_precision: Quantity
    linear_peak: Quantity
    wide_format: Quantity


def _products(
    rows: Rows,
    key: Quantity,
    peak: Quantity,
    wide_kernels: Quantity,
    chosen: _Activations,
    hardware: Hardware,
) -> _Products:
    sixteen_bit = rows(
        "sixteen_bit",
        "Weights multiply in 16 bit",
        "flag",
        _is_sixteen_bit(key, hardware),
        "so do weights in a format that is only stored",
    )
    low_precision = rows(
        "low_precision",
        "Products run below 16 bit",
        "flag",
        where(minimum(peak, chosen.peak) > 0, (1 - chosen.sixteen_bit) * (1 - sixteen_bit), 0),
        "weights and activations both have to be narrower, and the accelerator to have both peaks",
    )
    plain = equal(wide_kernels, "bf16")
    wide_format = rows(
        "wide_format",
        "Format of products with 16-bit activations",
        "1",
        where(plain, chosen.sixteen_format, chosen.quantised_format),
    )
    wide_peak = rows(
        "wide_peak",
        "Dense peak with 16-bit activations",
        "FLOP/s",
        where(plain, chosen.sixteen_peak, chosen.quantised_peak),
        called="peak with 16-bit activations",
    )
    linear_peak = rows(
        "linear_peak",
        "Dense peak of products",
        "FLOP/s",
        where(low_precision > 0, minimum(peak, chosen.peak), wide_peak),
    )
    return _Products(
        sixteen_bit=sixteen_bit,
        low_precision=low_precision,
        linear_peak=linear_peak,
        wide_format=wide_format,
    )


def _widened(rows: Rows, size: Quantity, products: _Products) -> Quantity:
    return rows(
        "widened",
        "Weights are widened before they multiply",
        "flag",
        (1 - products.low_precision) * where(size < VECTOR_BYTES, 1, 0),
        "narrow weights in 16-bit products",
    )


def _stored_only(rows: Rows, peak: Quantity, products: _Products) -> Quantity:
    return rows(
        "stored_only",
        "A native format multiplied in 16 bit",
        "flag",
        where(peak > 0, (1 - products.sixteen_bit) * (1 - products.low_precision), 0),
        "the accelerator could multiply in the weights' format, but activations are wider",
    )


def _peaks(classes: Mapping[str, WeightClass]) -> list[Quantity]:
    """FLOP/s of the products of the layers, by class."""
    return [kind.linear_peak for name, kind in classes.items() if name not in ("router", "head")]


def _best_peak(classes: Mapping[str, WeightClass], sixteen: Quantity) -> Quantity:
    """The row of the fastest products, where some matrices are kept in a data type of their own.

    Attention runs in 16 bit, which on some accelerators is faster than int8.
    """
    label = "Largest peak of products of the layers"
    return Quantity("hardware.best_peak", label, "FLOP/s", maximum(*_peaks(classes), sixteen))


def _native(chosen: _Activations, classes: Mapping[str, WeightClass]) -> Quantity:
    narrow = [kind.low_precision for name, kind in classes.items() if name not in ("router", "head")]
    return Quantity(
        "hardware.native",
        "Products run in the format of the activations",
        "flag",
        maximum(minimum(chosen.sixteen_bit, where(chosen.peak > 0, 1, 0)), *narrow),
        note="the accelerator has their 16-bit format, or some matrices are multiplied below 16 bit",
    )


def _number(rows: Rows, name: str, dtype: Input, types: DataTypes) -> Quantity:
    return rows(f"{name}_number", f"Place of the {dtype.name}", "number", match(dtype, span(types.ids)))


def _peak(
    rows: Rows,
    name: str,
    label: str,
    number: Quantity,
    hardware: Hardware,
    types: DataTypes,
    inputs: Workload | None = None,
) -> tuple[Quantity, Quantity]:
    """The name of the peak that a data type uses, and its FLOP/s.

    Args:
        inputs: name the framework, whose peak is 0 where it does not multiply in the data type.
    """
    key = rows(f"{name}_peak_key", f"Peak used by {label}", "1", index(span(types.peak), number))
    of_chip: Node = index(span(hardware.peaks.values()), match(key, span(hardware.peak_keys)))
    if inputs is not None:
        runs = rows(
            f"{name}_runs",
            f"The framework multiplies in the format of {label}",
            "flag",
            maximum(_is_sixteen_bit(key, hardware), hardware.pairs.holds(inputs.framework, key)),
            "all frameworks do in 16 bit",
        )
        of_chip = of_chip * runs
    return key, rows(f"{name}_peak", f"Dense peak for {label}", "FLOP/s", of_chip)


def _is_sixteen_bit(key: Quantity, hardware: Hardware) -> Node:
    """1 if a data type uses a 16-bit peak."""
    wide = (name for name in hardware.peak_keys if name.value in ("bf16", "fp16"))
    return maximum(*(where(equal(key, name), 1, 0) for name in wide))
