"""`mantile optimize --device A --device B`: what each of several machines shall do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from mantile.library.errors import InputError


def assign(what: str, flags: Mapping[str, Any], objective: str, output: Path | None, as_json: bool) -> None:
    """Print the ways to use machines, the best first; write the scenario or the workbook of the best."""
    from mantile.cli.asked import asked, own_file, own_model
    from mantile.cli.devices import read_devices
    from mantile.cli.flags import NO_DOCUMENT, document_of
    from mantile.cli.output.optimize import print_assignments
    from mantile.cli.output.tables import print_json, working
    from mantile.library.scenario import merge_fields
    from mantile.search.devices import assignments
    from mantile.search.question import workload_of

    machines = read_devices(flags["device"], fewest=1)
    for machine in machines:
        machine["accelerator"] = own_file(machine["accelerator"])
    data, _ = document_of(what)
    name = "command line" if data is NO_DOCUMENT else what
    if data is not NO_DOCUMENT and not isinstance(data, dict):
        raise InputError(f"{what}: expected the fields of a scenario")
    if output is not None and output.suffix == ".csv":
        raise InputError(f"{output}: with --device expected a file name that ends in .xlsx or .yaml")
    others = {key: value for key, value in flags.items() if key != "device"}
    stated = asked(None if data is NO_DOCUMENT else data, others)
    fields = merge_fields(
        {"model": own_model(what)} if data is NO_DOCUMENT else workload_of(data, name), stated, name
    )
    auto = next((key for key, value in fields.items() if value == "auto"), None)
    if auto is not None:
        raise InputError(
            f"--device: what machines do is looked for, nothing else: expected a {auto.replace('_', ' ')} in "
            "place of auto"
        )
    with working("looking at what each machine may do"):
        found = assignments(fields, machines, "e2e" if objective == "cost" else objective, name)
    best = found[0] if not found[0].refused else None
    if best is not None and output is not None:
        _write(best, output)
    if as_json:
        print_json(_as_json(found))
    else:
        print_assignments(found, output)
    if best is None:
        raise typer.Exit(1)


def _write(best: Any, path: Path) -> None:
    from mantile.library.dump import dump_scenario
    from mantile.library.files import replacing

    if path.suffix == ".xlsx":
        from mantile.workbook.write import build_workbook

        build_workbook(best.estimate, path)
        return
    fields = best.scenario.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    with replacing(path) as temporary:
        temporary.write_text(dump_scenario(fields), encoding="utf-8")


def _as_json(found: Any) -> dict[str, Any]:
    """The ways to use machines under the keys that a choice of plans has."""
    listed = [
        {
            "rank": None if one.refused else rank,
            "name": one.name,
            "plan": None
            if one.scenario is None
            else one.scenario.model_dump(mode="json", exclude_none=True, exclude_defaults=True),
            "metrics": dict(one.results),
            "lost_because": one.refused or (one.because if rank > 1 else None),
        }
        for rank, one in enumerate(found, start=1)
    ]
    best = None if found[0].refused else listed[0] | {"reason": found[0].because}
    return {"winner": best, "candidates": listed, "tried": len(found)}
