"""What was typed into cells: whether it can be, and what is used where it cannot.

A cell may hold anything: a person deletes it, types a text into it, or a number out of its range. A sentence
names the first cell that holds what cannot be, what it holds and what is expected.

    what is typed          what happens where it cannot be
    --------------------   ------------------------------------------------------------------------
    inputs, overrides      formulas read what the cell held when the file was made or followed then, or the
                           library's figure; no such plan can be
    dimensions of models   no such plan can be
    assumptions            no such plan can be; where no headline result depends on them, a check fails

Figures of the library are not typed over: an override stands for one.

Where only power and cost follow from a cell, the plan can be, and nobody knows what it draws and costs.
"""

from mantile.equations.typed.cells import (
    AN_ERROR,
    NONE,
    OWN_COLUMNS,
    SHARED_COLUMNS,
    TYPED,
    USED,
    Faults,
    Typed,
    count_faults,
)
from mantile.equations.typed.inputs import LINES, OF_CLASS, STATES, TypedInputs, typed_inputs
from mantile.equations.typed.shared import (
    ASSUMPTIONS,
    OTHERS,
    PAID,
    SharedCells,
    assumptions_typed,
    dimensions_typed,
)

__all__ = [
    "AN_ERROR",
    "ASSUMPTIONS",
    "LINES",
    "NONE",
    "OF_CLASS",
    "OTHERS",
    "OWN_COLUMNS",
    "PAID",
    "SHARED_COLUMNS",
    "STATES",
    "TYPED",
    "USED",
    "Faults",
    "SharedCells",
    "Typed",
    "TypedInputs",
    "assumptions_typed",
    "count_faults",
    "dimensions_typed",
    "typed_inputs",
]
