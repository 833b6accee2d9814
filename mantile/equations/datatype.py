"""What the library states of every data type, rows "datatype.<data type>.<fact>": bits, peak, kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from mantile.equations.library import FactKind, text_rows
from mantile.equations.things import things
from mantile.graph.quantity import Input, Section, defined
from mantile.library.profiles import DataType, Library
from mantile.library.scenario_fields import SAME

_KERNELS = "which row of the efficiency tables applies"
_ENDS = "as files have it, until a scenario states it"
_TEXTS: tuple[tuple[FactKind, Callable[[DataType], str]], ...] = (
    (
        FactKind("family", "Family", "1", "of formats that frameworks read with the same programs"),
        lambda kind: kind.family or kind.id,
    ),
    (FactKind("peak", "Peak used", "1", "peak its products run at"), lambda kind: kind.peak),
    (
        FactKind("kernels_bf16", "Kernels with 16-bit activations", "1", _KERNELS),
        lambda kind: kind.kernels_bf16,
    ),
    (
        FactKind("kernels_native", "Kernels with native activations", "1", _KERNELS),
        lambda kind: kind.kernels_native,
    ),
    (
        FactKind("activations", "Activations beside such weights", "1", "until a scenario states them"),
        lambda kind: kind.id if "activations" in kind.roles else kind.peak,
    ),
    (FactKind("head", "LM head beside such weights", "1", _ENDS), lambda kind: kind.head or "bf16"),
    (
        FactKind("embedding", "Embedding beside such weights", "1", _ENDS),
        lambda kind: kind.embedding or "bf16",
    ),
)


@dataclass(frozen=True)
class DataTypes:
    """The data types of the library.

    Args:
        columns: what is stated of each, in the same order, by the last part of ids.
        same: stands above them in lists to choose from: a class of weights may be in the type of the others.
        of_weights: the names of those of weights, where these come first; else none.
        section: their table.
    """

    columns: Mapping[str, tuple[Input, ...]]
    same: Input
    of_weights: tuple[Input, ...]
    section: Section

    def listed(self, entry: Input) -> tuple[Input, ...]:
        """The texts that the data type of weights is chosen from; none where they stand in no list."""
        above = (self.same,) if self.of_weights and SAME in entry.choices else ()
        return (*above, *self.of_weights)


def datatypes(library: Library, tied: bool) -> DataTypes:
    """The data types of the library.

    Args:
        tied: the embedding is the LM head too, and has no data type of its own.
    """
    kinds = library.datatypes
    assert kinds[0].id == "bf16", "results and fallbacks are bf16, the first data type"
    first = len(list(takewhile(lambda kind: "weights" in kind.roles, kinds)))
    same = defined(
        "datatype.same.id",
        "Data type, as the other weights",
        "1",
        SAME,
        "what a class of matrices may be set to besides",
        "a word of the scenario",
    )
    ids = tuple(
        defined(
            f"datatype.{kind.id}.id",
            f"Data type, {kind.id}",
            "1",
            kind.id,
            kind.name,
            kind.source,
            name="data types",
        )
        for kind in kinds
    )
    bits = tuple(
        defined(
            f"datatype.{kind.id}.bits",
            f"Bits per value, {kind.id}",
            "bit",
            kind.bits,
            "scales included",
            kind.source,
            name="bits per value",
        )
        for kind in kinds
    )
    texts = {
        fact: text_rows("datatype", fact, {kind.id: of(kind) for kind in kinds})
        for fact, of in _TEXTS
        if not (tied and fact.name == "embedding")
    }
    facts = {"Data type": ids, "Bits per value": bits} | {fact.label: rows for fact, rows in texts.items()}
    notes = [" · ".join((figure.note, figure.source)) for figure in ids]
    block = things("Data types", facts, "what each takes, and which peak and kernels it uses", notes)
    above = things("", {"": (same,)}, notes=(same.note,))
    return DataTypes(
        columns={"id": ids, "bits": bits} | {fact.name: rows for fact, rows in texts.items()},
        same=same,
        of_weights=ids[:first] if not any("weights" in kind.roles for kind in kinds[first:]) else (),
        section=replace(block, rows=(*above.rows, *block.rows)),
    )
