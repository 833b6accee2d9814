"""Hardware: the figures we ship, their versions, comparing them, and accelerators of one's own."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import lock_versions
import pytest
import test_cli
from test_cli import CASE, refused

from mantile.estimates.estimate import estimate
from mantile.library.datasheet import MOST_FP4, MOST_FP8, doubts, skeleton
from mantile.library.documents import load, parse_yaml
from mantile.library.errors import InputError
from mantile.library.profile_facts import ProfileFact
from mantile.library.profiles import FOLDERS, Accelerator, Library, load_library, shelf
from mantile.library.scenario import parse_scenario

run = test_cli.run  # the fixture
PROFILES = lock_versions.PROFILES
FILES = sorted(path for folder in FOLDERS for path in (PROFILES / folder).rglob("*.yaml"))
SCENARIO: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "tp": 2,
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}
SHEET = {
    "peak_bf16": "400",
    "peak_fp8": "800",
    "peak_fp4": "null",
    "memory_capacity": "96",
    "memory_bandwidth": "4000",
}


# --- the library --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.relative_to(PROFILES).parts[0]}/{path.stem}")
def test_a_profile_is_valid_and_called_as_what_it_holds(path: Path) -> None:
    """Older versions included: a workbook may be asked for with them."""
    folder = path.relative_to(PROFILES).parts[0]
    item = load(FOLDERS[folder], path)
    assert path.stem == (f"{item.id}@{item.version}" if path.parent.name == "versions" else item.id)


@pytest.mark.parametrize("folder", ["accelerators", "systems", "prices"])
def test_every_figure_says_why_to_believe_it(folder: str) -> None:
    """Source, date and status where they lie in the file.

    How sure one can be of chips and prices; why a peak is null.
    """
    for path in sorted((PROFILES / folder).glob("*.yaml")):
        figures = {
            name: item
            for name, item in parse_yaml(path.read_text(encoding="utf-8"), path.name).items()
            if isinstance(item, dict)
        }
        assert figures or folder == "prices", path
        for name, figure in figures.items():
            assert (
                len(figure["source"]) >= 3
                and re.fullmatch(r"20\d\d-\d\d-\d\d", figure["date"])
                and figure["status"]
            ), (path, name)
            assert folder == "systems" or figure["confidence"] in ("high", "medium", "low"), (path, name)
            assert not name.startswith("peak_") or figure["value"] is not None or figure["note"], (path, name)


def test_ids_of_accelerators_and_systems_are_apart(library: Library) -> None:
    """`hardware show` takes either."""
    assert not {chip.id for chip in library.accelerators} & {system.id for system in library.systems}
    assert len(library.accelerators) >= 52 and all(chip.system for chip in library.accelerators)


_GEFORCE = "GeForce halves the 16-bit rate where sums are fp32, as they are here; fp4 runs at the full rate"
DENSE = {
    **{(chip, "peak_fp4"): _GEFORCE for chip in ("rtx-5090", "rtx-5080", "rtx-5070-ti", "rtx-5060-ti-16gb")},
    (
        "dgx-spark-gb10",
        "peak_fp8",
    ): "its 16-bit peak is set between the full and the half rate, fp8 at the full one",
}


def test_no_sparse_figure_enters(library: Library) -> None:
    """Sparsity doubles a marketed rate.

    So one sparse figure beside a dense one shows as a ratio that no hardware has.
    """
    assert (MOST_FP8, MOST_FP4) == (2.1, 6.5)
    found = {
        (chip.id, doubt.split(":")[0].removeprefix("field "))
        for chip in library.accelerators
        for doubt in doubts(chip)
    }
    assert found == DENSE.keys()
    data = library.accelerator("h100-sxm").model_dump()
    data["peak_fp8"]["value"] = 3958  # the marketed one
    assert (
        "peak_fp8: 3958 TFLOP/s is 4.0 times the 16-bit peak" in doubts(Accelerator.model_validate(data))[0]
    )


INTENDED = {
    "rec_mem_bytes": (
        {"epyc-9354", "epyc-9654", "epyc-9755", "xeon-6980p", "xeon-8480p"},
        "the table has none: a socket takes what one puts in; ours is one module of 64 GiB per channel",
    ),
    "rec_price_usd": (
        {"cerebras-wse3", "gb200-nvl72", "gb300-nvl72"},
        "the table has the price of the rack or machine in words; ours is the share",
    ),
    "rec_tdp_w": ({"m3-ultra"}, "the table has none; ours is what Apple states for the machine"),
    "rec_cloud_usd_h": ({"mi355x"}, "the table's is of a cost model, and stands as rental with us"),
}


def test_figures_are_those_of_the_reference_table(library: Library, shared_data: Path) -> None:
    """The collected table of 2026-08 recommends one figure of each kind per chip."""
    with (shared_data / "hardware.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert rows.keys() <= {chip.id for chip in library.accelerators}  # later ones are not in it
    differing: dict[str, set[str]] = {}
    for chip in (chip for chip in library.accelerators if chip.id in rows):
        price = library.price(chip.id)
        links = {system.link_bandwidth.value for system in library.systems if system.accelerator == chip.id}
        ours: dict[str, set[float | None]] = {
            "rec_fp32_tflops": {_value(chip.peak_fp32)},
            "rec_fp8_tflops": {_value(chip.peak_fp8)},
            "rec_int8_tops": {_value(chip.peak_int8)},
            "rec_bf16_tflops": {
                _value(chip.peak_bf16) or _value(chip.peak_fp16)
            },  # the table has fp16 in this column where there is no bf16
            "rec_fp4_tflops": {_value(chip.peak_fp4)},
            "rec_mem_bw_gbs": {_value(chip.memory_bandwidth)},
            "rec_tdp_w": {_value(chip.tdp)},
            "rec_idle_w": {_value(chip.idle)},
            "rec_mem_bytes": {(_value(chip.memory_capacity) or 0) * 2**30},
            "rec_cloud_usd_h": {_value(price and price.cloud)},
            "rec_price_usd": {_value(price and price.purchase)},
            "rec_link_gbs_per_dir": {library.usual_system(chip.id).link_bandwidth.value} - {None} or links,
        }
        for column, values in ours.items():
            told = float(rows[chip.id][column]) if rows[chip.id][column] else None
            if not any(
                value == told or (value and told and value == pytest.approx(told, rel=1e-6))
                for value in values
            ):
                differing.setdefault(column, set()).add(chip.id)
    assert differing == {column: ids for column, (ids, _) in INTENDED.items()}


def _value(figure: ProfileFact | None) -> float | None:
    return figure.value if figure else None


# --- versions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", [PROFILES, lock_versions.MODELS], ids=["profiles", "models"])
def test_a_changed_figure_is_a_new_version(library: Path) -> None:
    """Each message says what to do."""
    assert lock_versions.problems(library) == []


@pytest.mark.exhaustive
def test_the_list_of_versions_notices_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Changed, added and lost files.

    The script refuses to list a change under the old version unless told to.
    """
    shutil.copytree(PROFILES, tmp_path / "profiles")
    profiles, chip = tmp_path / "profiles", tmp_path / "profiles" / "accelerators" / "a10.yaml"
    text = chip.read_text(encoding="utf-8")
    chip.write_text(text + "# a remark\n", encoding="utf-8")
    assert lock_versions.problems(profiles) == []
    chip.write_text(text.replace("value: 600", "value: 601"), encoding="utf-8")
    told = lock_versions.problems(profiles)
    assert len(told) == 1 and re.match(
        r"accelerators/a10 changed but is still version .*versions/a10@.*raise the version", told[0]
    )
    before = (profiles / "versions.txt").read_bytes()
    assert lock_versions.main([], (profiles,)) == 1 and (profiles / "versions.txt").read_bytes() == before
    assert "is still version" in capsys.readouterr().err
    assert lock_versions.main(["--force"], (profiles,)) == 0 and lock_versions.problems(profiles) == []
    chip.write_text(text.replace('version: "', 'version: "9-'), encoding="utf-8")
    assert [
        "is listed but its file is gone" in told or "is not listed" in told
        for told in lock_versions.problems(profiles)
    ] == [True, True]
    assert lock_versions.main([], (profiles,)) == 0 and lock_versions.problems(profiles) == []


@pytest.mark.parametrize("folder", list(FOLDERS))
def test_every_version_can_be_loaded(folder: str) -> None:
    for path in (PROFILES / folder).glob("*.yaml"):
        for version in shelf(folder).versions(path.stem):
            assert shelf(folder).load(f"{path.stem}@{version}").version == version


def test_a_pin_brings_back_the_old_figures() -> None:
    """The pinned profile only, in the system it had; what is not there is refused with what there is."""
    assert load_library().accelerator("h100-sxm").host_bandwidth is not None
    made = estimate(parse_scenario(SCENARIO | {"profiles": ["accelerators/h100-sxm@2026-11"]}, "scenario"))
    assert (
        made.library.accelerator("h100-sxm").version == "2026-11"
        and made.library.accelerator("h100-sxm").host_bandwidth is None
    )
    assert made.library.system("hgx-h100").version != "2026-11"
    assert made.results()["system"] == "hgx-h100" and made.results()["feasibility"] == "fits"
    for pin, message in (
        ("accelerators/h100-sxm@1999", "version '1999' is unknown; expected one of .*2026-11"),
        ("chips/h100-sxm@2026-11", "expected accel"),
        ("accelerators/h100-smx@2026-11", "did you mean h100-sxm"),
        ("accelerators/h100-sxm", "expected .*id@version"),
    ):
        with pytest.raises(InputError, match=message):
            estimate(parse_scenario(SCENARIO | {"profiles": [pin]}, "scenario"))


# --- list, show, diff ---------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_list_and_show(run: Any, library: Library) -> None:
    rows = {row["id"]: row for row in run("list", "hardware", "list", "--json").data["hardware"]}
    assert rows.keys() == {chip.id for chip in library.accelerators}
    assert (
        rows["gb200-nvl72"]["system"],
        rows["gb200-nvl72"]["accelerators"],
        rows["mi300x"]["topology"],
    ) == ("nvl72-gb200", 72, "mesh")
    assert rows["t4"]["peak_bf16_flops"] is None and rows["t4"]["peak_fp16_flops"] == 65e12
    table = run("list", "hardware", "list").out
    assert all(f" {name} " in table for row in rows.values() for name in (row["id"], row["system"]))
    shown = run("list", "hardware", "show", "h100-pcie", "--json").data
    assert (shown["system"]["id"], shown["other_systems"]) == ("pcie-h100", ["h100-pcie-pair"]) and shown[
        "prices"
    ]["cloud"]["value"] > 0
    assert "h100-pcie-pair" in run("list", "hardware", "show", "h100-pcie").out
    old = run("list", "hardware", "show", "h100-sxm@2026-11", "--json").data
    assert (old["version"], old["versions"][-1], old["accelerator"]["idle"]) == ("2026-11", "2026-11", None)
    assert run("list", "hardware", "show", "pcie-h100", "--json").data["system"]["topology"] == "pcie"
    refused(run("list", "hardware", "show", "h100-sxm@1"), "version '1' is unknown", "2026-11")
    for profile in run("list", "profiles", "list", "--json").data["profiles"]:
        ran = run("list", "profiles", "show", profile["id"])
        assert ran.status == 0 and profile["key"] in ran.out


def test_diff_lists_what_differs_and_nothing_else(run: Any, library: Library) -> None:
    found = run("list", "hardware", "diff", "h100-sxm", "h200-sxm", "--json").data
    fields = {item["field"]: item for item in found["differences"]}
    assert (found["a"], found["b"]) == ("h100-sxm", "h200-sxm")
    assert fields["accelerator.memory_capacity"] | {"source_a": "", "source_b": ""} == {
        "field": "accelerator.memory_capacity",
        "a": 80,
        "b": 141,
        "unit": "GiB",
        "source_a": "",
        "source_b": "",
    }
    assert (
        fields["accelerator.memory_capacity"]["source_b"]
        == library.accelerator("h200-sxm").memory_capacity.source
    )
    assert (
        "prices.cloud" in fields
        and not {"accelerator.peak_bf16", "system.link_bandwidth", "accelerator.id"} & fields.keys()
    )
    assert "system.link_bandwidth" in run("list", "hardware", "diff", "h100-sxm", "b200-sxm").out
    systems = run("list", "hardware", "diff", "hgx-h100", "pcie-h100", "--json").data["differences"]
    assert {
        "field": "system.topology",
        "a": "switch",
        "b": "pcie",
        "unit": None,
        "source_a": None,
        "source_b": None,
    } in systems
    assert all(item["field"].startswith("system.") for item in systems)
    assert "are the same" in run("list", "hardware", "diff", "h100-sxm", "h100-sxm").out


def test_diff_of_versions(run: Any) -> None:
    """An absent figure is an empty side; the newer one is the default of B."""
    found = run("list", "hardware", "diff", "h100-sxm", "--version", "2026-11", "--json").data
    fields = {item["field"]: (item["a"], item["b"]) for item in found["differences"]}
    assert (found["a"], found["b"]) == ("h100-sxm@2026-11", "h100-sxm")
    assert (
        fields["accelerator.peak_int8"] == (None, 1978.9)
        and "accelerator.peak_bf16" not in fields
        and "system.accelerators" not in fields
    )
    assert (
        run("list", "hardware", "diff", "h100-sxm@2026-11", "--json").data
        == found
        == run("list", "hardware", "diff", "h100-sxm@2026-11", "h100-sxm", "--json").data
    )
    refused(run("list", "hardware", "diff", "h100-sxm"), "missing B")
    refused(run("list", "hardware", "diff", "h100-sxm", "hgx-h100"), "two accelerators or two systems")
    refused(
        run("list", "hardware", "diff", "h100-sxm@2026-11", "--version", "2026-11"), "names a version already"
    )
    refused(run("list", "hardware", "diff", "h100-sxm", "--version", "7"), "version '7' is unknown")
    refused(run("list", "hardware", "diff", "h100-sxm", "h100-smx"), "h100-smx", "did you mean h100-sxm")


# --- one's own ----------------------------------------------------------------------------------------------


def filled(identifier: str = "zeta", **sheet: str) -> str:
    """The skeleton with the figures of a spec sheet typed in."""
    text = skeleton(identifier)
    for field, value in (SHEET | sheet).items():
        entry = (
            f'value: {value}, unit: \\1, source: "Zeta datasheet; page 2; https://zeta.example/z.pdf", '
            'date: 2026-11-02, status: datasheet, confidence: high, note: ""'
        )
        text = re.sub(
            rf"^(?:# )?{field}: {{value: null, unit: (\S+), .*?}}", rf"{field}: {{{entry}}}", text, flags=re.M
        )
    text = re.sub(
        r'(^peak_.*value: null.*note: )""',
        r'\1"no such path: weights are expanded, products run in bf16"',
        text,
        flags=re.M,
    )
    return re.sub(r"^(name|vendor|generation): null", r"\1: zeta", text, flags=re.M)


def test_add_writes_a_skeleton_that_says_what_it_lacks(run: Any, tmp_path: Path) -> None:
    """And never replaces a file."""
    refused(run("list", "hardware", "add", "zeta", "--check"), "zeta.yaml: No such file")
    assert run("list", "hardware", "add", "zeta").status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["zeta.yaml"]
    file, text = tmp_path / "zeta.yaml", (tmp_path / "zeta.yaml").read_text(encoding="utf-8")
    assert all(
        f"\n{'' if field.is_required() else '# '}{name}: " in text
        for name, field in Accelerator.model_fields.items()
    )
    assert all(
        word in text
        for word in ("dense", "2:4 sparsity", "per direction", "GiB", "no native path", "assumed", "medium")
    )
    for again in (("zeta",), ("zeta", "--check")):
        ran = run("list", "hardware", "add", *again)
        assert (
            ran.status == 1
            and "zeta.yaml: not yet complete" in ran.out
            and file.read_text(encoding="utf-8") == text
        )
        for field in ("name", "vendor", "generation", *SHEET):
            assert len(re.findall(rf"^  field {field}: missing", ran.out, re.M)) == 1, (field, ran.out)
        assert (
            "field peak_fp4: missing value (TFLOP/s, dense; or null with a note" in ran.out
            and "idle" not in ran.out
        )
    refused(
        run("estimate", "llama-3.1-8b", "--accelerator", "zeta.yaml", *CASE[2:]),
        "zeta.yaml: field peak_bf16.source",
    )
    file.write_text(filled().replace("unit: GiB", "unit: GB"), encoding="utf-8")
    assert "memory_capacity: expected a figure in GiB, found GB" in run("list", "hardware", "add", "zeta").out
    file.write_text(
        filled().replace('products run in bf16"}', '"}').replace("no such path: weights are expanded, ", ""),
        encoding="utf-8",
    )
    assert run("list", "hardware", "add", "zeta").out.startswith("  field peak_fp4: missing value")
    refused(run("list", "hardware", "add", "h100-sxm"), "is in the library")
    refused(run("list", "hardware", "add", "My Chip"), "expected an id of lower-case letters")
    refused(run("list", "hardware", "add", "eta", "-o", "nowhere"), "there is no folder nowhere")
    (tmp_path / "profiles" / "accelerators").mkdir(parents=True)
    assert (
        run("list", "hardware", "add", "eta").status == 0
        and (tmp_path / "profiles" / "accelerators" / "eta.yaml").is_file()
    )


def test_a_spec_sheet_is_enough_for_an_estimate(run: Any, tmp_path: Path) -> None:
    """The filled-in skeleton estimates a model by the global factors; its figures are those that count."""
    file = tmp_path / "zeta.yaml"
    file.write_text(filled(), encoding="utf-8")
    ran = run("list", "hardware", "add", "zeta")
    assert (
        ran.status == 0
        and "complete; use it with --accelerator zeta.yaml" in ran.out
        and "look again" not in ran.out
    )
    own = ("estimate", "llama-3.1-8b", "--accelerator", "zeta.yaml", *CASE[2:])
    result = run(*own, "--json").data
    assert (result["accelerator"], result["system"], result["feasibility"]) == ("zeta", "zeta-alone", "fits")
    assert (
        result["memory_capacity_bytes"] == 96 * 2**30 and 0.004 < result["tpot_s"] < 0.010
    )  # weights in bf16 take 4 ms
    assert run(*own, "--set", "hardware.price_cloud=2.5", "--json").data["usd_per_hour"] == 2.5
    assert (
        run(*own, "--weights-dtype", "int8", "--json").data["activation_dtype"] == "bf16"
    )  # no int8 path is stated
    file.write_text(filled(memory_bandwidth="8000", peak_fp8="1600"), encoding="utf-8")
    assert run(*own, "--json").data["tpot_s"] < 0.8 * result["tpot_s"]
    assert (
        "look again: field peak_fp8: 1600 TFLOP/s is 4.0 times" in run("list", "hardware", "add", "zeta").out
    )
    optional = {
        name: "1"
        for name, field in Accelerator.model_fields.items()
        if name in Accelerator.UNITS and not field.is_required()
    }
    file.write_text(filled(**optional), encoding="utf-8")
    assert load(Accelerator, file).idle and run("list", "hardware", "add", "zeta").status == 0


def test_a_file_stands_for_an_accelerator_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the base, a variant and decode workers; what is bundled needs the file no more."""
    monkeypatch.chdir(tmp_path)
    Path("zeta.yaml").write_text(
        filled(tdp="700", idle="70").replace("# system: my-server", "system: zeta-box"), encoding="utf-8"
    )
    with pytest.raises(
        InputError, match=r"zeta\.yaml: field system: expected the system in zeta-box\.yaml or "
    ):
        estimate(parse_scenario(SCENARIO | {"accelerator": "zeta.yaml"}, "scenario"))
    box = (PROFILES / "systems" / "hgx-h100.yaml").read_text(encoding="utf-8")
    Path("zeta-box.yaml").write_text(
        box.replace("hgx-h100", "zeta-box").replace("accelerator: h100-sxm", "accelerator: zeta"),
        encoding="utf-8",
    )
    made = estimate(
        parse_scenario(
            SCENARIO
            | {
                "accelerator": "zeta.yaml",
                "variants": [{"accelerator": "h200-sxm", "decode": {"accelerator": "./zeta.yaml"}}],
            },
            "scenario",
        )
    )
    results = [made.results(column) for column in (0, 1)]
    assert [(result["accelerator"], result["feasibility"]) for result in results] == [
        ("zeta", "fits"),
        ("h200-sxm", "fits"),
    ]
    assert (results[0]["system"], results[1]["decode_accelerator"], results[1]["decode_system"]) == (
        "zeta-box",
        "zeta",
        "zeta-box",
    )
    assert not any(chip.id == "zeta" for chip in load_library().accelerators)
    Path("zeta.yaml").unlink()
    bundled = Library.model_validate(made.library.model_dump(mode="json"))
    again = estimate(
        parse_scenario(made.scenario.model_dump(mode="json", exclude_defaults=True), "bundle"),
        library=bundled,
    )
    assert [again.results(column) for column in (0, 1)] == results


def test_an_own_file_never_replaces_a_figure_of_the_library(tmp_path: Path) -> None:
    """The library's own file is fine; another chip under its id is not."""
    file = tmp_path / "mine.yaml"
    scenario = parse_scenario(
        SCENARIO | {"variants": [{"name": "mine", "accelerator": "mine.yaml"}]}, "scenario"
    )
    mine = scenario.model_copy(update={"accelerator": str(file), "variants": ()})
    shutil.copy(PROFILES / "accelerators" / "h100-sxm.yaml", file)
    assert estimate(mine).library == load_library()
    file.write_text(filled("h100-sxm"), encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.yaml: field id: the library has another h100-sxm"):
        estimate(mine)
    with pytest.raises(InputError, match=r"^mine\.yaml: No such file"):
        estimate(scenario)


@pytest.mark.exhaustive
def test_an_accelerator_of_ones_own_is_calibrated_swept_and_chosen(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name, from a library folder; peaks in the ratio of another's have more digits than a cell."""
    folder = tmp_path / "library" / "accelerators"
    folder.mkdir(parents=True)
    monkeypatch.setenv("MANTILE_LIBRARY", str(folder.parent))
    figures = ("--bf16", "497", "--bandwidth", "2000", "--memory", "80")
    assert (
        run("list", "hardware", "add", "mychip", "--like", "h100-sxm", *figures, "-o", str(folder)).status
        == 0
    )
    Path("runs.csv").write_text(
        "model,accelerator,framework,tp,concurrency,input_tokens,output_tokens,tpot_s\n"
        "llama-3.1-8b,mychip,vllm,1,1,1000,100,0.02\n",
        encoding="utf-8",
    )
    load = ("llama-3.1-8b", "--isl", "1000", "--osl", "100")
    chip, profile = ("--gpu", "mychip"), ("--profile", "calibrated/mychip--vllm@1.yaml")

    def tpot(*words: str) -> float:
        return float(
            json.loads(run("estimate", *load, *chip, "--concurrency", "1", *words, "--json").out)["tpot_s"]
        )

    before = tpot()
    fitted = run("calibrate", "runs.csv", "--json")
    assert fitted.status == 0 and Path("calibrated/mychip--vllm@1.yaml").is_file()
    assert before < 0.75 * tpot(*profile) < tpot(*profile) < 0.02
    assert "-14" in run("reconcile", "runs.csv", *profile).out.replace("\u2212", "-")
    swept = run("sweep", *load, *chip, "--over", "concurrency=1,2", *profile, "--format", "csv")
    assert float(swept.out.splitlines()[1].split(",")[2]) == pytest.approx(1e3 * tpot(*profile), rel=1e-3)
    both = run("sweep", *load, "--concurrency", "1", "--over", "gpu=mychip,h100-sxm")
    assert "mychip" in both.out and "h100-sxm" in both.out
    for words in (("size", "--rps", "1"), ("optimize", "--concurrency", "4", "--objective", "tpot")):
        listed = run(words[0], *load, "--gpu", "mychip,h100-sxm", *words[1:])
        assert listed.status == 0 and "mychip" in listed.out, words
    refused(
        run("estimate", *load, "--gpu", "h100-sxm", "--concurrency", "1", *profile),
        "applies to nothing: it holds for mychip with vllm, found h100-sxm with vllm",
    )
    assert run("build", *load, *chip, "--concurrency", "1", *profile, "-o", "run.xlsx").status == 0
    assert run("verify", "run.xlsx").status == 0
