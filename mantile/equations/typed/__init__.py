"""What was typed into cells: whether it can be, and what is used where it cannot.

A cell may hold anything: a person deletes it, types a text into it, or a number out of its range. A sentence
names the first cell that holds what cannot be, what it holds and what is expected.

    what is typed          what happens where it cannot be
    --------------------   ------------------------------------------------------------------------
    inputs, overrides      formulas read what the cell held when the file was made, or the library's figure;
                           no such plan can be
    dimensions of models   no such plan can be
    figures of profiles    no such plan can be; where no headline result depends on them, a check fails

Where only power and cost follow from a cell, the plan can be, and nobody knows what it draws and costs.
"""

from mantile.equations.typed.cells import AN_ERROR, NONE, Faults, Typed
from mantile.equations.typed.dimensions import Dimensions, dimensions_typed
from mantile.equations.typed.figures import OTHERS, FigureTables, figure_tables
from mantile.equations.typed.inputs import OF_CLASS, USED, TypedInput, TypedInputs, typed_inputs

__all__ = [
    "AN_ERROR",
    "NONE",
    "OF_CLASS",
    "OTHERS",
    "USED",
    "Dimensions",
    "Faults",
    "FigureTables",
    "Typed",
    "TypedInput",
    "TypedInputs",
    "dimensions_typed",
    "figure_tables",
    "typed_inputs",
]
