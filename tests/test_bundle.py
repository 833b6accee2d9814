"""Bundles: what was built once is built again anywhere, to the byte; what was changed since is noticed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import few_of
from live import exit_status, few, loaded

import mantile
from mantile.estimates.estimate import Estimate, estimate
from mantile.library import models, profiles
from mantile.library.documents import parse_yaml
from mantile.library.dump import dump_yaml
from mantile.library.errors import InputError
from mantile.library.models import Model, load_model
from mantile.library.profiles import Library, data_folder
from mantile.library.scenario import Scenario, load_scenario, parse_scenario
from mantile.library.template import Template
from mantile.workbook.bundle import BUNDLE_SHEET, FORMAT, Bundle, read_bundle, write_bundle
from mantile.workbook.cell_diff import diff_cells
from mantile.workbook.read import open_file
from mantile.workbook.write import build_workbook

SCENARIO = """\
title: "= a title"
date: 2026-11-21
model: llama-3.2-1b
accelerator: l40s
input_tokens: 1000
output_tokens: 100
concurrency: 4
overrides: [{id: efficiency.gemm_compute, value: 0.1, reason: "yes: 1e5"}]
variants: [{name: "no", kv_dtype: fp8}]
"""


@pytest.fixture(scope="module")
def small() -> Estimate:
    """An estimate on a small library."""
    return estimate(parse_scenario(parse_yaml(SCENARIO, "scenario"), "scenario"), library=few())


def test_what_a_bundle_may_hold_goes_with_its_format() -> None:
    """A field more, and an older program can no longer read it: raise FORMAT, and put the new names here."""

    def names(schema: Any) -> Iterator[str]:
        if isinstance(schema, dict):
            yield from schema.get("properties", {})
            yield from (str(choice) for choice in schema.get("enum", ()))
            for part in schema.values():
                yield from names(part)
        elif isinstance(schema, list):
            for part in schema:
                yield from names(part)

    found = sorted(
        {name for part in (Scenario, Model, Library, Template) for name in names(part.model_json_schema())}
    )
    assert (FORMAT, hashlib.sha256(" ".join(found).encode()).hexdigest()[:12]) == (16, "a6ffe98a8b19"), found


def test_what_no_estimate_can_be_made_of_is_named_with_the_file(small: Estimate) -> None:
    data = json.loads(json.dumps(Bundle.of(small).data))
    data["model"]["architecture"]["choices"]["tensor_names"]["value"] = "of nobody"
    with pytest.raises(InputError, match=r"elsewhere\.json: choices\.tensor_names: .* found 'of nobody'"):
        Bundle(data, "elsewhere.json").estimate()
    for name in ("weights_dtype", "norms", "position_embedding", "tensor_names"):
        data = json.loads(json.dumps(Bundle.of(small).data))
        del data["model"]["architecture"]["choices"][name]
        with pytest.raises(InputError, match=rf"elsewhere\.json: architecture\.choices\.{name} is missing"):
            Bundle(data, "elsewhere.json").estimate()


@pytest.mark.exhaustive
def test_the_same_bytes_where_the_library_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model and profiles changed and one of them gone.

    The scenario gives another workbook, the bundle the same.
    """
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text(SCENARIO, encoding="utf-8")
    assert exit_status("build", "run.yaml", "-o", "run.xlsx") == 0
    assert exit_status("import", "run.xlsx", "-o", "bundle.yaml", "--bundle") == 0
    for folder in ("models", "profiles"):
        shutil.copytree(data_folder(folder), tmp_path / "other" / folder)
    (tmp_path / "other/models/llama-3.2-1b.yaml").unlink()
    chip = tmp_path / "other/profiles/accelerators/l40s.yaml"
    chip.write_text(chip.read_text(encoding="utf-8").replace("value: 864", "value: 860"), encoding="utf-8")
    for module in (models, profiles):
        monkeypatch.setattr(module, "data_folder", lambda name: tmp_path / "other" / name)
    caches = (profiles.library_with, models.model_ids, models.known_models)
    for cached in caches:
        cached.cache_clear()
    try:
        assert exit_status("build", "run.yaml", "-o", "again.xlsx") == 2, "the model is gone"
        shutil.copy(Path(mantile.__file__).parents[1] / "models/llama-3.2-1b.yaml", tmp_path / "other/models")
        models.model_ids.cache_clear()
        assert exit_status("compare", "run.yaml", "bundle.yaml") == 1, "the scenario now has other profiles"
        (tmp_path / "other/models/llama-3.2-1b.yaml").unlink()
        assert exit_status("build", "bundle.yaml", "-o", "third.xlsx") == 0
        assert Path("third.xlsx").read_bytes() == Path("run.xlsx").read_bytes()
    finally:
        for cached in caches:
            cached.cache_clear()


def test_flags_change_a_bundle_too(
    tmp_path: Path, small: Estimate, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they change a scenario; profiles of its own it keeps."""
    path = str(write_bundle(Bundle.of(small), tmp_path / "run.json"))
    assert exit_status("estimate", path, "--json") == 0
    before = json.loads(capsys.readouterr().out)
    assert exit_status("estimate", path, "--concurrency", "9", "--json") == 0
    after = json.loads(capsys.readouterr().out)
    assert before["tpot_s"] == small.results()["tpot_s"] < after["tpot_s"] and after["concurrency"] == 9
    assert exit_status("estimate", path, "--profile", "accelerators/h100-sxm@2026-11") == 2
    assert "a bundle brings its own profiles" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_both_forms_hold_the_same(tmp_path: Path, form: str) -> None:
    """The whole library: the same content, digest and text; the scenario in it is one for people."""
    bundle = Bundle.of(estimate(parse_scenario(parse_yaml(SCENARIO, "scenario"), "scenario")))
    path = write_bundle(bundle, tmp_path / f"run.{form}")
    found = read_bundle(path)
    assert found.data == bundle.data and found.digest == bundle.digest and found.text == bundle.text
    assert len(found.digest) == 64 and found.estimate().results() == bundle.estimate().results()
    if form == "yaml":
        assert path.read_text(encoding="utf-8").startswith(
            f"format: {FORMAT}\ngenerator: mantile {mantile.__version__}\n"
            f"made_on: '{bundle.made_on}'\ndigest: {bundle.digest}\n"
            "scenario:\n  title: = a title\n  date: '2026-11-21'\n  model: llama-3.2-1b\n  accelerator: "
            "l40s\n"
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda data: data["library"]["accelerators"][0]["memory_bandwidth"].update(value=1.0),
            "was changed or damaged since it was made",
        ),
        (lambda data: data.update(generator="mantile 0.1.0"), "was changed or damaged"),
        (lambda data: data.pop("digest"), "field digest says None"),
        (
            lambda data: data.update(format=FORMAT + 1, generator="mantile 9.1.0"),
            rf"format {FORMAT + 1}, made by mantile 9\.1\.0; this is mantile {mantile.__version__}, which "
            r"reads "
            f"formats 1 to {FORMAT}: expected the version that made it, or a later one",
        ),
        (lambda data: data.update(format="2"), "bundle format '2'"),
        (lambda data: data.pop("model"), "is damaged; expected format, scenario, model and library"),
    ],
    ids=["content", "generator", "no digest", "newer", "text", "no model"],
)
@pytest.mark.parametrize("form", few_of(["json", "yaml"], "json"))
def test_what_is_not_as_it_was_made_is_refused(
    tmp_path: Path, small: Estimate, form: str, change: Any, words: str
) -> None:
    """Naming the file and what was expected."""
    path = write_bundle(Bundle.of(small), tmp_path / f"run.{form}")
    data = (
        json.loads(path.read_text(encoding="utf-8"))
        if form == "json"
        else parse_yaml(path.read_text(encoding="utf-8"), "run")
    )
    change(data)
    path.write_text(json.dumps(data) if form == "json" else dump_yaml(data), encoding="utf-8")
    with pytest.raises(InputError, match=rf"run\.{form}: .*{words}"):
        read_bundle(path)
    assert (
        exit_status("build", str(path), "-o", str(tmp_path / "run.xlsx")) == 2
        and not (tmp_path / "run.xlsx").exists()
    )


@pytest.mark.exhaustive
def test_what_was_written_before_there_was_a_digest_is_read(
    tmp_path: Path, small: Estimate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workbook laid out as ours are says of itself what it said; one that is not is refused, as below."""
    data = Bundle.of(small).data | {"format": 1, "generator": "mantile 0.3.0"}
    monkeypatch.setattr(Bundle, "of", classmethod(lambda cls, made: cls(data, "bundle")))
    path = build_workbook(small, tmp_path / "old.xlsx")
    monkeypatch.undo()
    sheet = loaded(path)[BUNDLE_SHEET]
    assert json.loads("".join(row[0].value for row in sheet.iter_rows())) == data
    file = open_file(path)
    assert file.book.generator == "Mantile 0.3.0" and file.book.estimate.results() == small.results()
    texts = diff_cells(file)
    assert not (texts.formulas or texts.overwritten or texts.labels or texts.notes), (
        "nothing in it looks edited"
    )


@pytest.mark.exhaustive
def test_a_changed_bundle_in_a_workbook_is_named(tmp_path: Path, small: Estimate) -> None:
    """Its sheet is hidden, not sealed."""
    path = build_workbook(small, tmp_path / "run.xlsx")
    book = loaded(path)
    cell = book[BUNDLE_SHEET]["A1"]
    cell.value = str(cell.value).replace('"value":', '"value": ', 1).replace("l40s", "l40t", 1)
    book.save(path)
    with pytest.raises(InputError, match=r"run\.xlsx: sheet _bundle: the bundle was changed or damaged"):
        open_file(path)


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "1e5",
        "1_000",
        "2026-11-21",
        "0x1f",
        "~",
        "",
        "=1+1",
        "- a",
        "a: b",
        "#",
        "é × ÷ −",
        "1.5",
        ".5",
        "+1",
        "1:30",
        "\u0085",
    ],
)
def test_texts_stay_texts(text: str, tmp_path: Path) -> None:
    """In YAML 1.1 and 1.2 alike."""
    assert parse_yaml(dump_yaml({"a": text, "b": [{text or "x": 1e16}], "c": 1.0}), "x") == {
        "a": text,
        "b": [{text or "x": 1e16}],
        "c": 1.0,
    }
    assert yaml.safe_load(dump_yaml({"a": text})) == {"a": text}


def test_a_scenario_that_is_no_bundle_is_read_as_ever(tmp_path: Path) -> None:
    """Also as YAML in the wrong order, and a config.json is a model still."""
    (tmp_path / "run.yaml").write_text(SCENARIO, encoding="utf-8")
    assert load_scenario(str(tmp_path / "run.yaml")).variants[0].name == "no"
    config = {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_attention_heads": 32,
        "num_hidden_layers": 2,
        "intermediate_size": 5632,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert (
        exit_status(
            "estimate",
            str(tmp_path / "config.json"),
            "--accelerator",
            "l40s",
            "--isl",
            "100",
            "--osl",
            "10",
            "--concurrency",
            "1",
        )
        == 0
    )
    assert load_model(str(tmp_path / "config.json")).architecture.value("layers") == 2
