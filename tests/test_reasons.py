"""Reason codes: every check has one, each says what it means, and none is idle."""

from __future__ import annotations

import pytest

from mantile.equations.build import build_graph
from mantile.equations.checks import Check, verdict
from mantile.equations.graph import EstimateGraph
from mantile.equations.reasons import GROUPS, REASONS, reasons
from mantile.equations.stamp import stamp
from mantile.ir.build import build_ir
from mantile.library.models import load_model
from mantile.library.profiles import Library
from mantile.library.scenario_fields import STATED_FIELDS


@pytest.fixture(scope="module")
def graphs(library: Library) -> tuple[EstimateGraph, ...]:
    """Models that between them have whatever a check asks about: experts, states, images, remarks, none."""
    names = ("mixtral-8x7b", "qwen3-next-80b", "llama-3.1-8b", "qwen3-vl-8b", "minimax-m3-nvfp4@1")
    models = [build_ir(load_model(name)) for name in names]
    stated = frozenset(STATED_FIELDS.values()) - {"devices"}
    several = build_graph(models[2], library, stated=frozenset({"devices"}), devices=2)
    return (
        *(build_graph(ir, library, True, True, caches_prefixes=True, stated=stated) for ir in models),
        several,
    )


def checks_of(graph: EstimateGraph) -> tuple[Check, ...]:
    """All checks of a workbook, with the alert that inputs changed."""
    made = stamp(graph, choice=graph.typed.faults)
    return verdict(graph.checks, made.readable, (), made.unchanged, made.rows["stamp.edit.told"], 1).checks


def test_every_reason_is_of_a_check_and_every_check_has_one(graphs: tuple[EstimateGraph, ...]) -> None:
    """The table holds no code that nothing raises; checks of decode workers have codes of their own."""
    checks = [check for graph in graphs for check in checks_of(graph)]
    assert {check.reason for check in checks} == set(REASONS)
    of_decode = {check.reason for check in checks if check.code.startswith("DECODE_") and check.of}
    assert of_decode == {code for code, reason in REASONS.items() if reason.of_workers}
    for graph in graphs:
        codes = [check.code for check in checks_of(graph)]
        assert len(codes) == len(set(codes))


def test_every_reason_says_what_it_means() -> None:
    """One line each, a sentence; alerts are no errors, all else is."""
    rows = list(reasons())
    assert [code for code, _, _ in rows] == list(REASONS) and len(rows) == len(
        {meaning for *_, meaning in rows}
    )
    for code, group, meaning in rows:
        assert code == code.upper() and group in GROUPS
        assert meaning.endswith(".") and "\n" not in meaning and 30 <= len(meaning) <= 110
        assert REASONS[code].error == (group != "Alerts")
