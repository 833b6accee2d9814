"""Every colour, font and number format of the workbook. No other file names one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from mantile.graph.operations import table_format

NAVY, INK, GREY, MUTE = "#17365D", "#1B2733", "#5B6875", "#68737E"
HAIRLINE, FAINT, PANEL, BAND, GRID = "#D6DCE2", "#EDF0F3", "#F5F7F9", "#E9EEF4", "#E9EDF1"
INPUT, INPUT_FILL, INPUT_EDGE = "#0000FF", "#FFFBE0", "#D9C98C"
LINK, FACTOR_EDGE, WHITE = "#00703C", "#7A4FA3", "#FFFFFF"
PASS, ALERT, ALERT_FILL, FAIL, FAIL_FILL = "#1E6B3A", "#8A5A00", "#FFF2CC", "#C00000", "#FDE9E7"
COMPUTE, MEMORY, NETWORK, OVERHEAD = "#234E9A", "#E08A1E", "#36A374", "#C5CCD3"
MEMORY_TEXT, NETWORK_TEXT = "#A95A08", "#1E6B3A"
ACTIVATIONS, RESERVE, SECOND, REACHED_ROOF = "#8FB3D9", "#E4E8EC", "#85909B", "#B8C1C9"
STAGES = ("#DCE8F5", "#D9EFEA", "#FBE7CB", "#E8E2F1")
ORIGINS = {
    "config": STAGES[0],
    "derived": RESERVE,
    "code": STAGES[1],
    "override": STAGES[3],
    "default": STAGES[2],
}
SHARE_BAR, CAPACITY_BAR = "#F9E4C8", "#DAE6F3"
USED = "#F1EBF7"  # the figure of a table that is in use
BEST, BETTER, WORSE = "#E8F3EC", COMPUTE, MEMORY_TEXT
BOUND_COLOURS = {"compute": COMPUTE, "memory": MEMORY, "network": NETWORK, "overhead": OVERHEAD}
BOUND_TEXTS = {"compute": COMPUTE, "memory": MEMORY_TEXT, "network": NETWORK_TEXT, "overhead": GREY}

TABS = {"front": NAVY, "inputs": "#C9A227", "workings": GREY, "outputs": NETWORK, "control": FACTOR_EDGE}

_AIR = "_)_)"
SMALL, PRINTED = 9.3, 0.753  # the smallest size of text, and the scale of print at which it is 7 pt on paper
SCREEN = 1266  # pixels of a laptop's 1366, without numbers of rows, signs of outlines and the bar to scroll
_WHOLE = "#,##0"
_ENGINEERING = "##0.00E+0;-##0.00E+0;0"
# Formats scale numbers down by thousands, never up: bytes, FLOPs and rates read in the unit that suits their
# size, seconds below one by their exponent, E-3 for ms and E-6 for us.
_SECONDS = "[>=1]#,##0.000;[=0]0;##0.00E+0"
_BYTES = '[>=1000000000]#,##0.00,,," GB";[>=1000000]#,##0.00,," MB";#,##0" B"'
_BYTE_RATE = '[>=1000000000000]#,##0.00,,,," TB/s";[>=1000000000]#,##0.0,,," GB/s";##0.00E+0'
_FLOPS = '[>=1000000000000]#,##0.00,,,," TFLOP";[>=1000000000]#,##0.00,,," GFLOP";##0.00E+0'
_FLOP_RATE = '[>=1000000000000]#,##0.0,,,," TFLOP/s";[>=1000000000]#,##0.0,,," GFLOP/s";##0.00E+0'
_BY_UNIT = {
    "s": _SECONDS,
    "B": _BYTES,
    "FLOP": _FLOPS,
    "FLOP/s": _FLOP_RATE,
    "B/s": _BYTE_RATE,
    "B/GB": _ENGINEERING,
    "B/GiB": _ENGINEERING,
    "FLOP/TFLOP": _ENGINEERING,
    "us/s": _ENGINEERING,
    "ms/s": _WHOLE,
    "1": "0.000",
    "%": "0.0%",
    "us": "#,##0.0",
    "GB": "#,##0.0",
    "GiB": "#,##0.0",
    "GB/s": "#,##0.0",
    "TFLOP/s": "#,##0.0",
    "token/s": "#,##0.0",
    "bit": "0.00",
    "token/s/accelerator": "#,##0.0",
    "token/request/s": "#,##0.0",
    "request/s": "0.000",
    "request": "#,##0.0",
    "s/B": "0.00E+00;-0.00E+00;0",
    "USD/h": "#,##0.00",
    "USD/h/accelerator": "#,##0.00",
    "USD/W": "#,##0.000",
    "USD/Mtoken": "#,##0.000",
    "USD/kWh": "0.000",
    "USD/day": "#,##0.00",
    "USD/month": "#,##0",
    "J/token": "0.000",
    "ms": "#,##0.00",
    "token/USD": _WHOLE,
    "token/kWh": _WHOLE,
    "h/day": "0.0",
    "date": "yyyy-mm-dd",
    "day": "0",
    "W": "#,##0.0",
    "kW": "#,##0.0",
    "token/s/W": "0.0000",
    "s/h": _WHOLE,
    "W/kW": _WHOLE,
    "token/Mtoken": _ENGINEERING,
    "day/month": "0.0000",
    "B/request": _WHOLE,
    "B/token": "#,##0.00",
    "tolerance": "0E+0",
    "1/year": "0.000",
    "flag": "0",
    "level": "0",
    "number": "0",
}


def recoloured(palette: dict[str, str]) -> dict[str, str]:
    """Our colours and what a template has in their place, by the names of its palette."""
    ours = {
        "navy": NAVY,
        "compute": COMPUTE,
        "memory": MEMORY,
        "network": NETWORK,
        "overhead": OVERHEAD,
        "input": INPUT_FILL,
    }
    return {ours[name]: colour for name, colour in palette.items()}


def number_format(unit: str) -> str:
    """The number format of a unit, the same everywhere."""
    return _air(_BY_UNIT.get(unit, _WHOLE))


def _air(form: str) -> str:
    """Air between a right-aligned number and the next column, in every section of a format."""
    return ";".join(section + _AIR for section in form.split(";"))


# Formats of the front sheets by name, in the unit people quote; the unit stands in the format, never in the
# value.
FRONT = {
    "whole": _WHOLE,
    "one": "#,##0.0",
    "percent": "0%",
    "yes": '[=1]"Yes";[=0]"No"',
    "yes_no": '[=1]"yes";[=0]"no"',
    "per_user": '#,##0" tokens/s/user"',
    "sequences": '#,##0" sequences"',
    "per_second": '0.0" per second"',
    "check": '[=1]"✓ pass";[=0]"✗ FAIL"',
    "alert": '[=1]"✓ clear";[=0]"! alert"',
    "total": '#,##0" in + out"',
    "same": '[=1]"✓";[=0]"✗"',
    "changed": '[=0]"";[=1]"● changed"',
    "effect": '[>=0.005]+0%;[<=-0.005]"−"0%;"–"',
    "ms2": "#,##0.00",
    "ms3": "#,##0.000",
    "sent": '[=0]"–";#,##0.00',
    "megabytes": '[=0]"–";#,##0.000,,',
    "held": "#,##0.0;-#,##0.0;",
    "usd": '[<1]"$"0.000;[<1000000]"$"#,##0.00;"$"#,##0.00,," M"',
    "usd_hour": '[<1000000]"$"#,##0.00" per hour";"$"#,##0.00,," M per hour"',
    "joule": '#,##0.0" J per token"',
    "ratio": '0.000_)_);-0.000_)_);"–"_)_)',
    "text": "@",
    "share": "[>=0.07]0%;;",
    # Numbers of a table, whose units stand in a column: 0 is a dash where it means that nobody states the
    # figure.
    "percent1": "0.0%",
    "percent1_signed": '+0.0%;"−"0.0%;0.0%',
    "rate": "[<10]0.00;#,##0",
    "money": '[=0]"–";[<1]0.000;#,##0.00',
    "bill": '#,##0;-#,##0;"–"',
    "kw": '[=0]"–";[<1]0.000;#,##0.0',
    "watts": '#,##0.0;-#,##0.0;"–"',
    "traced": "[>=10000000]##0.0E+0;[>=1000]#,##0;#,##0.00",
    "change": '[>=0.005]+0%;[<=-0.005]"−"0%;"=";@',
}


@dataclass(frozen=True)
class Style:
    """How a cell looks. `form` is a number format; the rest are xlsxwriter's words."""

    size: float = 10
    bold: bool = False
    colour: str = INK
    fill: str | None = None
    form: str = "General"
    align: str = "left"
    wrap: bool = False
    font: str = "Calibri"
    top: tuple[int, str] | None = None
    bottom: tuple[int, str] | None = None
    left: tuple[int, str] | None = None
    right: tuple[int, str] | None = None
    unlocked: bool = False
    valign: str = "vcenter"
    indent: int = 0
    shrink: bool = False

    def but(self, **changes: Any) -> Style:
        """The same with changes."""
        return _changed(self, tuple(changes.items()))

    def properties(self) -> dict[str, Any]:
        """As xlsxwriter takes it."""
        options: dict[str, Any] = {
            "font_name": self.font,
            "font_size": self.size,
            "font_color": self.colour,
            "bold": self.bold,
            "num_format": self.form,
            "align": self.align,
            "valign": self.valign,
            "text_wrap": self.wrap,
            "locked": not self.unlocked,
            "shrink": self.shrink,
        }
        if self.indent:
            options["indent"] = self.indent
        if self.fill:
            options |= {"bg_color": self.fill, "pattern": 1}
        for border in ("top", "bottom", "left", "right"):
            edge = getattr(self, border)
            if edge:
                options |= {border: edge[0], f"{border}_color": edge[1]}
        return options


@cache
def _changed(look: Style, changes: tuple[tuple[str, Any], ...]) -> Style:
    """A style with changes: some hundred ones are asked for some ten thousand times."""
    return replace(look, **dict(changes))


THIN, THICK, DOUBLE = 1, 2, 6

COVER_TITLE = Style(size=28, bold=True, colour=NAVY)
SUMMARY_TITLE = Style(size=20, bold=True, colour=NAVY)
SHEET_TITLE = Style(size=18, bold=True, colour=NAVY)
PURPOSE = Style(colour=GREY)
MASTER = Style(size=10.5, bold=True, colour=PASS, align="right")
BACK = Style(size=SMALL, colour=GREY, align="right")
PART_HEAD = Style(size=14, bold=True, colour=NAVY, bottom=(THICK, NAVY))
PART_NOTE = Style(size=9.5, colour=GREY, bottom=(THICK, NAVY))
SECTION_HEAD = Style(size=12, bold=True, colour=NAVY, bottom=(THIN, HAIRLINE))
BLOCK_HEAD = Style(size=11, bold=True, colour=NAVY, fill=PANEL, top=(THIN, HAIRLINE))
BLOCK_NOTE = Style(size=9.5, colour=GREY, fill=PANEL, top=(THIN, HAIRLINE))
HEADER = Style(size=9.5, bold=True, colour=NAVY, fill=BAND, bottom=(THICK, NAVY))
HEADER_RIGHT = HEADER.but(align="right", form=_air("@"))
HEADER_WRAP = HEADER.but(align="right", wrap=True)
EDITED = Style(bold=True, fill="#FFDF9E")  # holds something else than as generated
SECTION = Style(size=SMALL, colour=MUTE)
LABEL = Style()
ROW_LABEL = Style(wrap=True)
UNIT = Style(size=SMALL, colour=GREY, wrap=True)
SENTENCE = Style(size=9.5, colour=GREY, wrap=True)
SOURCE = Style(size=SMALL, colour=GREY, wrap=True)
IDENTIFIER = Style(size=SMALL, colour=GREY, font="Consolas", wrap=True)
VALUE = Style(align="right")
TEXT_VALUE = Style(align="right", form=_air("@"))
TILE = Style(size=SMALL, colour=GREY, fill=PANEL, indent=1)


@cache
def value(unit: str, *, is_text: bool = False, role: str = "calculation", integer: bool = False) -> Style:
    """A value cell of a workings sheet. Roles: calculation, link, input, fixed."""
    style = VALUE.but(
        form=_air("@") if is_text else _air(_WHOLE) if integer and unit != "date" else number_format(unit)
    )
    match role:
        case "link":
            return style.but(colour=LINK)
        case "input":
            edge = (THIN, INPUT_EDGE)
            return style.but(
                colour=INPUT, fill=INPUT_FILL, unlocked=True, top=edge, bottom=edge, left=edge, right=edge
            )
        case "fixed":
            return style.but(colour=GREY)
        case _:
            return style


def reason(style: Style) -> Style:
    """The same for a cell in which somebody types why."""
    edge = (THIN, INPUT_EDGE)
    return style.but(fill=INPUT_FILL, unlocked=True, top=edge, bottom=edge, left=edge, right=edge)


def zero_as_dash(style: Style) -> Style:
    """The same for a number whose 0 means that there is no figure."""
    plain = style.form.removesuffix(_AIR)
    return style.but(form=_air(f'{plain};-{plain};"–"'))


def amount(digits: int, unit: str = "") -> str:
    """The number format of a number of a table, or with its unit of a headline: seconds from 10,000 ms on."""
    if unit == "ms":
        return f'[<10000]{table_format(digits)}" ms";{table_format(1)}," s"'
    return f'{table_format(digits)}" {unit}"' if unit else _air(table_format(digits))


def front(form: str, **changes: Any) -> Style:
    """A value cell of a front sheet in one of the `FRONT` formats."""
    return Style(form=FRONT[form], **changes)


def table(form: str, **changes: Any) -> Style:
    """A right-aligned value cell in one of the `FRONT` formats, with air after it."""
    return Style(form=_air(FRONT[form]), align="right", **changes)


def aired(form: str, **changes: Any) -> Style:
    """A right-aligned number in a format, with air after it."""
    return Style(form=_air(form), **({"align": "right"} | changes))


@cache
def emphasised(style: Style, total: int) -> Style:
    """A subtotal: thin rule above, bold. A phase total: double rule below as well."""
    style = style.but(bold=True, top=(THIN, INK))
    return style.but(bottom=(DOUBLE, INK)) if total > 1 else style


def shown_unit(unit: str) -> str:
    """A unit as readers write it."""
    return unit.replace("**2", "²").replace("*", "·").replace("/accelerator", "/acc")
