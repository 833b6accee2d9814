"""A view as HTML: the template, and what all views show."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from mantile.library.version import __version__
from mantile.server.page import charts
from mantile.server.page.assumptions import count
from mantile.server.page.state import State

FOLDER = Path(__file__).parent
VIEWS = (
    ("/", "Run"),
    ("/drill", "Drill down"),
    ("/compare", "Compare"),
    ("/decide", "Decide"),
    ("/sweep", "Sweep"),
    ("/placement", "Placement"),
    ("/calibrate", "Calibrate"),
)
"""Address and name of the views in the top bar."""


@lru_cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(template: str, state: State, here: str, status: int = 200, **what: Any) -> HTMLResponse:
    """A view.

    Args:
        here: its address, which the top bar marks.
        what: the template shows beside what all views show.
    """
    shared = {
        "state": state,
        "here": here,
        "views": VIEWS,
        "version": __version__,
        "patterns": charts.pattern_key(),
        "limits": charts.LIMITS,
        "changed": count(state),
        "has_drill": True,
        "has_assumptions": True,
        "has_paste": True,
        "digest": "",
    }
    return HTMLResponse(_templates().get_template(template).render(**{**shared, **what}), status)
