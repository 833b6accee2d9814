"""Matrices of a block that a checkpoint keeps in a data type of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mantile.ir.modules import GroupedMatMul, MatMul, Module, Tensor
from mantile.library.architecture import Block
from mantile.library.huggingface.tensor_names import TensorNames

# Matrices that some families store as one: they are kept as the first of their parts.
_FUSED = {
    "q": "qkv",
    "up": "gate_up",
    "expert_up": "experts_gate_up",
    "expert_down": "experts_down",
    "delta_qkv": "delta_qkvz",
    "delta_b": "delta_ba",
}


def kept_apart(modules: Sequence[Module], block: Block, names: TensorNames) -> list[Module]:
    """The modules of a block, with the data types that it states for some of their matrices.

    Example:
        kept_apart(modules, Block(kind="attention", stored={"o": "nvfp4"}), TensorNames())
    """
    if not block.stored:
        return list(modules)
    kept = block.stored if block.kind == "recorded" else _by_name(block.stored, names)
    return [_kept(module, kept) for module in modules]


def _by_name(stored: Mapping[str, str], names: TensorNames) -> dict[str, str]:
    """Data types by the names of tensors."""
    kept = {}
    for key, dtype in stored.items():
        for spelt in (key, _FUSED.get(key, key)):
            if spelt in names:
                kept[f"{names.layer}{names[spelt]}"] = dtype
    return kept


def _kept(module: Module, kept: Mapping[str, str]) -> Module:
    """A module with the data types of its matrices; its product has that of the most of them."""
    tensors = tuple(_stored(tensor, kept) for tensor in module.tensors)
    if tensors == module.tensors:
        return module
    work, types = module.operation, [tensor.kept for tensor in tensors if tensor.matrix]
    if isinstance(work, MatMul | GroupedMatMul):
        work = replace(work, kept=max(types, key=types.count))
    return replace(module, tensors=tensors, operation=work)


def _stored(tensor: Tensor, kept: Mapping[str, str]) -> Tensor:
    dtype = kept.get(tensor.name.removesuffix(".weight")) if tensor.matrix else None
    return replace(tensor, kept=dtype) if dtype else tensor
