"""Presets: what `--as` sets, that it yields to what is stated, and that it is told."""

from __future__ import annotations

import re

import pytest

from mantile.cli.presets import PRESETS, preset_fields
from mantile.estimates.estimate import estimate
from mantile.library.errors import InputError
from mantile.library.profile_facts import STATUSES
from mantile.library.profiles import load_library
from mantile.library.scenario import merge_fields, parse_scenario
from mantile.workbook.layout import lay_out

ASKED = {
    "model": "llama-3.2-1b",
    "accelerator": "rtx-4090",
    "input_tokens": 512,
    "output_tokens": 64,
    "concurrency": 1,
}


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_is_a_scenario_and_says_what_it_chose(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its framework is one of the library; what is stated goes before it."""
    fields = preset_fields(name, {}, {"kv_dtype": "bf16"})
    chip = "m3-ultra" if name == "mlx" else "rtx-4090"
    scenario = parse_scenario(merge_fields(ASKED | {"accelerator": chip}, fields, "test"), "test")
    assert scenario.framework in {framework.id for framework in load_library().frameworks}
    said = capsys.readouterr().err
    assert f"--as {name}: framework {scenario.framework}" in said
    choices = [choice for field, choice in PRESETS[name].items() if field != "kv_dtype"]  # which was stated
    assert said.count("(assumed)") == sum(choice.status == "assumed" for choice in choices)
    for choice in PRESETS[name].values():
        assert len(choice.source) > 20 and re.fullmatch(r"20\d\d-\d\d-\d\d", choice.date)
        assert choice.status in STATUSES
        if choice.status == "datasheet":
            assert "; https://" in choice.source
        elif choice.status == "secondary":
            assert "citing" in choice.source
    assert preset_fields(name, {"framework": "exo"}, {}).get("framework") is None


@pytest.mark.exhaustive
def test_the_workbook_names_the_preset_and_what_it_chose() -> None:
    """At the head of its column; what it chose are inputs below. A name that is stated stays."""
    made = estimate(parse_scenario(ASKED | preset_fields("ollama", {}, {}), "test"))
    book = lay_out(made)
    inputs = book.sheets["Inputs"]
    assert any("as ollama" in str(cell) for cell in inputs.cells.values())
    assert preset_fields("ollama", {}, {"name": "mine"})["name"] == "mine"


def test_a_preset_that_there_is_not_is_refused() -> None:
    """With those that come near."""
    with pytest.raises(InputError, match="there is no such preset; did you mean ollama"):
        preset_fields("olama", {}, {})
