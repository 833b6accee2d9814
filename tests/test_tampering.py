"""What is shown and is not the bundle's: every kind of tampering is named, what programs rewrite is not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from live import edit, exit_status, few
from packages import LINKS, MAIN, PIXEL, Parts, picture, shape

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.models import Model
from mantile.library.scenario import parse_scenario
from mantile.verification.engines import recalculate, soffice
from mantile.verification.report import Report
from mantile.verification.severity import ANSWER, COSMETIC, SHOWN
from mantile.verification.shown import shown_differences
from mantile.verification.verify import verify
from mantile.workbook.bundle import Bundle
from mantile.workbook.cell_diff import diff_cells
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.number_formats import normal_number_format
from mantile.workbook.package import open_package
from mantile.workbook.package_part import letters
from mantile.workbook.read import open_file
from mantile.workbook.write import build_workbook

CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "num_hidden_layers": 3,
    "intermediate_size": 5632,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
ASKED = {
    "model": "small",
    "accelerator": "h100-sxm",
    "tp": 2,
    "input_tokens": 500,
    "output_tokens": 100,
    "concurrency": 8,
    "variants": [{"name": "A100", "accelerator": "a100-80gb-sxm"}],
}


@dataclass(frozen=True)
class Made:
    """A workbook, and where in it stands what the table tampers with."""

    path: Path
    headlines: tuple[str, ...]  # numbers of Summary with a comment and a link
    headline: str  # one of them
    label: str  # the label of the first
    selector: str  # a number that is typed on Summary
    row: int  # a row of Decode, from 1
    told: int  # one that says how it is worked out
    roofline: str  # the part of the chart with axes of logarithms
    stack: str  # the part of a chart of stacked bars
    drawing: str  # the part that places the charts of Summary

    def parts(self) -> Parts:
        return Parts(self.path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A small model on some of the accelerators, two scenarios."""
    model = Model(id="small", name="Small", source="test", architecture=parse_config(CONFIG, "config.json"))
    small = estimate(parse_scenario(ASKED, "scenario"), model, few(("a100-80gb-sxm", "h100-sxm")))
    path = build_workbook(small, tmp_path_factory.mktemp("made") / "run.xlsx")
    book = open_file(path).book
    summary, parts = book.sheets["Summary"], Parts(path)
    headlines = sorted(
        place
        for place, cell in summary.cells.items()
        if cell.note and cell.link and cell.style.form != "General"
    )[2::2]  # none beside another: neighbours with one difference are named as one range
    row, column = headlines[0]
    charts = [name for name in parts.data if name.startswith("xl/charts/chart")]
    is_number = [
        place
        for place, cell in summary.cells.items()
        if cell.entry is not None and cell.entry.integer and cell.number
    ]
    decode, told = (  # the answer in front of the part, and the row that says how it is worked out
        row for row, identifier in book.sheets["Calculation"].ids.items() if identifier == "decode.time"
    )
    return Made(
        path=path,
        headlines=tuple(_address(*place) for place in headlines),
        headline=_address(row, column),
        label=_address(row - 1, column),
        selector=_address(*min(is_number)),
        row=decode + 1,
        told=told + 1,
        roofline=next(name for name in charts if "logBase" in parts.text(name)),
        stack=next(name for name in charts if "percentStacked" in parts.text(name)),
        drawing="xl/drawings/drawing1.xml",
    )


def _address(row: int, column: int) -> str:
    return f"{letters(column + 1)}{row + 1}"


def _shown(path: Path) -> list[dict[str, Any]]:
    """What is shown otherwise, without working anything out."""
    file = open_file(path)
    return shown_differences(file, diff_cells(file))


Change = Callable[[Parts, Made], None]


def _styled(where: str, change: Callable[[dict[str, Any]], None]) -> Change:
    """A change of the style of a cell of Summary."""
    return lambda parts, made: parts.restyle("Summary", getattr(made, where), change)


def _coloured(**colour: str) -> Change:
    """A change of the colour of the text of a headline."""

    def change(style: dict[str, Any]) -> None:
        style["font"].find(f"{{{MAIN}}}color").attrib.clear()
        style["font"].find(f"{{{MAIN}}}color").attrib.update(colour)

    return _styled("headline", change)


def _font(tag: str, value: str) -> Change:
    def change(style: dict[str, Any]) -> None:
        font = style["font"]
        found = font.find(f"{{{MAIN}}}{tag}")
        if found is None:
            found = font.makeelement(f"{{{MAIN}}}{tag}", {})
            font.insert(0, found)
        found.set("val", value)

    return _styled("headline", change)


def _child(tag: str, **attributes: str) -> Change:
    def change(style: dict[str, Any]) -> None:
        look = style["xf"]
        found = look.find(f"{{{MAIN}}}{tag}")
        if found is None:
            found = look.makeelement(f"{{{MAIN}}}{tag}", {})
            look.append(found)
        found.attrib.update(attributes)

    return _styled("headline", change)


def _form(code: str) -> Change:
    return _styled("headline", lambda style: style["form"](code))


def _painted(parts: Parts, made: Made) -> None:
    """The paper in the colour of the text."""

    def change(style: dict[str, Any]) -> None:
        colour = style["font"].find(f"{{{MAIN}}}color").attrib
        pattern = style["fill"].find(f"{{{MAIN}}}patternFill")
        pattern.set("patternType", "solid")
        for part in list(pattern):
            pattern.remove(part)
        pattern.append(pattern.makeelement(f"{{{MAIN}}}fgColor", dict(colour)))

    parts.restyle("Summary", made.headline, change)


def _in(title: str, pattern: str, new: str) -> Change:
    """A change in the part of a sheet."""
    return lambda parts, made: parts.sub(parts.sheet(title), pattern, new)


def _row(attributes: str) -> Change:
    """A change of a row of Decode."""
    return lambda parts, made: parts.sub(
        parts.sheet("Calculation"),
        rf'<row r="{made.row}"([^>]*?)(?: ht="[^"]*")?(?: customHeight="1")?>',
        rf'<row r="{made.row}"\1 {attributes}>',
    )


def _rule(condition: str, style: str) -> Change:
    """A further rule of conditional formatting on a headline."""

    def change(parts: Parts, made: Made) -> None:
        styles = "xl/styles.xml"
        number = parts.text(styles).count("<dxf>")
        parts.sub(styles, "</dxfs>", f"<dxf>{style}</dxf></dxfs>")
        rule = (
            f'<conditionalFormatting sqref="{made.headline}"><cfRule type="expression" dxfId="{number}" '
            f'priority="900"><formula>{condition}</formula></cfRule></conditionalFormatting>'
        )
        parts.before("Summary", "dataValidations", rule)

    return change


def _guard(old: str, new: str) -> Change:
    """A change of what may be typed into a selector."""
    return lambda parts, made: parts.sub(
        parts.sheet("Summary"),
        rf'<dataValidation [^>]*sqref="{made.selector}">.*?</dataValidation>',
        lambda match: re.sub(old, new, match[0]) if old else "",
    )


def _link(target: str, outside: bool) -> Change:
    """A link on a headline that leads elsewhere."""

    def change(parts: Parts, made: Made) -> None:
        part = parts.sheet("Summary")
        if outside:
            identifier = parts.relate(part, "hyperlink", target, outside=True)
            new = f'<hyperlink ref="{made.headline}" r:id="{identifier}"/>'
        else:
            new = f'<hyperlink ref="{made.headline}" location="{target}"/>' if target else ""
        parts.sub(part, rf'<hyperlink ref="{made.headline}"[^>]*/>', new)

    return change


def _chart(which: str, pattern: str, new: str) -> Change:
    return lambda parts, made: parts.sub(getattr(made, which), pattern, new)


def _overlaid(kind: str) -> Change:
    """Something over the headline."""

    def change(parts: Parts, made: Made) -> None:
        cell = int(made.headline[1:]) - 1, ord(made.headline[0]) - ord("A")
        if kind == "picture":
            parts.data["xl/media/image1.png"] = PIXEL
            parts.sub(
                "[Content_Types].xml",
                "<Default ",
                '<Default Extension="png" ContentType="image/png"/><Default ',
            )
            parts.overlay(
                made.drawing, picture(parts.relate(made.drawing, "image", "../media/image1.png")), cell
            )
        else:
            parts.overlay(made.drawing, shape(kind), cell)

    return change


def _background(parts: Parts, made: Made) -> None:
    parts.data["xl/media/image1.png"] = PIXEL
    parts.sub(
        "[Content_Types].xml", "<Default ", '<Default Extension="png" ContentType="image/png"/><Default '
    )
    part = parts.sheet("Calculation")
    identifier = parts.relate(part, "image", "../media/image1.png")
    parts.replace(part, "</worksheet>", f'<picture xmlns:r="{LINKS}" r:id="{identifier}"/></worksheet>')


def _newer_rule(parts: Parts, made: Made) -> None:
    """A rule as Excel writes newer kinds, in an extension."""
    parts.replace(
        parts.sheet("Summary"),
        "</worksheet>",
        '<extLst><ext uri="{78C0D931-6437-407d-A8EE-F0AAD7539E65}" '
        'xmlns:x14="http://schemas.microsoft.com/office/spreadsheetml/2009/9/main" '
        'xmlns:xm="http://schemas.microsoft.com/office/excel/2006/main"><x14:conditionalFormattings>'
        '<x14:conditionalFormatting><x14:cfRule type="expression" priority="901" id="{0}">'
        "<xm:f>TRUE</xm:f><x14:dxf>"
        '<font><color rgb="FFFFFFFF"/></font></x14:dxf></x14:cfRule>'
        f"<xm:sqref>{made.headline}</xm:sqref></x14:conditionalFormatting>"
        "</x14:conditionalFormattings></ext></extLst>"
        "</worksheet>",
    )


def _words(parts: Parts, made: Made) -> None:
    """The label says the same, but half of it in white."""

    def change(cell: str) -> str:
        style = re.search(r' s="\d+"', cell)
        assert style is not None
        return (
            f'<c r="{made.label}"{style[0]} t="inlineStr"><is><r><t>{text[:5]}</t></r>'
            f'<r><rPr><color rgb="FFFFFFFF"/></rPr><t>{text[5:]}</t></r></is></c>'
        )

    text = open_file(made.path).book.sheets["Summary"].cells[_place(made.label)].text or ""
    parts.cell("Summary", made.label, change)


def _place(address: str) -> tuple[int, int]:
    return int(address[1:]) - 1, ord(address[0]) - ord("A")


def _text(column: str, new: str) -> Change:
    """Another text in a row of Decode: its label, unit, source."""

    def change(parts: Parts, made: Made) -> None:
        parts.cell(
            "Calculation",
            f"{column}{made.told if column == 'D' else made.row}",
            lambda cell: (
                re.sub(r' t="s"|<v>.*', "", cell).replace(">", ' t="inlineStr">', 1)
                + f"<is><t>{new}</t></is></c>"
            ),
        )

    return change


def _typed(column: str, row: int | None) -> Change:
    """A text in a cell of Decode where nothing stands: in an empty row, or behind the cells of one."""

    def change(parts: Parts, made: Made) -> None:
        part, at = parts.sheet("Calculation"), row or made.row
        cell = f'<c r="{column}{at}" t="inlineStr"><is><t>at most 5 ms</t></is></c></row>'
        if row:
            parts.sub(part, rf'<row r="{row}"([^>]*?)/>', rf'<row r="{row}"\1>{cell}')
        else:
            parts.sub(part, rf'(<row r="{at}".*?)</row>', rf"\1{cell}")

    return change


def _swapped(parts: Parts, made: Made) -> None:
    """The last two, and what is printed of them."""
    parts.sub(
        "xl/workbook.xml", r"(<sheet [^>]*/>)(<sheet [^>]*/>)(?=</sheets>|<sheet name=\"_bundle)", r"\2\1"
    )
    last = len(parts.titles) - 2  # behind it stands the bundle
    places = {last: last - 1, last - 1: last}
    text = parts.text("xl/workbook.xml")
    parts.data["xl/workbook.xml"] = re.sub(
        r'(?<=localSheetId=")\d+', lambda match: str(places.get(int(match[0]), match[0])), text
    ).encode()


def _calculated(attributes: str) -> Change:
    return lambda parts, made: parts.sub("xl/workbook.xml", "<calcPr ", f"<calcPr {attributes} ")


def _comment(old: str, new: str) -> Change:
    return lambda parts, made: parts.sub("xl/comments1.xml", old, new)


def _added_comment(parts: Parts, made: Made) -> None:
    parts.sub(
        "xl/comments1.xml",
        "</commentList>",
        f'<comment ref="{made.label}" authorId="0"><text><t>checked by the vendor</t></text>'
        "</comment></commentList>",
    )


def _indexed(parts: Parts, made: Made) -> None:
    """Text in a colour of the palette, which the file says is white."""
    _coloured(indexed="10")(parts, made)
    colours = "".join(f'<rgbColor rgb="FF{"FFFFFF" if at in (9, 10) else "000000"}"/>' for at in range(64))
    palette = f'<colors xmlns="{MAIN}"><indexedColors>{colours}</indexedColors></colors>'
    parts.sub("xl/styles.xml", "</(?:[a-z0-9]+:)?styleSheet>", lambda end: f"{palette}{end[0]}")


def _theme(parts: Parts, made: Made) -> None:
    """Text in a colour of the theme, which the file says is white."""
    _coloured(theme="4")(parts, made)
    parts.sub("xl/theme/theme1.xml", '(<a:accent1><a:srgbClr val=")[0-9A-F]{6}', r"\1FFFFFF")


def _printed(sheet: str, name: str, area: str) -> Change:
    """Another area that is printed, or rows that stand on each page; empty for none."""
    pattern = rf'(<definedName name="_xlnm.{name}"[^>]*>){sheet}![^<]*(</definedName>)'
    new = rf"\g<1>{sheet}!{area}\g<2>" if area else ""
    return lambda parts, made: parts.sub("xl/workbook.xml", pattern, new)


def _property(tag: str, text: str) -> Change:
    """Another property of the document."""
    return lambda parts, made: parts.sub(
        "docProps/core.xml", rf"(<dc:{tag}>)[^<]*", lambda match: f"{match[1]}{text}"
    )


def _locked(parts: Parts, made: Made) -> None:
    parts.sub("xl/workbook.xml", "<bookViews>", '<workbookProtection lockStructure="1"/><bookViews>')


def _part(name: str, content: bytes) -> Change:
    """A part that no other refers to."""
    return lambda parts, made: parts.data.update({name: content})


CHART = "Summary!chart"  # where the place is a cell under a chart
TAMPERED: dict[str, tuple[Change, str, str, str]] = {
    "thousands": (_form("#,##0,"), "number format", SHOWN, "headline"),
    "no number": (_form(";;;"), "number format", SHOWN, "headline"),
    "number in white": (_form("[White]General"), "number format", SHOWN, "headline"),
    "number as a text": (_form('"12.3 ms"'), "number format", SHOWN, "headline"),
    "white text": (_coloured(rgb="FFFFFFFF"), "hidden text", SHOWN, "headline"),
    "white of the theme": (_coloured(theme="0"), "hidden text", SHOWN, "headline"),
    "white by tint": (_coloured(theme="1", tint="0.98"), "hidden text", SHOWN, "headline"),
    "light grey of the theme": (_coloured(theme="0", tint="-0.15"), "hidden text", SHOWN, "headline"),
    "white of a changed theme": (_theme, "hidden text", SHOWN, "headline"),
    "white of a changed palette": (_indexed, "hidden text", SHOWN, "headline"),
    "white by number": (_coloured(indexed="9"), "hidden text", SHOWN, "headline"),
    "paper like text": (_painted, "hidden text", SHOWN, "headline"),
    "tiny text": (_font("sz", "1"), "hidden text", SHOWN, "headline"),
    "symbols": (_font("name", "Wingdings"), "hidden text", SHOWN, "headline"),
    "struck": (_font("strike", "1"), "struck text", SHOWN, "headline"),
    "pushed out": (_child("alignment", horizontal="left", indent="200"), "hidden text", SHOWN, "headline"),
    "repeated": (_child("alignment", horizontal="fill"), "alignment", SHOWN, "headline"),
    "concealed formula": (_child("protection", hidden="1"), "hidden formula", SHOWN, "headline"),
    "white words": (_words, "hidden text", SHOWN, "label"),
    "bold": (_font("b", "0"), "font", COSMETIC, "headline"),
    "other colour": (_coloured(rgb="FF990099"), "colour", COSMETIC, "headline"),
    "unlocked": (_child("protection", locked="0"), "protection", COSMETIC, "headline"),
    "hidden row": (_row('hidden="1"'), "hidden row", SHOWN, "row"),
    "row without height": (_row('ht="0" customHeight="1"'), "hidden row", SHOWN, "row"),
    "row of a hair": (_row('ht="0.5" customHeight="1"'), "hidden row", SHOWN, "row"),
    "hidden column": (
        _in("Calculation", r'<col min="5" max="5" ', '<col min="5" max="5" hidden="1" '),
        "hidden column",
        SHOWN,
        "Calculation!E:E",
    ),
    "column without width": (
        _in("Calculation", r'<col min="5" max="5" width="[^"]*"', '<col min="5" max="5" width="0"'),
        "hidden column",
        SHOWN,
        "Calculation!E:E",
    ),
    "merged": (
        lambda parts, made: parts.before(
            "Calculation",
            "conditionalFormatting",
            '<mergeCells count="1"><mergeCell ref="B3:D3"/></mergeCells>',
        ),
        "merged cells",
        SHOWN,
        "Calculation!B3:D3",
    ),
    "formulas in place of values": (
        _in("Calculation", "<sheetView ", '<sheetView showFormulas="1" '),
        "formulas shown",
        SHOWN,
        "Calculation!",
    ),
    "no zeros": (
        _in("Calculation", "<sheetView ", '<sheetView showZeros="0" '),
        "hidden zeros",
        SHOWN,
        "Calculation!",
    ),
    "no sheet names": (
        lambda parts, made: parts.sub(
            "xl/workbook.xml", "<workbookView ", '<workbookView showSheetTabs="0" '
        ),
        "hidden sheet names",
        SHOWN,
        "!",
    ),
    "white by a rule": (
        _rule("TRUE", '<font><color rgb="FFFFFFFF"/></font>'),
        "conditional format",
        SHOWN,
        "headline",
    ),
    "no number by a rule": (
        _rule("TRUE", '<numFmt numFmtId="901" formatCode=";;;"/>'),
        "conditional format",
        SHOWN,
        "headline",
    ),
    "newer rule": (_newer_rule, "conditional format", SHOWN, "headline"),
    "rule removed": (
        _in("Calculation", "<conditionalFormatting.*?</conditionalFormatting>", ""),
        "conditional format",
        SHOWN,
        "Calculation!",
    ),
    "rule turned": (
        _in("Calculation", r"(<conditionalFormatting.*?<formula>)[^<]*", r'\1LEFT(A1,1)="never"'),
        "conditional format",
        SHOWN,
        "Calculation!",
    ),
    "anything may be typed": (_guard("", ""), "validation", SHOWN, "selector"),
    "wider bounds": (_guard("<formula2>[^<]*", "<formula2>99999"), "validation", SHOWN, "selector"),
    "only a warning": (
        _guard("<dataValidation ", '<dataValidation errorStyle="warning" '),
        "validation",
        SHOWN,
        "selector",
    ),
    "not enforced": (_guard('showErrorMessage="1"', 'showErrorMessage="0"'), "validation", SHOWN, "selector"),
    "other advice": (_guard('prompt="[^"]*"', 'prompt="leave this"'), "validation", SHOWN, "selector"),
    "link out": (_link("https://example.com/", True), "link out of the file", SHOWN, "headline"),
    "link to a file": (_link("file:///C:/prices.xlsx", True), "link out of the file", SHOWN, "headline"),
    "link elsewhere": (_link("Audit!A9", False), "link", SHOWN, "headline"),
    "no link": (_link("", False), "link", COSMETIC, "headline"),
    "comment added": (_added_comment, "comment", SHOWN, "label"),
    "comment changed": (_comment("<t[^>]*>[^<]*</t>", "<t>all is well</t>"), "comment", SHOWN, "Summary!"),
    "comment always shown": (
        lambda parts, made: parts.sub("xl/drawings/vmlDrawing1.vml", "<x:Row>", "<x:Visible/><x:Row>"),
        "shown comment",
        SHOWN,
        "Summary!",
    ),
    "picture": (_overlaid("picture"), "picture", SHOWN, "headline"),
    "text box": (_overlaid("TTFT 1 ms"), "text box", SHOWN, "headline"),
    "shape": (_overlaid(""), "shape", SHOWN, "headline"),
    "picture behind": (_background, "picture", SHOWN, "Calculation!"),
    "chart of other cells": (
        _chart("stack", r"(<c:val>.*?\$)(\d+)(</c:f>)", r"\g<1>99\3"),
        "chart range",
        SHOWN,
        CHART,
    ),
    "other categories": (
        _chart("stack", r"(<c:cat>.*?\$)(\d+)(</c:f>)", r"\g<1>99\3"),
        "chart range",
        SHOWN,
        CHART,
    ),
    "other name of a series": (
        _chart("roofline", "(<c:tx><c:v>)[^<]*", r"\1decode twice as fast"),
        "chart series name",
        SHOWN,
        CHART,
    ),
    "series removed": (_chart("stack", "<c:ser>.*?</c:ser>", ""), "chart series", SHOWN, CHART),
    "unseen series": (
        _chart("stack", "(<c:ser>.*?<c:spPr>)<a:solidFill>.*?</a:solidFill>", r"\1<a:noFill/>"),
        "chart series hidden",
        SHOWN,
        CHART,
    ),
    "colour of another series": (
        _chart("stack", '(<c:ser>.*?<a:srgbClr val=")[0-9A-F]{6}', r"\g<1>36A374"),
        "chart colour",
        SHOWN,
        CHART,
    ),
    "series in white of the theme": (
        _chart("stack", '(<c:ser>.*?)<a:srgbClr val="[0-9A-F]{6}"', r'\1<a:schemeClr val="bg1"'),
        "chart colour",
        SHOWN,
        CHART,
    ),
    "title of an axis": (
        _chart("roofline", "<a:t>[^<]*</a:t>", "<a:t>PFLOP/s</a:t>"),
        "chart axis title",
        SHOWN,
        CHART,
    ),
    "start of an axis": (
        _chart("roofline", '<c:min val="1"/>', '<c:min val="100"/>'),
        "chart axis",
        SHOWN,
        CHART,
    ),
    "no logarithm": (_chart("roofline", '<c:logBase val="10"/>', ""), "chart axis", SHOWN, CHART),
    "turned axis": (_chart("stack", "maxMin", "minMax"), "chart axis", SHOWN, CHART),
    "numbers of an axis": (
        _chart(
            "roofline",
            'formatCode="#,##0" sourceLinked="0"',
            'formatCode="#,##0,&quot;00&quot;" sourceLinked="0"',
        ),
        "chart number format",
        SHOWN,
        CHART,
    ),
    "other kind of chart": (_chart("stack", "percentStacked", "clustered"), "chart kind", SHOWN, CHART),
    "title of a chart": (
        _chart(
            "stack",
            '<c:chart><c:autoTitleDeleted val="1"/>',
            "<c:chart><c:title><c:tx><c:rich><a:bodyPr/><a:p><a:r><a:t>Half is compute</a:t></a:r></a:p>"
            "</c:rich>"
            '</c:tx></c:title><c:autoTitleDeleted val="0"/>',
        ),
        "chart title",
        SHOWN,
        CHART,
    ),
    "labels typed": (
        _chart(
            "stack",
            "<c:dLbls>",
            '<c:dLbls><c:dLbl><c:idx val="0"/><c:tx><c:rich><a:bodyPr/><a:p><a:r><a:t>90%</a:t></a:r></a:p>'
            "</c:rich>"
            '</c:tx><c:showVal val="1"/></c:dLbl>',
        ),
        "chart labels",
        SHOWN,
        CHART,
    ),
    "chart removed": (
        lambda parts, made: parts.sub(made.drawing, "<xdr:twoCellAnchor>.*?</xdr:twoCellAnchor>", ""),
        "chart removed",
        SHOWN,
        CHART,
    ),
    "chart over cells": (
        lambda parts, made: parts.sub(made.drawing, r"(<xdr:from>.*?<xdr:row>)\d+", r"\g<1>3"),
        "chart moved",
        SHOWN,
        "Summary!",
    ),
    "chart of no size": (
        lambda parts, made: parts.sub(
            made.drawing,
            r"(<xdr:from><xdr:col>)(\d+)(.*?<xdr:row>)(\d+)(.*?<xdr:to><xdr:col>)\d+(.*?<xdr:row>)\d+",
            r"\1\2\3\4\5\2\6\4",
        ),
        "chart moved",
        SHOWN,
        CHART,
    ),
    "label": (_text("B", "Time of a step at best"), "label", SHOWN, "Calculation!B"),
    "unit": (_text("C", "min"), "unit", SHOWN, "Calculation!C"),
    "explanation": (_text("D", "measured"), "explanation", SHOWN, "Calculation!D"),
    "text between cells": (_typed("D", 3), "text added", SHOWN, "Calculation!D3"),
    "text beside the table": (_typed("Z", None), "text added", COSMETIC, "Calculation!Z"),
    "calculated by hand": (_calculated('calcMode="manual"'), "calculation", ANSWER, "!"),
    "rounded as shown": (_calculated('fullPrecision="0"'), "calculation", ANSWER, "!"),
    "footer": (
        _in("Calculation", "<oddFooter>[^<]*", "<oddFooter>&amp;LApproved"),
        "footer",
        SHOWN,
        "Calculation!",
    ),
    "order of sheets": (_swapped, "order of sheets", COSMETIC, "Audit!"),
    "not protected": (_in("Layers", "<sheetProtection[^>]*/>", ""), "protection", COSMETIC, "Layers!"),
    "structure protected": (_locked, "protection of the workbook", COSMETIC, "!"),
    "days from 1904": (
        lambda parts, made: parts.sub("xl/workbook.xml", "<workbookPr ", '<workbookPr date1904="1" '),
        "date system",
        SHOWN,
        "!",
    ),
    "part of a sheet printed": (
        _printed("Calculation", "Print_Area", "$A$1:$H$9"),
        "print area",
        SHOWN,
        "Calculation!A1:H9",
    ),
    "more of a sheet printed": (
        _printed("Calculation", "Print_Area", "$A$1:$Z$9999"),
        "print area",
        COSMETIC,
        "Calculation!",
    ),
    "no print area": (_printed("Calculation", "Print_Area", ""), "print area", COSMETIC, "Calculation!"),
    "other rows on each page": (
        _printed("Calculation", "Print_Titles", "$1:$2"),
        "print titles",
        COSMETIC,
        "Calculation!",
    ),
    "title of the file": (_property("title", "Small on 2 × B200"), "title of the file", SHOWN, "!"),
    "author of the file": (_property("creator", "A. Vendor"), "author of the file", COSMETIC, "!"),
    "comment of the file": (_property("description", "approved"), "comment of the file", COSMETIC, "!"),
    "another generator": (
        _property("description", "Mantile 9.0.0 · 2026-11-28 · bundle 0000 0000"),
        "comment of the file",
        SHOWN,
        "!",
    ),
    "part without a relation": (_part("xl/media/image9.png", PIXEL), "unused part", COSMETIC, "!"),
}
"""By name: the change, the kind under which it is listed, how much it matters, and where."""


@pytest.fixture(scope="module")
def laid_out_once() -> Iterator[None]:
    """All files here have one bundle: it is laid out once, and written once to compare with."""
    read, shown = sys.modules["mantile.workbook.read"], sys.modules["mantile.verification.shown"]
    lay_out, frame, books, frames = read.lay_out, shown.frame, dict[str, Any](), dict[int, Any]()

    def laid_out(found: Estimate, bundle: Bundle) -> EstimateBook:
        if bundle.digest not in books:
            books[bundle.digest] = lay_out(found, bundle)
        return books[bundle.digest]

    def framed(book: EstimateBook) -> Any:
        if id(book) not in frames:
            frames[id(book)] = frame(book)
        return frames[id(book)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "lay_out", laid_out)
        patch.setattr(shown, "frame", framed)
        yield


HEADLINES = 3  # of one file that are tampered with


def _batches() -> list[list[str]]:
    """All kinds of tampering, those together that change different places of a file."""
    batches: list[list[str]] = []
    for name, (_, _, _, where) in TAMPERED.items():
        most = HEADLINES if where == "headline" else 1
        for batch in batches:
            if sum(TAMPERED[other][3] == where for other in batch) < most:
                batch.append(name)
                break
        else:
            batches.append([name])
    return batches


@pytest.mark.exhaustive
@pytest.mark.parametrize("batch", _batches(), ids=lambda batch: batch[0])
@pytest.mark.usefixtures("laid_out_once")
def test_tampering_is_named(made: Made, tmp_path: Path, batch: list[str]) -> None:
    """Each difference, of its kind and severity, at its place, and nothing else; verification fails unless a
    difference is cosmetic.
    """
    parts, headlines = made.parts(), iter(made.headlines)
    expected: list[tuple[str, str, str]] = []
    for name in batch:
        change, kind, severity, where = TAMPERED[name]
        here = replace(made, headline=next(headlines)) if where == "headline" else made
        change(parts, here)
        if where == "row":
            place = f"Calculation!{made.row}:{made.row}"
        elif hasattr(here, where):
            place = f"Summary!{getattr(here, where)}"
        else:
            place = "Summary!" if where == CHART else where
        expected.append((kind, severity, place))
    found = _shown(parts.save(tmp_path / "tampered.xlsx"))
    left = found
    for kind, severity, place in expected:
        exact = place.startswith("Summary!") and place != "Summary!"
        named = [
            item
            for item in found
            if (item["kind"], item["severity"]) == (kind, severity)
            and (at := f"{item['sheet']}!{item['cell']}").startswith(place)
            and (not exact or at == place)
        ]
        assert named, (kind, severity, place, found)
        assert Report("", "", shown=named).ok == (severity == COSMETIC)
        left = [item for item in left if item not in named]
    assert not left


def test_there_are_at_least_forty_kinds() -> None:
    """Of content, formats, charts, links, what is hidden and what lies over cells."""
    assert len(TAMPERED) >= 40


OLE = bytes.fromhex("D0CF11E0A1B11AE1")
REFUSED: dict[str, tuple[Change, str]] = {
    "links of the workbook": (
        lambda parts, made: parts.relate(
            "xl/workbook.xml", "externalLink", "externalLinks/externalLink1.xml"
        ),
        "links to other files",
    ),
    "macros": (_part("xl/vbaProject.bin", b"VBA"), "xl/vbaProject.bin: macros"),
    "macros by another name": (_part("xl/media/image9.png", OLE), "xl/media/image9.png: an embedded object"),
    "links": (
        _part("xl/externalLinks/externalLink1.xml", f'<externalLink xmlns="{MAIN}"/>'.encode()),
        "externalLink1.xml: links to other files",
    ),
    "links by another name": (
        _part("xl/notes.xml", f'<externalLink xmlns="{MAIN}"/>'.encode()),
        "xl/notes.xml: links to other files",
    ),
    "second styles": (
        _part("xl/more.xml", f'<styleSheet xmlns="{MAIN}"/>'.encode()),
        "xl/styles.xml and xl/more.xml are both styleSheet",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_dangerous_parts_are_refused_also_without_a_relation(made: Made, tmp_path: Path, name: str) -> None:
    """Macros, links to other workbooks, a second part of a kind of which programs read one."""
    change, message = REFUSED[name]
    parts = made.parts()
    change(parts, made)
    with pytest.raises(InputError, match=message):
        open_package(parts.save(tmp_path / "refused.xlsx"))


HARMLESS: dict[str, Change] = {
    "wider column": _in(
        "Calculation", r'<col min="5" max="5" width="[^"]*"', '<col min="5" max="5" width="60"'
    ),
    "narrow column": _in(
        "Calculation", r'<col min="4" max="4" width="[^"]*"', '<col min="4" max="4" width="4"'
    ),
    "higher row": _row('ht="40" customHeight="1"'),
    "zoom": _in("Calculation", "<sheetView ", '<sheetView zoomScale="140" '),
    "nothing frozen": _in("Calculation", "<pane [^>]*/>", ""),
    "scrolled": _in("Hardware", 'topLeftCell="[^"]*"', 'topLeftCell="C40"'),
    "other colour of a tab": _in("Calculation", '<tabColor rgb="[^"]*"', '<tabColor rgb="FFFF0000"'),
    "other margins": _in("Calculation", '<pageMargins left="[^"]*"', '<pageMargins left="1"'),
    "another spelling of a number format": lambda parts, made: parts.sub(
        "xl/styles.xml", 'formatCode="#,##0_\\)_\\)"', 'formatCode="#,##0_)_)_)"'
    ),
    "room for Excel's marks": _in(
        "Calculation",
        "<sheetFormatPr ",
        '<sheetFormatPr x14ac:dyDescent="0.25" '
        'xmlns:x14ac="http://schemas.microsoft.com/office/spreadsheetml/2009/9/ac" ',
    ),
    "iterations": _calculated('iterate="1"'),
}


@pytest.mark.exhaustive
@pytest.mark.usefixtures("laid_out_once")
def test_what_readers_and_programs_do_is_no_difference(made: Made, tmp_path: Path) -> None:
    """Columns made wider, other zooms, spellings that show the same."""
    parts = made.parts()
    for change in HARMLESS.values():
        change(parts, made)
    assert _shown(parts.save(tmp_path / "used.xlsx")) == []


@pytest.mark.exhaustive
def test_an_edited_input_is_an_edit_and_nothing_else(made: Made, tmp_path: Path) -> None:
    """As before: it is listed, verification holds, and nothing is shown otherwise."""
    parts = made.parts()
    parts.type("Summary", made.selector, 1)
    path = parts.save(tmp_path / "edited.xlsx")
    report = verify(path).to_dict()
    assert report["ok"]
    assert [(item["cell"], item["severity"]) for item in report["edited"]["inputs"]] == [
        (f"Summary!{made.selector}", ANSWER)
    ]
    assert report["edited"]["shown"] == []


@pytest.mark.exhaustive
def test_severities_and_exit_status_of_the_command(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text that is hidden is named and fails; bold type is named and does not."""
    for name, status in (("white text", 1), ("bold", 0)):
        change, kind, severity, _ = TAMPERED[name]
        parts = made.parts()
        change(parts, made)
        path = parts.save(tmp_path / "tampered.xlsx")
        assert exit_status("verify", str(path)) == status
        printed = capsys.readouterr().out
        assert f"  {severity}\n  - Summary!{made.headline}, {kind}: " in printed
        assert printed.startswith(f"{path}: {'does NOT agree. 1 change of what' if status else 'agrees. '}")


def _by_libreoffice(path: Path, folder: Path) -> Path:
    return recalculate(path, folder)


def _by_gnumeric(path: Path, folder: Path) -> Path:
    saved = folder / path.name
    subprocess.run(["ssconvert", str(path), str(saved)], check=True, capture_output=True)
    return saved


def _by_openpyxl(path: Path, folder: Path) -> Path:
    return edit(path, folder / path.name, lambda book: None)


PROGRAMS = {
    "openpyxl": (_by_openpyxl, True),
    "libreoffice": (_by_libreoffice, soffice() is not None),
    "gnumeric": (_by_gnumeric, shutil.which("ssconvert") is not None),
}
FEATURES = Path(__file__).parent / "data" / "features.yaml"


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook with all that a file can have."""
    path = tmp_path_factory.mktemp("features") / "run.xlsx"
    assert exit_status("build", str(FEATURES), "-o", str(path)) == 0
    return path


@pytest.mark.exhaustive
@pytest.mark.parametrize("program", PROGRAMS)
def test_files_that_programs_save_are_clean(features: Path, tmp_path: Path, program: str) -> None:
    """Nothing is shown otherwise; gnumeric drops colours of charts and bars in cells, which is cosmetic."""
    save, is_there = PROGRAMS[program]
    if not is_there:
        pytest.skip(f"{program} is not installed")
    report = verify(save(features, tmp_path)).to_dict()
    assert report["ok"], (
        report["mismatches"][:5],
        {key: value for key, value in report["edited"].items() if value},
    )
    assert not report["mismatches"]
    lost = {(item["kind"], item["severity"]) for item in report["edited"]["shown"]}
    if program == "gnumeric":
        assert {severity for _, severity in lost} <= {COSMETIC}
    else:
        assert not lost


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('0" USD"_)', r"0\ \U\S\D", True),
        ('[=1]"Yes";[=0]"No"', '[=1]"Yes";[=0]"No";General', True),
        ("#,##0.0;-#,##0.0;", r"#,##0.0;\-#,##0.0;;", True),
        ("[$$-409]0", '"$"0', True),
        ("0.00E+00", "0.00e+00", True),
        ("#,##0", "#,##0,", False),
        ("#,##0", "#,##0;;;", False),
        ("General", "[White]General", False),
        ("0", "0;;0", False),
        ("0", "**;**", False),
        ("@", '"yes"', False),
    ],
)
def test_number_formats_that_show_the_same(one: str, other: str, same: bool) -> None:
    """Spellings of other programs are the same; what hides or scales is not."""
    assert (normal_number_format(one) == normal_number_format(other)) == same
