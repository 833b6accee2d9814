"""What verification found in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mantile.equations.signature import HOLDS, VARIED
from mantile.library.brief import Brief
from mantile.library.signing import Verdict
from mantile.verification.severity import ANSWER, COSMETIC, SHOWN


@dataclass
class SheetReport:
    """What was found on one sheet."""

    sheet: str
    cells: int = 0
    formulas: int = 0
    compared: int = 0
    max_relative_error: float = 0.0
    edited_inputs: int = 0
    edited_formulas: int = 0
    overwritten: int = 0
    mismatches: int = 0


@dataclass(repr=False)
class Report(Brief):
    """What was found in a file.

    Args:
        model: that the file was made from, as id@version where its entry has one.
        digest: of the bundle: SHA-256 of what the file says it was made from.
        protected: whether the bundle states its digest; those of format 1 do not, and may have been changed.
        signature: what the signature of the bundle is worth.
        mismatches: the engine against ours, and the stored values against ours.
        names: defined names that are not as generated.
        visibility: sheets that are not as generated.
        signatures: who signed: `role`, `name`, `date`, `digest`, `remarks`, `status`, `cell`.
        shown: what else is shown otherwise, each with sheet, cell, kind and severity.
        labels: by cell that is named, the label of its row and the scenario of its column; not in JSON.
        made_by: the other version that made it, None for this one.
        other_version: what cannot be told of a file of another version that does not say what it was made
            with; None else.
    """

    path: str
    engine: str
    model: str = ""
    digest: str = ""
    protected: bool = True
    signature: Verdict = field(default_factory=lambda: Verdict("unsigned"))
    sheets: list[dict[str, Any]] = field(default_factory=list)
    mismatches: list[dict[str, Any]] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    formulas: list[dict[str, Any]] = field(default_factory=list)
    overwritten: list[dict[str, Any]] = field(default_factory=list)
    names: list[dict[str, Any]] = field(default_factory=list)
    visibility: list[dict[str, Any]] = field(default_factory=list)
    shown: list[dict[str, Any]] = field(default_factory=list)
    signatures: list[dict[str, Any]] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    stored_values: bool = True
    made_by: str | None = None
    other_version: str | None = None

    @property
    def ok(self) -> bool:
        """Edited inputs are fine, names and sheets added in the open, and what is cosmetic.

        Edited formulas, constants over formulas, differing values, handles that lead elsewhere, hidden
        sheets and whatever else changes the answer or what is shown are not. Nor is it fine that a file does
        not say what another version made it with.
        """
        led_astray = [item for item in self.names if item["generated"] is not None]
        hidden = [item for item in self.visibility if item["found"] != "visible"]
        grave = [item for item in self.shown if item["severity"] != COSMETIC]
        return not (
            self.other_version
            or self.formulas
            or self.overwritten
            or led_astray
            or hidden
            or grave
            or any(sheet["mismatches"] for sheet in self.sheets)
            or not self.signature.ok
        )

    def signed(self) -> list[dict[str, Any]]:
        """The signatures, each with whether it `holds`.

        The formula beside it says so. It compares what is asked and what comes of it; here no figure of the
        library may be another either, and the file must verify.
        """
        same = self.ok and all(item["id"].startswith(VARIED) for item in self.inputs)
        return [item | {"holds": same and item["status"] == HOLDS} for item in self.signatures]

    def to_dict(self) -> dict[str, Any]:
        """What `mantile verify --json` prints."""
        inputs, formulas, overwritten, mismatches = (
            [item | {"severity": ANSWER} for item in items]
            for items in (self.inputs, self.formulas, self.overwritten, self.mismatches)
        )
        names = [
            item | {"severity": COSMETIC if item["generated"] is None else ANSWER} for item in self.names
        ]
        sheets = [
            item | {"severity": COSMETIC if item["found"] == "visible" else SHOWN} for item in self.visibility
        ]
        return {
            "ok": self.ok,
            "engine": self.engine,
            "model": self.model,
            "digest": self.digest,
            "protected": self.protected,
            "signature": self.signature.to_dict(),
            "cells": sum(sheet["cells"] for sheet in self.sheets),
            "formulas": sum(sheet["formulas"] for sheet in self.sheets),
            "compared": sum(sheet["compared"] for sheet in self.sheets),
            "max_relative_error": max((sheet["max_relative_error"] for sheet in self.sheets), default=0.0),
            "stored_values_compared": self.stored_values,
            "mismatches": mismatches,
            "edited": {
                "inputs": inputs,
                "formulas": formulas,
                "overwritten": overwritten,
                "names": names,
                "sheets": sheets,
                "shown": self.shown,
            },
            "signatures": self.signed(),
            "sheets": self.sheets,
            "made_by": self.made_by,
            "other_version": self.other_version,
        }


@dataclass(repr=False)
class Reports(Brief):
    """What several engines found in a file.

    Args:
        engines: a report of each that is installed.
        not_installed: engines that are not here, which is no failure.
        refused: engines that were not given the file or gave up on it, and why.
    """

    path: str
    engines: dict[str, Report] = field(default_factory=dict)
    not_installed: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """All engines agree with ours, and none refused the file."""
        return not self.refused and all(report.ok for report in self.engines.values())

    def to_dict(self) -> dict[str, Any]:
        """What `mantile verify --engine all --json` prints."""
        return {
            "ok": self.ok,
            "engines": {engine: report.to_dict() for engine, report in self.engines.items()},
            "not_installed": self.not_installed,
            "refused": self.refused,
        }
