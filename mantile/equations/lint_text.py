"""Whether every name in the text of the equations is somebody's, whatever scenarios ask for together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mantile.equations.graph import build_graph
from mantile.equations.text import EquationError, subjects
from mantile.ir.build import build_ir
from mantile.library.models import load_model
from mantile.library.profiles import Library
from mantile.library.scenario_fields import STATED_FIELDS

_ALL = frozenset(STATED_FIELDS.values()) - {"devices"}
_STRUCTURES = {  # by name: model, workers apart, a request rate, prefixes, what else is stated, devices
    "nothing stated": ("llama-3.1-8b", False, False, False, frozenset[str](), 0),
    "all stated": ("qwen3-30b-a3b", False, True, True, _ALL, 0),
    "all stated, decode workers apart": ("qwen3-30b-a3b", True, True, True, _ALL, 0),
    "devices that are not alike": ("llama-3.1-8b", False, True, False, frozenset({"devices"}), 2),
}


@dataclass(frozen=True)
class Linted:
    """What was found.

    Args:
        rows: that were made, of all structures.
        findings: what cannot be read or made, with file and line; names that nobody uses.
    """

    files: int
    structures: int
    rows: int
    findings: tuple[str, ...]


def lint_text(library: Library) -> Linted:
    """Make every row of the text in structures that together have all features.

    Example:
        lint_text(load_library()).findings
    """
    made, findings = 0, [*_unused()]
    for name, (model, apart, rate, prefixes, stated, devices) in _STRUCTURES.items():
        try:
            ir = build_ir(load_model(model))
            rows = build_graph(ir, library, apart, rate, prefixes, stated, (), None, devices).rows
            for subject, text in subjects().items():
                for part in {block.part for block in text.blocks}:
                    found = rows.sections(subject, part=part)
                    made += sum(len(section.figures()) for section in found)
        except EquationError as error:
            findings.append(f"{error} ({name})")
    return Linted(len(subjects()), len(_STRUCTURES), made, tuple(findings))


def _unused() -> Iterator[str]:
    """Names for expressions with parameters that no line asks for."""
    said = []
    for subject in subjects().values():
        lines = (*subject.names, *(line for block in subject.blocks for line in block.lines))
        said += [line.parts.get("body", "") for line in lines]
        said += [body for _, body in subject.macros.values()]
    for subject in subjects().values():
        for name in subject.macros:
            if not any(f"{name}(" in body for body in said):
                yield f"{subject.name}.eq: nobody uses {name}(...)"
