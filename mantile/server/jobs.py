"""What worker processes do: functions of plain objects and of files in the server's temporary folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from mantile.library.errors import InputError
from mantile.server.asked import EstimateAsked
from mantile.server.documents import NAME, by_ids, estimate_of, fields_of, model_of, scenario_of
from mantile.server.progress import report

BLOCK = 2_000  # points of a sweep that are told at a time


def estimated(body: Mapping[str, Any], hub: bool, *folders: Path) -> dict[str, Any]:
    """The answer of POST /v1/estimate, plans looked for."""
    from mantile.server.estimates import answer

    return answer(EstimateAsked.model_validate(body), hub, *folders)


def all_estimated(bodies: Sequence[Mapping[str, Any]], hub: bool, *folders: Path) -> list[dict[str, Any]]:
    """The answer of POST /v1/estimate to each body, or its problem."""
    from mantile.server.problems import of_input

    answers = []
    for place, body in enumerate(bodies):
        report(place, len(bodies), "estimates")
        try:
            answers.append(estimated(body, hub, *folders))
        except InputError as error:
            answers.append(json.loads(bytes(of_input(error).body)))
    return answers


def built(scenario: Mapping[str, Any], hub: bool, path: str) -> str:
    """Write the workbook of a scenario; what it is called."""
    from mantile.workbook.write import build_workbook

    made = estimate_of(scenario, hub)
    build_workbook(made, path)
    return made.title


def verified(path: str, name: str) -> dict[str, Any]:
    """What `mantile verify --json` says of a workbook."""
    from mantile.verification.verify import verify

    with _called(path, name):
        return verify(path).to_dict()


def imported(path: str, name: str) -> dict[str, Any]:
    """What `mantile import --json` says of a workbook, and the scenario with its edits."""
    from mantile.roundtrip.import_workbook import import_workbook

    with _called(path, name):
        found = import_workbook(path)
        scenario = found.scenario.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        return found.to_dict() | {
            "workbook": name,
            "scenario": scenario,
            "estimate": found.estimate.to_dict(),
        }


def compared(paths: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """What `mantile compare --json` says of two workbooks."""
    from mantile.roundtrip.compare import compare

    with _called(paths[0], names[0]), _called(paths[1], names[1]):
        return compare(*paths).to_dict() | {"a": names[0], "b": names[1]}


class _called:
    """Errors name a file as who sent it calls it, not where it lies here."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InputError) and self.path in str(error):
            raise InputError(str(error).replace(self.path, self.name)) from None


def optimized(body: Mapping[str, Any], hub: bool) -> dict[str, Any]:
    """What `mantile optimize --json` says."""
    from mantile.search.objective import limit, read_objective
    from mantile.search.optimize import solve
    from mantile.search.question import PLANNED, ask

    fields, model = fields_of(body["scenario"], hub)
    over = fields_over(body["over"], hub)
    fields = {key: value for key, value in fields.items() if value != "auto" and key not in over}
    listed = {key: fields.pop(key) for key in PLANNED if isinstance(fields.get(key), list)}
    question = ask(
        {key: value for key, value in fields.items() if key not in ("variants", "decision", "decode")},
        read_objective(body["objective"], "field objective"),
        [limit(name, bound, "field limits") for name, bound in body["limits"].items()],
        body["gpus_max"],
        over | listed,
        (),
        body["search"],
        model,
        None,
        NAME,
        body["plans"],
        body["host_memory"],
        body["default_limits"],
    )
    steps = count(1)
    return solve(question, lambda what: report(next(steps), None, what)).to_dict()


def fields_over(over: Mapping[str, Any], hub: bool) -> dict[str, list[Any]]:
    """Values to choose from, by our names of fields; ids only."""
    from mantile.library.scenario_fields import field_name

    return {field_name(name): values for name, values in by_ids(over, hub, "over").items()}


@lru_cache(1)
def _grid(text: str, hub: bool, most: int) -> Any:
    """The points of a sweep, kept from one part to the next."""
    from mantile.estimates.sweep import grid_of, question_of

    body = json.loads(text)
    over = fields_over(body["over"], hub)
    fields = {
        **body["scenario"],
        **{name: values[0] for name, values in over.items() if "." not in name and values},
    }
    scenario, model = scenario_of(fields, hub)
    return grid_of(question_of(scenario, over, model, None, NAME, most))


def swept(text: str, hub: bool, most: int, part: int) -> tuple[int, int, bytes]:
    """A part of a sweep.

    Args:
        text: the body of the request as JSON.
        most: points that there may be.
        part: its number from 0.

    Returns: points in all, parts, and the rows of this one as text.
    """
    from mantile.estimates.sweep import possible
    from mantile.estimates.tables import csv_text
    from mantile.library.documents import json_data

    points, body = _grid(text, hub, most), json.loads(text)
    blocks = points.blocks(BLOCK)
    rows = []
    for table in points.part(blocks[part]).tables(threads=1):
        kept = table[possible(table)] if body["feasible"] else table
        if body["format"] == "csv":
            rows.append(csv_text(kept, head=part == 0))
        else:
            rows += [json.dumps(json_data(row), allow_nan=False) + "\n" for row in kept.to_dict("records")]
    return len(points), len(blocks), "".join(rows).encode("utf-8", "replace")


def described(text: str, name: str, tokens: int | None, tensors: bool) -> dict[str, Any]:
    """What `mantile list models ir --json` says of a config.json."""
    from mantile.ir.build import build_ir
    from mantile.ir.counts import describe
    from mantile.library.architecture import Model
    from mantile.library.documents import parse_json
    from mantile.library.huggingface import parse_config

    architecture = parse_config(parse_json(text, name), name)
    model = Model(id="model", name="model", source=f"{name} of a request", architecture=architecture)
    return describe(build_ir(model), tokens, tensors)


def checked_run(record: Mapping[str, Any], hub: bool) -> dict[str, Any]:
    """A measured run as it is stored: with our ids."""
    from mantile.library.documents import validate
    from mantile.measured.dialects import FLAT, flat
    from mantile.measured.rows import Row
    from mantile.measured.runs import Run

    if set(record) >= FLAT:
        (run,) = flat(Row(dict(record)), "run")
    else:
        run = validate(Run, by_ids(record, hub, "run"), "run")
    return run.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def calibrated(records: Sequence[Mapping[str, Any]], hub: bool) -> dict[str, Any]:
    """What the factors of profiles would change to with these runs; nothing is written.

    With the key `reason` alone where none of the runs can be compared.
    """
    from mantile.library.documents import validate
    from mantile.measured.calibrate import calibrate
    from mantile.measured.match import match_runs
    from mantile.measured.runs import Run

    runs = [validate(Run, dict(record), str(record.get("id", "run"))) for record in records]
    matched = match_runs(runs, models={run.model: model_of(run.model, hub) for run in runs}).possible()
    if not matched.runs:
        reasons = "; ".join(f"{one.id}: {one.reason}" for one in matched.rejected)
        return {"reason": f"no prediction to compare with: {reasons}"}
    return calibrate(matched, source="runs sent to the server").to_dict()
