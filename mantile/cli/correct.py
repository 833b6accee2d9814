"""The multipliers that calibrate fits to measured runs where it is asked for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mantile.cli.asked import with_own
from mantile.library.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


def write_correction(
    path: Path,
    conditions: list[str],
    profiles: tuple[str, ...],
    output: Path,
    keys: Mapping[bytes, str] | None,
    as_json: bool,
) -> None:
    """Write multipliers of results, for `correction` of a scenario; none where no metric gets better.

    Args:
        path, conditions: of the measured runs.
        keys: one of which has to have signed each record.
    """
    if output.suffix not in (".yaml", ".yml") or not output.parent.is_dir():
        raise InputError(f"{output}: expected a file name that ends in .yaml, in a folder that there is")
    if output.exists():
        raise InputError(f"{output}: there is such a file already; it is never overwritten: expected another")
    from mantile.cli.output.correct import print_learned
    from mantile.cli.output.runs import progress
    from mantile.cli.output.tables import print_json, working
    from mantile.library.dump import dump_yaml
    from mantile.library.files import replacing
    from mantile.library.profiles import load_library
    from mantile.measured.correct import learn
    from mantile.measured.load import load_measurements
    from mantile.measured.select import select_runs

    with working(f"reading {path.name}"):
        runs = select_runs(load_measurements(path, keys).runs, conditions, str(path))
        library = with_own(load_library(profiles), (run.accelerator for run in runs))
    with progress("fitting", None) as step:
        learned = learn(runs, library, output.stem[:60], path.name, progress=step)
    if learned.correction is not None:
        data = learned.correction.model_dump(mode="json", exclude_none=True)
        with replacing(output, overwrite=False) as temporary:
            temporary.write_text(dump_yaml(data), encoding="utf-8")
    written = None if learned.correction is None else output
    if as_json:
        print_json(learned.to_dict() | {"file": None if written is None else str(written)})
    else:
        print_learned(learned, written)
    if written is None:
        raise typer.Exit(1)
