"""Rebuild the workbooks of the gallery from the files beside them, and with --pictures the pictures of them.

    python .ci/make_gallery.py [--pictures] [--into FOLDER] [NAME ...]

A file with measured runs becomes their report, any other a workbook. A picture needs LibreOffice and poppler
(pdftotext, pdftoppm).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

import yaml

GALLERY = Path(__file__).resolve().parents[1] / "workbooks"
# The sheet to show where it is neither What-if nor Summary.
BESIDES = {"calibration-70b-h100": "Calibration", "capacity-llama-3.3-70b-b200": "Capacity"}
MADE_ON = "2026-11-23"  # the day of the workbooks in the repository, stated so that they can be made again
RESOLUTION = 110  # dots per inch


def main() -> None:
    """Rebuild what is asked for, all if nothing is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a file in workbooks, without .yaml")
    parser.add_argument("--pictures", action="store_true", help="make the pictures too")
    parser.add_argument(
        "--into", type=Path, default=GALLERY, help="folder for what is made; workbooks by default"
    )
    asked = parser.parse_args()
    for name in asked.names or sorted(path.stem for path in GALLERY.glob("*.yaml")):
        made = build(GALLERY / f"{name}.yaml", asked.into / f"{name}.xlsx")
        print(made)
        if asked.pictures and "runs" not in yaml.safe_load(made_from(name)):
            print(picture(made, made.with_suffix(".png")))


def made_from(name: str) -> str:
    """The text of the file that a workbook is made from."""
    return (GALLERY / f"{name}.yaml").read_text(encoding="utf-8")


def build(scenario: Path, workbook: Path) -> Path:
    """The workbook of a scenario, or the report of measured runs."""
    verb = "reconcile" if "runs" in yaml.safe_load(scenario.read_text(encoding="utf-8")) else "build"
    _run(sys.executable, "-m", "mantile", verb, str(scenario), "-o", str(workbook))
    return workbook


def picture(workbook: Path, into: Path) -> Path:
    """The page of the workbook's most telling sheet as a picture.

    What-if, which then begins with it, where there is something to compare, else Summary.
    """
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        sys.exit("LibreOffice is not here: no pictures")
    several = "variants" in yaml.safe_load(made_from(workbook.stem))
    sheet = BESIDES.get(workbook.stem) or ("What-if" if several else "Summary")
    with tempfile.TemporaryDirectory() as folder:
        _run(
            office,
            f"-env:UserInstallation=file://{folder}/profile",
            "--headless",
            "--convert-to",
            "pdf",
            "--outdir",
            folder,
            str(workbook),
        )
        printed = Path(folder) / f"{workbook.stem}.pdf"
        pages = _run("pdftotext", "-layout", str(printed), "-").split("\f")
        # The footer of a page begins with the names of file and sheet.
        number = next((at for at, page in enumerate(pages, 1) if f"{workbook.name} · {sheet} " in page), 0)
        if not number:
            sys.exit(f"{workbook}: no page says that it shows {sheet}")
        _run(
            "pdftoppm",
            "-r",
            str(RESOLUTION),
            "-f",
            str(number),
            "-l",
            str(number),
            "-png",
            "-singlefile",
            str(printed),
            str(into.with_suffix("")),
        )
    return into


def _run(*command: str) -> str:
    """What a program prints; it must succeed."""
    seconds = int(datetime.fromisoformat(MADE_ON).replace(tzinfo=timezone.utc).timestamp())
    dated = os.environ | {"SOURCE_DATE_EPOCH": str(seconds)}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=dated).stdout


if __name__ == "__main__":
    main()
