"""The fields of a scenario: one table from which schema, flags, inputs and the reference page follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import make_documents
import pytest

from mantile.cli import flags as cli_flags
from mantile.equations import constant
from mantile.equations.inputs import Workload, scenario_input
from mantile.graph.quantity import LateDefault
from mantile.library.documents import Strict
from mantile.library.errors import InputError
from mantile.library.fields import ScenarioField, read_fields
from mantile.library.profiles import Library
from mantile.library.scenario import Case, Scenario, merge_fields, parse_scenario
from mantile.library.scenario_fields import (
    FORMER_IDS,
    INPUT_NAMES,
    SCENARIO_FIELDS,
    WORKER_FIELDS,
    Deployment,
    Inputs,
)

BASE = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 4,
}
SPELLINGS = [
    (name, spelling)
    for name, declared in SCENARIO_FIELDS.items()
    for spelling in (name, *declared.aliases, *declared.former)
]


def another(declared: ScenarioField) -> str | int | float:
    """A value that the field may have and that is not its default."""
    if declared.choices:
        return declared.choices[-1]
    if declared.listed is not None:
        return {"accelerators": "b200-sxm", "systems": "dgx-h100", "frameworks": "sglang"}.get(
            declared.listed, "fp8"
        )
    assert declared.least is not None and declared.most is not None
    middle = (declared.least + declared.most) / 2
    return int(middle) if declared.kind is int else middle


@pytest.fixture(scope="module")
def base() -> Scenario:
    return parse_scenario({**BASE, "variants": [{"tp": 2}]}, "plan.yaml")


@pytest.fixture(scope="module")
def parse() -> Callable[..., dict[str, Any]]:
    """Flags to the fields that a command gets."""
    seen: list[dict[str, Any]] = []

    @cli_flags.with_flags
    def command(flags: dict[str, Any]) -> None:
        seen.append(flags)

    listed = type("Listed", (), {"name": "command", "callback": staticmethod(command)})
    parser = cli_flags.flagged(listed)

    def parsed(*arguments: object) -> dict[str, Any]:
        parser.main([str(argument) for argument in arguments], standalone_mode=False)
        return seen.pop()

    return parsed


@pytest.fixture(scope="module")
def page() -> str:
    """The reference page, which test_documents.py compares with the table as well."""
    return make_documents.document("workbooks/scenario.md")


# --- one table ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIO_FIELDS)
def test_schema_flag_input_and_page_follow_from_the_table(
    name: str, library: Library, parse: Callable[..., dict[str, Any]], page: str
) -> None:
    declared = SCENARIO_FIELDS[name]
    schema = Scenario.model_json_schema()["properties"][name]
    value_schema = next(part for part in schema["anyOf"] if part["type"] != "null")
    entry = scenario_input(declared, library)

    assert schema["title"] == entry.label == declared.label and schema["unit"] == entry.unit == declared.unit
    assert schema["description"] == entry.note == declared.meaning
    assert value_schema["type"] == {int: "integer", float: "number", str: "string"}[declared.kind]
    assert value_schema.get("minimum") == entry.minimum == declared.least
    assert value_schema.get("maximum") == entry.maximum == declared.most
    assert tuple(value_schema.get("enum", ())) == declared.choices
    assert entry.integer == (declared.kind is int) and isinstance(entry.value, declared.kind | int)
    assert bool(entry.choices) == (declared.kind is str)
    if declared.default is not None:
        assert entry.value == declared.default
        assert declared.kind is str or not entry.outside(entry.value)  # type: ignore[arg-type]
    assert entry.value in entry.choices or not entry.choices

    value = another(declared)
    assert parse(cli_flags.field_flag(name), value) == {name: str(value) if declared.is_day else value}
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` | `--"))
    for part in (
        declared.label,
        declared.meaning,
        declared.default_words,
        *declared.aliases,
        *declared.former,
    ):
        assert part in row


def test_an_input_is_asked_for_by_the_name_of_a_field() -> None:
    """One that a model has no use for is None; what is no field is refused."""
    assert all(getattr(Workload({}), name) is None for name in INPUT_NAMES)
    with pytest.raises(AttributeError, match="no field of scenarios is called ranks"):
        assert Workload({}).ranks


def test_the_default_of_an_input_is_stated_once() -> None:
    """It is made after the input, of others that may follow from it."""
    default = LateDefault()
    assert default() is None
    default.set(constant.BITS_PER_BYTE)
    assert default() is constant.BITS_PER_BYTE
    with pytest.raises(ValueError, match="already"):
        default.set(constant.BITS_PER_BYTE)


def test_what_is_no_field_of_the_table_holds_more_than_a_value() -> None:
    assert set(Case.model_fields) - set(SCENARIO_FIELDS) == {
        "name",
        "decode",
        "devices",
        "draft_model",
        "acceptance_by_position",
        "overrides",
        "without",
        "measured",
    }


def test_a_field_without_label_and_meaning_is_refused() -> None:
    class Added(Inputs):
        colour: str | None = None

    with pytest.raises(TypeError, match=r"Added\.colour: declare it with field\(\)"):
        tuple(read_fields(Added))


def test_no_name_stands_for_two_fields() -> None:
    spellings = [spelling for _, spelling in SPELLINGS]
    assert len(spellings) == len(set(spellings))
    assert not set(spellings) & (set(Scenario.model_fields) - set(SCENARIO_FIELDS))


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "spelling"), SPELLINGS)
def test_every_name_of_a_field_reaches_it_from_file_flag_and_python(
    name: str, spelling: str, base: Scenario, parse: Callable[..., dict[str, Any]]
) -> None:
    value = another(SCENARIO_FIELDS[name])
    expected = parse_scenario({**BASE, name: value}, "plan.yaml")
    stated = {key: other for key, other in BASE.items() if key != name}
    for written in (spelling, spelling.replace("_", "-"), spelling.upper()):
        assert parse_scenario({**stated, written: value}, "plan.yaml") == expected
    assert base.replace(**{spelling: value}, variants=()) == expected
    flags = parse(f"--{spelling.replace('_', '-')}", value)
    assert parse_scenario(merge_fields(BASE, flags, "flags"), "flags") == expected


@pytest.mark.parametrize("name", WORKER_FIELDS)
def test_workers_have_a_flag_for_each_field_of_a_deployment(
    name: str, base: Scenario, parse: Callable[..., dict[str, Any]]
) -> None:
    declared = SCENARIO_FIELDS[name]
    value = another(declared)
    for spelling in (name, *declared.aliases, *(("workers",) if name == "dp" else ())):
        for prefix in ("decode_", "prefill_"):
            flag = f"--{prefix}{spelling}".replace("_", "-")
            assert parse(flag, value) == {f"{prefix}{name}": value}, flag
        assert base.replace(**{f"decode_{spelling}": value}).decode == Deployment(**{name: value})


def test_former_ids_lead_to_those_of_today() -> None:
    assert FORMER_IDS == {
        "inputs.release": "inputs.engine_release",
        "inputs.waves": "inputs.prompts_per_slot",
        "inputs.batch_wait": "inputs.batch_wait_steps",
        "inputs.length_spread": "inputs.length_range_ratio",
        "inputs.long_outputs": "inputs.p95_output_ratio",
    }
    data = {**BASE, "sweep": {"waves": [0, 10]}, "sensitivity": {"inputs.long_outputs": 20}}
    scenario = parse_scenario(data, "plan.yaml")
    assert scenario.sweep == {"prompts_per_slot": (0, 10)} and scenario.sensitivity == {
        "inputs.p95_output_ratio": 20
    }


def test_old_and_new_spelling_together_are_refused(parse: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="field prompts_per_slot: given twice, once as waves"):
        parse_scenario({**BASE, "prompts_per_slot": 1, "waves": 2}, "plan.yaml")
    with pytest.raises(InputError, match="--prompts-per-slot: given twice"):
        parse("--prompts-per-slot", 1, "--waves", 2)


# --- other values of some fields ----------------------------------------------------------------------------


def test_replace_is_checked_like_a_file_and_keeps_variants(base: Scenario) -> None:
    assert base.replace(tp=4).tp == base.replace(tp_size=4).tp == 4
    assert base.replace(tp=4).variants == base.variants and base.tp == 8
    assert base.replace(tp=None).tp is None
    assert base.replace(variants=()).variants == ()


def test_replace_takes_fields_of_workers(base: Scenario) -> None:
    assert base.replace(decode_tp=4, decode_workers=2).decode == Deployment(tp=4, dp=2)
    apart = base.replace(decode=Deployment(tp=4, cp=2))
    assert apart.replace(decode_tp_size=8).decode == Deployment(tp=8, cp=2)
    assert apart.replace(decode=None).decode is None


def test_prefill_workers_alone_have_what_decode_workers_keep() -> None:
    """Also where a scenario file says what that is."""
    file = {**BASE, "ISL": 5, "decode": {"cp": 2}}
    file.pop("input_tokens")
    merged = parse_scenario(merge_fields(file, {"prefill_tp": 2, "prefill_pp": 4, "decode_pp": 3}, "x"), "x")
    assert (merged.tp, merged.pp, merged.decode) == (2, 4, Deployment(tp=8, pp=3, cp=2))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tp": -4}, r"field tp: .*at least 1 \(found -4\)"),
        ({"concurency": 4}, r"field concurency: there is no such field; did you mean concurrency"),
        ({"decode_tpp": 4}, r"field decode\.tpp: there is no such field; did you mean .*tp"),
        ({"variants": [{"out_tokens": 4}]}, r"field variants\.0\.out_tokens: .*did you mean .*output_tokens"),
        ({"accelerator": None}, "accelerator is missing"),
        ({"isl": 1, "input_len": 2}, "field input_tokens: given twice, once as input_len"),
    ],
)
def test_replace_refuses_what_a_file_may_not_hold(
    base: Scenario, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=rf"^scenario: {message}"):
        base.replace(**fields)


def test_names_that_come_near_are_those_of_the_inner_document() -> None:
    assert "tp_size" in Deployment.field_names() and "isl" not in Deployment.field_names()
    assert Strict.field_names() == []
