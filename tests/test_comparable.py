"""Predictions that can be compared: random deployments against neighbours that differ in one thing.

.ci/relations.py says what must hold and where, `python .ci/comparisons.py` prints a table of millions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import comparisons
import numpy as np
import pytest
import relations
from deployments import TPOT, Graphs, Serving, draw

from mantile.library.profiles import Library

CHIPS = "a better chip"  # what a chip reaches of its datasheet differs: see test_dominance.py
EXACT = 1e-5  # a relation of no larger tolerance has no exception
ALL, LINE = (
    0.001,
    0.03,
)  # shares of all comparisons, and of those of a line, that waits in closed form may miss
FEW = 5  # comparisons that a line may miss, however few they are


def check(library: Library, cases: int, models: Sequence[str], least: int) -> None:
    """Hardly any comparison is violated, and none of those that are exact."""
    table = comparisons.run(cases, models, library=library)
    table = {key: line for key, line in table.items() if key[0] != CHIPS}
    told = "\n".join(comparisons.lines(table))
    compared, violated = (
        sum(getattr(line, what) for line in table.values()) for what in ("compared", "violated")
    )
    assert compared > least and violated <= ALL * compared, told
    for line in table.values():
        assert line.violated <= (0 if line.tolerance <= EXACT else max(FEW, LINE * line.compared)), told


def test_neighbours_compare_as_they_must(library: Library) -> None:
    """Experts, in all ways of serving."""
    check(library, 160, ["qwen3-30b-a3b"], least=40_000)


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", ["llama-3.3-70b", "deepseek-v3.2", "jamba-v0.1", "gemma-3-27b"])
def test_so_do_those_of_other_models(library: Library, model: str) -> None:
    """Dense, latent, recurrent and sliding attention."""
    check(library, 800, [model], least=180_000)


def test_a_relation_that_does_not_hold_is_told(library: Library) -> None:
    """The wrong way round each comparison is violated; the table says so and gives the deployment."""
    graphs, dice = Graphs(library), np.random.default_rng(1)
    d = draw(graphs("llama-3.1-8b", Serving(False, False)), library, dice, 50)
    right = next(item for item in relations.of_hardware() if item.name == "more of all speeds")
    tables: list[comparisons.Table] = [{}, {}]
    for table, expected in zip(tables, ("<=", ">="), strict=True):
        turned = replace(right, expected={TPOT: expected}, tolerance=0)
        comparisons.compare(d, graphs, [turned], table)
    kept, broken = (table[right.name, TPOT] for table in tables)
    assert kept.compared == broken.compared == 50 and kept.violated == 0
    assert broken.violated >= 45  # where steps wait for the host, no faster chip helps
    assert broken.example.startswith("llama-3.1-8b, aggregated: accelerator=") and " -> " in broken.example
