"""Templates, as they stand in templates/.

Which sheets and rows a workbook shows, in whose name and in which colours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from mantile.library.documents import Strict, load_ours, parse_yaml, read_text, validate
from mantile.library.errors import unknown
from mantile.library.profiles import data_folder

Colour = Annotated[str, Field(pattern=r"^#[0-9A-Fa-f]{6}$")]
Words = Annotated[str, Field(max_length=120)]
STANDARD = "standard"


class Palette(Strict):
    """Colours that differ from ours, as #RRGGBB.

    Of heads, of the four limits as fills, and of an input's background.
    """

    navy: Colour | None = None
    compute: Colour | None = None
    memory: Colour | None = None
    network: Colour | None = None
    overhead: Colour | None = None
    input: Colour | None = None


class Currency(Strict):
    """A currency for the front sheets; workings stay in US dollars."""

    code: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    symbol: Annotated[str, Field(min_length=1, max_length=4, pattern=r'^[^"$\\;]+$')]
    per_usd: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]


class Template(Strict):
    """How a workbook is laid out.

    Args:
        about: what it is for.
        title: instead of the scenario's own.
        company: named on the Summary and in the footer.
        sheets: those that readers are shown; sheets that their formulas need stay, all others are left out.
            Empty: all.
        drivers: how many figures are taken lower and higher on What-if; `all` that move a result.
        currency: of money on the front sheets, with its rate; US dollars if none.
        formula_text: whether a column holds the formulas of the base scenario as text.
    """

    about: Words = ""
    title: Words | None = None
    company: Words = ""
    sheets: tuple[Words, ...] = ()
    drivers: Annotated[int, Field(ge=2, le=60)] | Literal["all"] = 8
    formula_text: bool = False
    currency: Currency | None = None
    palette: Palette = Palette()


def load_template(name: str) -> Template:
    """A template by its name in templates/, or from a .yaml file of one's own.

    Raises:
        InputError: naming the file and the field, or the templates there are.
    """
    own = name.lower().endswith((".yaml", ".yml"))
    paths = {path.stem: path for path in sorted(data_folder("templates").glob("*.yaml"))}
    if not own and name not in paths:
        raise unknown("template", name, paths)
    if not own:
        return load_ours(Template, paths[name])
    return validate(Template, parse_yaml(read_text(Path(name)), name) or {}, name)
