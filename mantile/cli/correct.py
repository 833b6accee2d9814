"""The multipliers that calibrate fits to measured runs where it is asked for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mantile.library.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mantile.library.profiles import Library
    from mantile.measured.runs import Run


def require_new(output: Path) -> None:
    """Refuse a name that no new file of multipliers can have, before anything is worked out."""
    if output.suffix not in (".yaml", ".yml") or not output.parent.is_dir():
        raise InputError(f"{output}: expected a file name that ends in .yaml, in a folder that there is")
    if output.exists():
        raise InputError(f"{output}: there is such a file already; it is never overwritten: expected another")


def write_correction(runs: Sequence[Run], library: Library, source: str, output: Path, as_json: bool) -> None:
    """Write multipliers of results, for `correction` of a scenario; none where no metric gets better.

    Args:
        source: what the runs are called.
    """
    from mantile.cli.output.correct import print_learned
    from mantile.cli.output.runs import progress
    from mantile.cli.output.tables import print_json
    from mantile.library.dump import dump_yaml
    from mantile.library.files import replacing
    from mantile.measured.correct import learn

    with progress("fitting", None) as step:
        learned = learn(runs, library, output.stem[:60], source, progress=step)
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
