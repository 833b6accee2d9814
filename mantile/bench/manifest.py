"""The manifest of a sweep: its dimensions, and of each point whether it is done.

It is written anew after each point, whole or not at all. A sweep that was interrupted goes on with the points
that are left; a point is measured as a whole.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from mantile.bench.sweep import Sweep
from mantile.library.documents import Strict, json_text, parse_json, read_text, validate
from mantile.library.errors import InputError
from mantile.library.files import replacing

State = Literal["open", "done", "failed", "too long"]
"""Of a point: failed is one of whose requests none was answered; too long is one that the server does not
take."""


class PointState(Strict):
    """Where a point stands: the id of its record, or what went wrong and how often."""

    state: State = "open"
    record: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    failures: dict[str, int] = Field(default_factory=dict)


class Manifest(Strict):
    """A sweep and its points.

    Args:
        id: of the sweep, random: records tell by it which sweep they are of.
        of: what was measured: model, accelerator, plan.
    """

    format: Literal[1] = 1
    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    of: dict[str, Any]
    sweep: Sweep
    points: dict[str, PointState]

    def with_point(self, point: str, **state: Any) -> Manifest:
        """The manifest after a point."""
        points = {**self.points, point: PointState(**state)}
        return self.model_copy(update={"points": points})

    @property
    def open(self) -> list[str]:
        """The points that are left."""
        return [name for name, point in self.points.items() if point.state in ("open", "failed")]


def opened(path: Path, sweep: Sweep, of: dict[str, Any]) -> Manifest:
    """The manifest of a sweep: the one in a file, if it is of this very sweep, else a new one.

    Raises:
        InputError: naming the file and the field, if it is of another sweep; a manifest is never overwritten.
    """
    if not path.exists():
        new = Manifest(
            id=secrets.token_hex(8),
            of=of,
            sweep=sweep,
            points={point.id: PointState() for point in sweep.points()},
        )
        save(new, path)
        return new
    found = validate(Manifest, parse_json(read_text(path), str(path)), str(path))
    for before, now in ((found.sweep.model_dump(mode="json"), sweep.model_dump(mode="json")), (found.of, of)):
        for field in {**before, **now}:
            if before.get(field) != now.get(field):
                raise InputError(
                    f"{path}: it is of another sweep: field {field} was {before.get(field)}, and "
                    f"{now.get(field)} is asked; expected the same to go on, or another --manifest"
                )
    return found


def save(manifest: Manifest, path: Path) -> None:
    """Write a manifest, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json_text(manifest.model_dump(mode="json")) + "\n", encoding="utf-8")
