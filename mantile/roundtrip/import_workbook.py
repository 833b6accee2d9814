"""An edited workbook back to what builds it anew: a scenario, or a bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mantile.equations.sweep import CHART_METRIC
from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.evaluate import agree
from mantile.library.architecture import Model
from mantile.library.dump import dump_scenario
from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.library.models import load_model
from mantile.library.scenario import Scenario
from mantile.roundtrip.edits import edited
from mantile.roundtrip.since import Before, since
from mantile.roundtrip.versions import WORDS, version
from mantile.workbook.book import FIRST, SHARED
from mantile.workbook.bundle import Bundle, write_bundle
from mantile.workbook.cell_diff import diff_cells, require_own_formulas
from mantile.workbook.read import File, open_file
from mantile.workbook.sheets.frame import cut

_EXACT = 1e-12  # relative: what the same inputs give on another library


@dataclass(frozen=True)
class Imported:
    """What a workbook stands for after somebody edited it.

    Args:
        path: the workbook.
        estimate: of its scenario and library, edits included.
        changes: the edited inputs: `id`, `cell`, `scenario`, `from` and `to`, in the unit of the cell.
        added: names of the scenarios in columns that were added, and those typed over ready columns.
        left_out: texts that no scenario holds, such as sign-off lines and notes, and what was typed into
            ready columns without a name: `cell` and `found`. They stay in the workbook.
        made_by: the program that made the workbook, with its version.
        unknown: ids of the workbook beside which a number stands and that this version does not have.
        lacking: inputs of this version that the workbook does not have: they are as by default.
        other_version: what cannot be told of a workbook that another version made; None for one of this.
    """

    path: Path
    estimate: Estimate
    changes: tuple[dict[str, Any], ...]
    added: tuple[str, ...]
    left_out: tuple[dict[str, Any], ...]
    made_by: str
    unknown: tuple[str, ...]
    lacking: tuple[str, ...]
    other_version: str | None

    @property
    def scenario(self) -> Scenario:
        """The scenario, edits included."""
        return self.estimate.scenario

    def write(self, path: str | Path, bundle: bool = False, sign: Path | None = None) -> Path:
        """Write what `mantile build` takes.

        A scenario as .yaml, or with `bundle` model and library as well, as .json or .yaml; with `sign`, the
        file of a private key, signed.

        Raises:
            InputError: if a scenario alone would not give the numbers of the workbook, saying why, or the
                file cannot be written. Nothing half-written stays behind.
        """
        path = Path(path)
        if bundle:
            made = Bundle.of(self.estimate)
            return write_bundle(made if sign is None else made.signed(sign), path)
        if path.suffix.lower() not in (".yaml", ".yml"):
            raise InputError(
                f"{path}: expected a file name that ends in .yaml, or --bundle: only a bundle may be .json"
            )
        self._require_enough(path)
        with replacing(path) as temporary:
            temporary.write_text(
                dump_scenario(self.scenario.model_dump(mode="json", exclude_defaults=True)), encoding="utf-8"
            )
        return path

    def _require_enough(self, path: Path) -> None:
        """Refuse to write a scenario that gives other numbers with the models and profiles installed here."""
        try:
            rebuilt = estimate(self.scenario, name=str(self.path))
        except InputError as error:
            raise InputError(
                f"{error}\n{path}: a scenario does not hold what the workbook was made from: expected "
                "--bundle"
            ) from error
        if (rebuilt.model, rebuilt.library) == (self.estimate.model, self.estimate.library):
            return
        for number, column in enumerate(self.estimate.columns):
            wrong = _first_difference(self.estimate, rebuilt, number)
            if wrong is not None:
                raise InputError(
                    f"{path}: the models and profiles installed here are not those of {self.path}: {wrong} "
                    f"of scenario {column.name} would be another: expected --bundle"
                    + _other_version(self.estimate.model, rebuilt.model)
                )

    def to_dict(self) -> dict[str, Any]:
        """What `mantile import --json` prints."""
        return {
            "workbook": str(self.path),
            "changes": list(self.changes),
            "added": list(self.added),
            "left_out": list(self.left_out),
            "made_by": self.made_by,
            "unknown": list(self.unknown),
            "lacking": list(self.lacking),
            "other_version": self.other_version,
        }


def import_workbook(path: str | Path) -> Imported:
    """Read a workbook as Excel, LibreOffice or openpyxl saved it.

    Every input, dropdown, override, measured value and added scenario column is read; of a workbook that
    another version made by their ids, and nothing else.

    Raises:
        InputError: naming file, cell and id, for what cannot be carried over: an edited formula, a constant
            typed over one, a value that its input cannot have; or if the file is no workbook of ours.

    Example:
        edited = mantile.import_workbook("run.xlsx")
        edited.changes, edited.estimate.tpot
    """
    file = open_file(Path(path))
    now = edited(file)
    texts = diff_cells(file, len(now.added))
    require_own_formulas(file, [*texts.formulas, *texts.overwritten])
    then = file.book.asked
    scenario = now.scenario
    if now.changes:
        what = ", ".join(dict.fromkeys(str(change["id"]) for change in now.changes))
        why = cut(f"edited in {file.path.name}: {what}", WORDS)
        scenario = scenario.model_copy(
            update={"versions": (*then.scenario.versions, version(then)), "why": why}
        )
    imported = then.again(scenario, then.library, str(path))
    if now.changes or now.added:
        changed = since(Before(file.path.name, then, file.book.bundle), imported)
        imported = replace(imported, scenario=scenario.model_copy(update={"since": changed}))
    else:
        imported = replace(imported, made_on=then.made_on)  # nothing was edited: it is the same version
    kept = [item for item in (*texts.labels, *texts.notes) if item["cell"] not in now.reasons]
    kept += now.left
    kept += [change for change in now.changes if change["id"] == CHART_METRIC]
    return Imported(
        path=Path(path),
        estimate=imported,
        changes=tuple(map(_change, now.changes)),
        added=(*now.named, *now.added),
        left_out=tuple({"cell": item["cell"], "found": item["found"]} for item in kept),
        made_by=file.book.bundle.generator,
        unknown=tuple(sorted(_unknown(file))),
        lacking=tuple(
            sorted({name for (name, _), place in file.book.input_cells.items() if file.lacks(place)})
        ),
        other_version=file.untold("inputs read"),
    )


def _unknown(file: File) -> Iterator[str]:
    """Ids of the file that this version does not have, of rows in which a number stands."""
    known = file.book.estimate.equations.figures  # those of tables have no row of their own
    for identifier, (sheet, row) in file.places.unknown.items():
        contents = (file.contents[sheet].get((row, column)) for column in (SHARED, FIRST))
        if identifier not in known and any(isinstance(content, int | float) for content in contents):
            yield identifier


def _change(edit: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": edit["id"],
        "cell": edit["cell"],
        "scenario": edit["scenario"],
        "from": edit["generated"],
        "to": edit["found"],
    }


def _other_version(then: Model, now: Model) -> str:
    """How a scenario could ask for the model of a workbook, where another version of it is the current one.

    Empty where it is not, or where that version is not here or is another than that of the workbook.
    """
    if then.id != now.id or not then.version or then.version == now.version:
        return ""
    try:
        pinned = load_model(then.pin)
    except InputError:
        return ""
    if pinned.architecture != then.architecture:
        return ""
    return f", or a scenario with `model: {then.pin}`: that is the model that the workbook was made from"


def _first_difference(left: Estimate, right: Estimate, column: int) -> str | None:
    """The id of the first figure that two estimates of one scenario have with different values.

    None if there is none.
    """
    mine, theirs = left.values(column), right.values(column)
    for figure in left.equations.quantities():
        other = right.equations.figures.get(figure.id)
        if other is None or not agree(mine[figure], theirs[other], _EXACT):
            return figure.id
    return None
