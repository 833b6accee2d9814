"""Charts of a file in a normal form: what they draw, from which cells, on which axes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from mantile.workbook.number_formats import normal_number_format

_AXES = ("catAx", "valAx", "dateAx", "serAx")
_TEXT = re.compile(r'"(.*)"', re.DOTALL)
_CACHES = ("strRef", "numRef", "multiLvlStrRef")
_NEARLY_NONE = 10_000  # of 100,000: what is more transparent is not seen


@dataclass(frozen=True)
class Series:
    """One series: texts and references as written; a colour is RRGGBB, "none", or None if not said."""

    name: str
    categories: str
    values: str
    fill: str | None
    line: str | None
    labels: str | None


@dataclass(frozen=True)
class Axis:
    """One axis. Bounds are None where the program chooses them."""

    kind: str
    title: str
    minimum: float | None
    maximum: float | None
    logarithmic: float | None
    reversed: bool
    form: str | None
    unseen: bool


@dataclass(frozen=True)
class ChartForm:
    """A chart: plots in order, each with its kind and its series, and its axes."""

    title: str
    kinds: tuple[str, ...]
    series: tuple[Series, ...]
    axes: tuple[Axis, ...]
    unseen_rows: bool  # also rows and columns that are hidden are drawn


def chart_form(tree: Element) -> ChartForm:
    """A chart as its part says it, without what only some programs write."""
    chart = tree.find("chart")
    if chart is None:
        return ChartForm("", (), (), (), False)
    plot = chart.find("plotArea")
    plots = [] if plot is None else [part for part in plot if part.tag.endswith("Chart")]
    axes = [] if plot is None else [part for part in plot if part.tag in _AXES]
    visible_only = chart.find("plotVisOnly")
    series = sorted(
        (int(_value(one, "order") or 0), number, _series(one))
        for number, one in enumerate(one for part in plots for one in part.iterfind("ser"))
    )
    return ChartForm(
        title=_title(chart),
        kinds=tuple(dict.fromkeys(" ".join(_kind(part)) for part in plots)),
        series=tuple(one for _, _, one in series),
        axes=tuple(_axis(axis) for axis in axes),
        unseen_rows=visible_only is None or visible_only.get("val", "1") in ("0", "false"),
    )


def _kind(plot: Element) -> Iterator[str]:
    yield plot.tag.removesuffix("Chart")
    for name in ("barDir", "grouping"):
        if _value(plot, name):
            yield _value(plot, name)


def _series(series: Element) -> Series:
    labels = series.find("dLbls")
    return Series(
        name=_said(series.find("tx")),
        categories=_said(series.find("cat") if series.find("cat") is not None else series.find("xVal")),
        values=_said(series.find("val") if series.find("val") is not None else series.find("yVal")),
        fill=_colour(series.find("spPr")),
        line=_colour(series.find("spPr/ln")),
        labels=None if labels is None else _labels(labels),
    )


def _said(element: Element | None) -> str:
    """A reference or a text, from wherever the program put it."""
    if element is None:
        return ""
    for kind in _CACHES:
        formula = element.find(f"{kind}/f")
        if formula is not None:
            text = (formula.text or "").strip()
            quoted = _TEXT.fullmatch(text)
            return f"'{quoted[1]}" if quoted else f"={text}"
    texts = [part.text or "" for part in element.iter() if part.tag in ("v", "t")]
    return "'" + "".join(texts).strip()


def _labels(labels: Element) -> str:
    """What stands beside the points: values, names, and the format of numbers."""
    shown = [
        name
        for name in ("showVal", "showCatName", "showSerName", "showPercent", "showBubbleSize")
        if _value(labels, name) in ("1", "true")
    ]
    typed = [_said(label.find("tx")) for label in labels.iterfind("dLbl") if label.find("tx") is not None]
    return " ".join([*shown, *typed])


def _axis(axis: Element) -> Axis:
    form = axis.find("numFmt")
    is_own = form is not None and form.get("sourceLinked", "0") in ("0", "false")
    return Axis(
        kind=axis.tag,
        title=_title(axis),
        minimum=_number(axis.find("scaling/min")),
        maximum=_number(axis.find("scaling/max")),
        logarithmic=_number(axis.find("scaling/logBase")),
        reversed=_value(axis, "scaling/orientation") == "maxMin",
        form=str(normal_number_format(form.get("formatCode", ""))) if form is not None and is_own else None,
        unseen=_value(axis, "delete") in ("1", "true"),
    )


def _title(element: Element) -> str:
    title = element.find("title")
    said = _said(title.find("tx")) if title is not None else ""
    return said if said != "'" else ""


def _colour(properties: Element | None) -> str | None:
    """The colour of a surface or a line, of a theme's by its name; None where it is not said."""
    if properties is None:
        return None
    if properties.find("noFill") is not None:
        return "none"
    colour = properties.find("solidFill/srgbClr")
    if colour is None:
        scheme = properties.find("solidFill/schemeClr")
        return None if scheme is None else scheme.get("val", "")
    alpha = colour.find("alpha")
    transparent = alpha is not None and float(alpha.get("val", "100000").rstrip("%")) < _NEARLY_NONE
    return "none" if transparent else colour.get("val", "").upper()


def _value(element: Element, name: str) -> str:
    child = element.find(name)
    return "" if child is None else child.get("val", "")


def _number(element: Element | None) -> float | None:
    return None if element is None else float(element.get("val", "0"))
