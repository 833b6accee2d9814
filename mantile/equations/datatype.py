"""What the library states of every data type, rows "datatype.<data type>.<fact>": bits, peak, kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile

from mantile.equations.library import FactKind, stated_rows
from mantile.equations.things import things
from mantile.graph.quantity import Input, Section, defined
from mantile.library.profiles import Library
from mantile.library.scenario_fields import SAME

_KERNELS = "which row of the efficiency tables applies"
_ENDS = "as files have it, until a scenario states it"


@dataclass(frozen=True)
class DataTypes:
    """The data types of the library, each at the same place in every block.

    Args:
        ids: their names.
        same: stands above them in lists to choose from: a class of weights may be in the type of the others.
        of_weights: how many of the first names are those of weights, where these come first; else 0.
        bits: per value, scales included.
        families: those of formats that frameworks read with the same programs.
        peak: the peak that products in it run at.
        activations: the format that activations take beside weights of it.
        kernels_bf16: kernel format with 16-bit activations.
        kernels_native: kernel format with activations of its own format.
        heads, embeddings: the data types of LM head and embedding in files of such weights.
    """

    ids: tuple[Input, ...]
    same: Input
    of_weights: int
    bits: tuple[Input, ...]
    families: tuple[Input, ...]
    peak: tuple[Input, ...]
    kernels_bf16: tuple[Input, ...]
    kernels_native: tuple[Input, ...]
    activations: tuple[Input, ...]
    heads: tuple[Input, ...]
    embeddings: tuple[Input, ...]

    def sections(self) -> tuple[Section, ...]:
        """Their table."""
        facts = {
            "Data type": self.ids,
            "Bits per value": self.bits,
            "Family": self.families,
            "Peak used": self.peak,
            "Kernels with 16-bit activations": self.kernels_bf16,
            "Kernels with native activations": self.kernels_native,
            "Activations beside such weights": self.activations,
            "LM head beside such weights": self.heads,
        } | ({"Embedding beside such weights": self.embeddings} if self.embeddings else {})
        notes = [" · ".join((figure.note, figure.source)) for figure in self.ids]
        block = things("Data types", facts, "what each takes, and which peak and kernels it uses", notes)
        same = things("", {"": (self.same,)}, notes=(self.same.note,))
        return (replace(block, rows=(*same.rows, *block.rows)),)


def datatypes(library: Library, tied: bool) -> DataTypes:
    """The data types of the library.

    Args:
        tied: the embedding is the LM head too, and has no data type of its own.
    """
    kinds = library.datatypes
    assert kinds[0].id == "bf16", "results and fallbacks are bf16, the first data type"
    first = len(list(takewhile(lambda kind: "weights" in kind.roles, kinds)))
    return DataTypes(
        same=defined(
            "datatype.same.id",
            "Data type, as the other weights",
            "1",
            SAME,
            "what a class of matrices may be set to besides",
            "a word of the scenario",
        ),
        of_weights=first if not any("weights" in kind.roles for kind in kinds[first:]) else 0,
        ids=tuple(
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
        ),
        bits=tuple(
            Input(
                f"datatype.{kind.id}.bits",
                f"Bits per value, {kind.id}",
                "bit",
                kind.bits,
                "scales included",
                kind.source,
                "defined",
                shared=True,
                fixed=True,
                name="bits per value",
            )
            for kind in kinds
        ),
        families=stated_rows(
            "datatype",
            FactKind("family", "Family", "1", "of formats that frameworks read with the same programs"),
            {kind.id: kind.family or kind.id for kind in kinds},
        ),
        peak=stated_rows(
            "datatype",
            FactKind("peak", "Peak used", "1", "peak its products run at"),
            {kind.id: kind.peak for kind in kinds},
        ),
        kernels_bf16=stated_rows(
            "datatype",
            FactKind("kernels_bf16", "Kernels with 16-bit activations", "1", _KERNELS),
            {kind.id: kind.kernels_bf16 for kind in kinds},
        ),
        kernels_native=stated_rows(
            "datatype",
            FactKind("kernels_native", "Kernels with native activations", "1", _KERNELS),
            {kind.id: kind.kernels_native for kind in kinds},
        ),
        activations=stated_rows(
            "datatype",
            FactKind("activations", "Activations beside such weights", "1", "until a scenario states them"),
            {kind.id: kind.id if "activations" in kind.roles else kind.peak for kind in kinds},
        ),
        heads=stated_rows(
            "datatype",
            FactKind("head", "LM head beside such weights", "1", _ENDS),
            {kind.id: kind.head or "bf16" for kind in kinds},
        ),
        embeddings=stated_rows(
            "datatype",
            FactKind("embedding", "Embedding beside such weights", "1", _ENDS),
            {kind.id: kind.embedding or "bf16" for kind in kinds},
        )
        if not tied
        else (),
    )
