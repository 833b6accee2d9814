"""What a workbook is: from what it was made and when, whether it verifies, what was edited, what it says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mantile.estimates.estimate import Estimate
from mantile.library.errors import InputError
from mantile.roundtrip.edits import edited
from mantile.verification.report import Report
from mantile.verification.verify import verify_file
from mantile.workbook.read import File, open_file


@dataclass(frozen=True)
class About:
    """What a workbook is.

    Args:
        path: the workbook.
        estimate: of the inputs in its cells; of those as generated where `wrong` says why not.
        made_on: the day on which it was made, or as the scenario dates it; None if neither says.
        made_by: the program that made it, with its version.
        digest: SHA-256 of what it was made from.
        report: what verification found; None where it could not be done.
        wrong: why an input cell cannot be read or stand for anything; empty if all can.
    """

    path: Path
    estimate: Estimate
    made_on: str | None
    made_by: str
    digest: str
    report: Report | None
    wrong: str

    @property
    def ok(self) -> bool:
        """Whether it verifies, and every input cell holds what it may."""
        return not self.wrong and self.report is not None and self.report.ok

    def results(self) -> list[dict[str, Any]]:
        """Of each scenario what `mantile estimate --json` prints of it."""
        return [self.estimate.results(column) for column in range(len(self.estimate.columns))]

    def to_dict(self) -> dict[str, Any]:
        """What `mantile verify --about --json` prints."""
        found = None if self.report is None else self.report.to_dict()
        return {
            "workbook": str(self.path),
            "title": self.estimate.title,
            "made_on": self.made_on,
            "made_by": self.made_by,
            "digest": self.digest,
            "ok": self.ok,
            "wrong": self.wrong or None,
            "other_version": found and found["other_version"],
            "verified": found and {key: found[key] for key in ("engine", "formulas", "compared")},
            "mismatches": [] if found is None else found["mismatches"],
            "edited": None if found is None else found["edited"],
            "signatures": [] if self.report is None else self.report.signed(),
            "scenarios": None if self.wrong else self.results(),
        }


def about(path: str | Path) -> About:
    """Say what a workbook is. Its results are worked out from its inputs by the formulas of this version; one
    in which formulas were edited, or may have been, does not verify.

    Raises:
        InputError: if the file is not a Mantile workbook.

    Example:
        about("run.xlsx").ok, about("run.xlsx").estimate.tpot
    """
    file = open_file(Path(path))
    bundle = file.book.bundle
    estimate, report, wrong = file.book.estimate, None, ""
    try:
        report = verify_file(file)
        estimate = _now(file)
    except InputError as error:
        wrong = str(error)
    return About(
        path=Path(path),
        estimate=estimate,
        made_on=file.book.estimate.scenario.date or bundle.made_on,
        made_by=bundle.generator,
        digest=bundle.digest,
        report=report,
        wrong=wrong,
    )


def _now(file: File) -> Estimate:
    """The estimate that the inputs in the cells stand for."""
    now = edited(file)
    return file.book.estimate.again(now.scenario, file.book.estimate.library, str(file.path))
