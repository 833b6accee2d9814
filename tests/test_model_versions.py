"""Models have versions as profiles do: pinned, compared, named by the workbooks made from them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live import few, loaded

from mantile.cli.application import main
from mantile.estimates.estimate import Estimate, estimate
from mantile.library import models
from mantile.library.architecture import Model
from mantile.library.errors import InputError
from mantile.library.models import load_model
from mantile.library.profiles import Library, data_folder
from mantile.library.scenario import parse_scenario
from mantile.library.versions import Shelf, Versioned
from mantile.roundtrip.import_workbook import import_workbook
from mantile.roundtrip.since import Before, since
from mantile.workbook.bundle import Bundle
from mantile.workbook.layout import lay_out
from mantile.workbook.write import build_workbook

MODEL = "llama-3.1-8b"
SCENARIO = {"accelerator": "l40s", "input_tokens": 1000, "output_tokens": 100, "concurrency": 4}


@pytest.fixture
def shelved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A library of one model that has one layer less since its version 1."""
    place = tmp_path / "models"
    (place / "versions").mkdir(parents=True)
    text = (data_folder("models") / f"{MODEL}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"^version: .*", 'version: "1"', text, flags=re.MULTILINE)
    (place / "versions" / f"{MODEL}@1.yaml").write_text(text, encoding="utf-8")
    fewer = text.replace("layers: {value: 32", "layers: {value: 31").replace("times: 32", "times: 31")
    (place / f"{MODEL}.yaml").write_text(fewer.replace('version: "1"', 'version: "2"'), encoding="utf-8")
    monkeypatch.setattr(models, "data_folder", lambda name: tmp_path / name)
    caches = (models.model_ids, models.known_models)
    for cached in caches:
        cached.cache_clear()
    yield place
    for cached in caches:
        cached.cache_clear()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The command line: what it prints, on stderr where it fails with status 2."""

    def ran(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["mantile", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return printed.err if ended.value.code == 2 else printed.out

    return ran


def made(model: str) -> Estimate:
    return estimate(
        parse_scenario(SCENARIO | {"model": model}, "scenario"), library=few(("h100-sxm", "l40s"))
    )


@pytest.mark.parametrize("name", [MODEL, "Llama_3.1-8B", "meta-llama/Meta-Llama-3.1-8B"])
def test_a_version_is_pinned_by_any_name_of_the_model(shelved: Path, name: str) -> None:
    """The current one without a version."""
    assert [load_model(f"{name}{at}").version for at in ("", "@2", "@1")] == ["2", "2", "1"]
    layers = [load_model(f"{name}{at}").architecture.value("layers") for at in ("", "@1")]
    assert layers == [31, 32]


def test_a_version_there_is_not_is_refused_with_those_there_are(shelved: Path) -> None:
    with pytest.raises(InputError, match=r"^models/llama-3\.1-8b: version '7' is unknown; .* one of 2, 1$"):
        load_model(f"{MODEL}@7")
    with pytest.raises(InputError, match="expected a version after the @"):
        load_model(f"{MODEL}@")
    with pytest.raises(InputError, match="some-lab/tiny@1: only models that we ship have versions"):
        load_model("some-lab/tiny@1")
    with pytest.raises(InputError, match=r"unknown model 'lama-3\.1'"):
        load_model("lama-3.1@1")


def test_a_scenario_pins_a_version(shelved: Path) -> None:
    """Its results are those of the architecture as it was, and say so."""
    new, old = made(MODEL), made(f"{MODEL}@1")
    assert (old.results()["model"], old.results()["model_version"]) == (MODEL, "1")
    assert new.results()["model_version"] == "2" and new.tpot < old.tpot
    shown = since(Before("old.xlsx", old, Bundle.of(old)), new)
    assert (shown.inputs[0].id, shown.inputs[0].was, shown.inputs[0].now) == (
        "model",
        f"{MODEL}@1",
        f"{MODEL}@2",
    )
    assert "model" not in {change.id for change in since(Before("x", new, Bundle.of(new)), new).inputs}


def test_versions_are_shown_and_compared(shelved: Path, run: Callable[..., str]) -> None:
    """As those of hardware: A in a version, by default with the current one."""
    shown = json.loads(run("list", "models", "show", f"{MODEL}@1", "--json"))
    assert (shown["id"], shown["version"], shown["versions"]) == (MODEL, "1", ["2", "1"])
    assert json.loads(run("list", "models", "list", "--json"))["models"][0]["version"] == "2"
    found = json.loads(run("list", "models", "diff", f"{MODEL}@1", f"{MODEL}@2", "--json"))
    fields = {item["field"]: (item["a"], item["b"]) for item in found["differences"]}
    assert fields["facts.layers"] == (32, 31) and "facts.hidden_size" not in fields
    shipped = json.loads(run("list", "models", "show", MODEL, "--json"))
    assert shipped["formats"][0]["weights_dtype"] == "fp8"
    for asked in ((f"{MODEL}@1",), (MODEL, "--version", "1"), (f"{MODEL}@1", MODEL)):
        assert (
            json.loads(run("list", "models", "diff", *asked, "--json"))["differences"] == found["differences"]
        )
    assert "missing B" in run("list", "models", "diff", MODEL)


@pytest.mark.exhaustive
def test_a_workbook_names_the_version_it_was_made_from(
    shelved: Path, tmp_path: Path, run: Callable[..., str]
) -> None:
    """On Cover, as it is opened and verified and in JSON; also when the entry is gone."""
    path = build_workbook(made(f"{MODEL}@1"), tmp_path / "run.xlsx")
    assert f"{MODEL}@1, meta-llama/Meta-Llama-3.1-8B" in _texts(path)
    (shelved / f"{MODEL}.yaml").unlink()
    assert f"model     {MODEL}@1, weights" in run("verify", "--about", str(path))
    assert f"  model {MODEL}@1\n" in run("verify", str(path))
    assert json.loads(run("verify", str(path), "--json"))["model"] == f"{MODEL}@1"
    assert json.loads(run("verify", "--about", str(path), "--json"))["scenarios"][0]["model_version"] == "1"


@pytest.mark.exhaustive
def test_an_import_says_how_to_ask_for_the_version(shelved: Path, tmp_path: Path) -> None:
    """Where the entry has changed since, so that the scenario by itself would give other numbers."""
    path = build_workbook(made(MODEL), tmp_path / "run.xlsx")
    current = shelved / f"{MODEL}.yaml"
    current.rename(shelved / "versions" / f"{MODEL}@2.yaml")
    text = (shelved / "versions" / f"{MODEL}@2.yaml").read_text(encoding="utf-8")
    fewer = text.replace("layers: {value: 31", "layers: {value: 30").replace("times: 31", "times: 30")
    current.write_text(fewer.replace('version: "2"', 'version: "3"'), encoding="utf-8")
    imported = import_workbook(path)
    with pytest.raises(InputError, match=rf"expected --bundle, or a scenario with `model: {MODEL}@2`"):
        imported.write(tmp_path / "again.yaml")
    kept = shelved / "versions" / f"{MODEL}@2.yaml"
    kept.write_text(fewer, encoding="utf-8")  # called 2, but not what the workbook was made from
    with pytest.raises(InputError, match=r"expected --bundle$"):
        imported.write(tmp_path / "again.yaml")
    kept.unlink()
    with pytest.raises(InputError, match=r"expected --bundle$"):
        imported.write(tmp_path / "again.yaml")
    assert not (tmp_path / "again.yaml").exists()


def test_what_was_made_before_models_had_versions_reads_as_before() -> None:
    """No version is made up for it."""
    data = Bundle.of(made(MODEL)).data | {"format": 7, "generator": "mantile 0.10.0"}
    fields = ("version", "tokenizer", "formats")
    data["model"] = {name: value for name, value in data["model"].items() if name not in fields}
    bundle = Bundle(data, "old")
    then = Bundle.parse({**data, "digest": bundle.digest}, "old").estimate()
    assert (then.model.version, then.model.pin, then.results()["model_version"]) == ("", MODEL, None)
    texts = [cell.text for cell in lay_out(then).sheets["Summary"].cells.values() if cell.text]
    assert "meta-llama/Meta-Llama-3.1-8B" in texts and f"{MODEL}@" not in "".join(texts)


def _texts(path: Path) -> list[str]:
    return [str(cell.value) for row in loaded(path)["Summary"].iter_rows() for cell in row if cell.value]


class Thing(Versioned):
    """An entry with one fact."""

    fact: int = 0


def test_versions_are_in_order_and_files_are_what_they_are_called(tmp_path: Path) -> None:
    """10 comes after 9; an entry that is gone keeps its older versions."""
    (tmp_path / "versions").mkdir()
    for version in ("9", "10", "2"):
        text = f'{{id: a, version: "{version}", fact: {version}}}'
        (tmp_path / "versions" / f"a@{version}.yaml").write_text(text, encoding="utf-8")
    shelf = Shelf("things", tmp_path, Thing)
    assert shelf.ids == () and shelf.versions("a") == ["10", "9", "2"]
    assert (shelf.load("a").fact, shelf.load("a@2").fact) == (10, 2)
    (tmp_path / "a.yaml").write_text('{id: a, version: "11"}', encoding="utf-8")
    assert Shelf("things", tmp_path, Thing).versions("a") == ["11", "10", "9", "2"]
    for text, message in (
        ('{id: b, version: "11"}', r"a\.yaml: field id: expected 'a' as the file is called, found 'b'"),
        ('{id: a, version: ""}', r"a\.yaml: field version: expected one"),
    ):
        (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            Shelf("things", tmp_path, Thing).load("a")


def test_what_is_published_beside_the_architecture_has_its_source(library: Library) -> None:
    """Data types are those of the library, and no checkpoint is listed twice."""
    listed: list[str] = []
    for name in models.model_ids():
        model = load_model(name)
        listed += [checkpoint.hub_id for checkpoint in model.formats]
        for checkpoint in model.formats:
            assert library.datatype(checkpoint.weights_dtype, "weights").id == checkpoint.weights_dtype
            known = models.known_models().checkpoints[checkpoint.hub_id]
            own = model.architecture.choices["weights_dtype"].value
            expected = None if checkpoint.weights_dtype == own else checkpoint.weights_dtype
            assert known == (name, expected)
        rows = model.architecture.value("vocabulary")
        assert model.tokenizer is None or model.tokenizer.vocabulary <= rows
    assert len(set(listed)) == len(listed) >= 30
    assert models.known_models().checkpoints.keys() == set(listed)


def test_a_source_that_breaks_its_promise_is_refused(shelved: Path) -> None:
    """As in profiles."""
    file = shelved / f"{MODEL}.yaml"
    text = file.read_text(encoding="utf-8").replace("status: datasheet", "status: secondary")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"models/llama-3\.1-8b\.yaml: field formats\.0\.source: status second"
    ):
        load_model(MODEL)


@pytest.mark.parametrize("name", models.model_ids())
def test_every_version_of_a_model_can_be_loaded(name: str) -> None:
    for version in models.shelf().versions(name):
        model: Model = load_model(f"{name}@{version}")
        assert (model.id, model.version, model.pin) == (name, version, f"{name}@{version}")
