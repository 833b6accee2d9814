"""Which classes of matrices there are, and in which data types: rows stand in formats.eq."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mantile.equations.constant import INDEX_BYTES
from mantile.equations.datatype import DataTypes, datatypes
from mantile.equations.inputs import Workload
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Input, Node, Quantity, Section, defined
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
_CHECKPOINT = {
    "weights_dtype": "Weights",
    "activation_dtype": "Activations",
    "attention_dtype": "Attention weights",
    "ffn_dtype": "FFN weights",
    "experts_dtype": "Expert weights",
    "head_dtype": "LM head",
    "embedding_dtype": "Embedding",
}
_KEPT = "matrices that the checkpoint keeps in another data type than the most of their class"


def class_label(name: str) -> str:
    """What a class of matrices is called, or the part of it that is kept in a data type of its own."""
    of_class, _, kept = name.partition(".")
    return f"{CLASSES[of_class]} kept in {kept}" if kept else CLASSES[of_class]


@dataclass(frozen=True)
class StoredClass:
    """How a class of matrices is stored: its data type, and bytes per weight."""

    dtype: Quantity
    bytes: Quantity


@dataclass(frozen=True)
class WeightClass(StoredClass):
    """A class of matrices that products read.

    Args:
        linear_peak: FLOP/s that its products run at.
        activation_bytes: of a product's input, per channel and token.
    """

    linear_peak: Quantity
    activation_bytes: Quantity


@dataclass(frozen=True)
class Formats:
    """Data types of a scenario on its accelerator.

    Args:
        classes: those of the weights that are multiplied by themselves, by class.
        stored: how all weights are stored: those, the embedding, and experts that are kept apart.
        kv_bytes: per channel and token of the cache.
        defaults: the data types of activations, LM head and embedding until somebody states them, by input.
        types: those of the library.
    """

    classes: Mapping[str, WeightClass]
    stored: Mapping[str, StoredClass]
    kv_bytes: Quantity
    defaults: Mapping[str, Quantity]
    types: DataTypes
    sections: tuple[Section, ...]

    def kept_bytes(self, work: Operation) -> Node:
        """Bytes of a cached value; the keys of an indexer have a format of their own."""
        return INDEX_BYTES if isinstance(work, Indexer) else self.kv_bytes


def formats(library: Library, inputs: Workload, ir: ModelGraph, rows: Equations) -> Formats:
    """The rows of the Hardware sheet about data types.

    Args:
        rows: know the hardware in use, and what the library states of frameworks.
    """
    types = datatypes(library, tied="embedding" not in ir.weight_classes())
    rows.know_table("datatype", types.columns)
    defaults = [name for name in ("activation", "head", "embedding") if f"{name}_dtype" in inputs.named()]
    followed = [name for name in defaults if f"{name}_dtype" in ir.model.architecture.choices]
    checkpoint = tuple(_checkpoint(ir, followed))
    rows.know_table("formats", {"checkpoint": checkpoint})
    features = {*defaults, *(f"{name}_of_checkpoint" for name in followed)}
    features |= {"of_checkpoint"} if checkpoint else set()
    classes = {space.facts["c"]: space for space in _classes(ir, inputs)}
    rows.make_in("formats", Space(home="hardware", features=frozenset(features)))
    rows.make_in("class of matrices", *classes.values())
    rows.make_in("class in layers", *(space for space in classes.values() if "in_layers" in space.features))
    multiplied = [name for name, space in classes.items() if "multiplied" in space.features]

    def of(name: str, *parts: str) -> Iterator[Quantity]:
        return (rows[f"hardware.{name}.{part}"] for part in parts)

    products = ("dtype", "bytes", "linear_peak", "activation_bytes")
    return Formats(
        classes={name: WeightClass(*of(name, *products)) for name in multiplied},
        stored={name: StoredClass(*of(name, "dtype", "bytes")) for name in classes},
        kv_bytes=rows["hardware.kv_bytes"],
        defaults={f"{name}_dtype": rows[f"hardware.{name}_default"] for name in defaults},
        types=types,
        sections=(types.section, *rows.sections("formats")),
    )


def _checkpoint(ir: ModelGraph, followed: Iterable[str]) -> Iterator[Input]:
    """What a checkpoint is stored in, as its config states it: texts.

    Args:
        followed: of what defaults follow it.
    """
    choices = ir.model.architecture.choices
    fields: list[str] = []
    for of_class, kept in ir.kept_apart():
        fields += [_of_class(ir, of_class), f"kept.{of_class}.{kept}"]
    for default in followed:
        fields += ["weights_dtype", f"{default}_dtype"]
    for field in dict.fromkeys(fields):
        if field in choices:
            choice, label = choices[field], f"{_CHECKPOINT[field]} of the checkpoint"
            value, note, source = choice.value, "what its config states", choice.source
            yield defined(f"model.{field}", label, "1", value, note, source, status=choice.origin)
        else:
            _, name, dtype = field.split(".", 2)
            label = f"Of {CLASSES[name]}, kept in {dtype}"
            source = choices["weights_dtype"].source
            yield defined(f"model.{field}", label, "1", dtype, _KEPT, source, status="config")


def _of_class(ir: ModelGraph, name: str) -> str:
    """The field of the checkpoint that states the data type of a class of matrices."""
    return f"{name}_dtype" if f"{name}_dtype" in ir.model.architecture.choices else "weights_dtype"


def _classes(ir: ModelGraph, inputs: Workload) -> Iterator[Space]:
    """The classes of matrices, and what of them is kept in a data type of its own.

    What is kept has it as long as its class has the data type that the checkpoint gives that.
    """
    for name in ir.weight_classes():
        yield _class(name, name, _dtype(name, inputs.named().get(f"{name}_dtype")))
    for name, kept in ir.kept_apart():
        of, own = f"{name}.dtype", f"`model.kept.{name}.{kept}`"
        yield _class(f"{name}.{kept}", name, f"where({of} == model.{_of_class(ir, name)}, {own}, {of})")


def _dtype(name: str, own: Input | None) -> str:
    """The data type of a class of matrices: its own, or that of the weights."""
    if name == "router":
        return "'bf16'"
    if own is None:
        return "inputs.weights_dtype"
    return f"where({own.id} == '{SAME}', inputs.weights_dtype, {own.id})" if SAME in own.choices else own.id


def _class(name: str, of_class: str, dtype: str) -> Space:
    """A class of matrices; no product of their own reads the embedding, and experts that are kept apart."""
    whole = name == of_class
    stored = name == "embedding" or (of_class == "experts" and not whole)
    has = {
        "multiplied": not stored,
        "whole": whole,
        "of_experts": name == "experts",
        "in_layers": not stored and name not in ("router", "head"),
    }
    note = "what it takes to store" if stored else "which peak and which kernels the choice leads to"
    facts = {"c": name, "words": class_label(name), "dtype": dtype, "note": note}
    return Space(home="hardware", facts=facts, features=frozenset(each for each in has if has[each]))
