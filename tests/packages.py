"""Workbook files taken apart, changed by hand as tampering does it, and put together again."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"
SHAPES = "http://schemas.openxmlformats.org/drawingml/2006/main"
AFTER_CELLS = "sheetProtection"  # an element of each of our sheets that stands right behind the cells
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8ffff3f0005fe02"
    "fe0def46b80000000049454e44ae426082"
)


class Parts:
    """The parts of a workbook file by name, to be changed in place."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            self.data = {item.filename: archive.read(item) for item in archive.infolist()}
        self.titles = re.findall(r'<sheet name="([^"]+)"', self.text("xl/workbook.xml"))

    def text(self, name: str) -> str:
        return self.data[name].decode()

    def replace(self, name: str, old: str, new: str, count: int = 1) -> None:
        """Change a text in a part; it must be there."""
        text = self.text(name)
        assert old in text, (name, old)
        self.data[name] = text.replace(old, new, count).encode()

    def sub(self, name: str, pattern: str, new: str | Callable[[re.Match[str]], str]) -> None:
        """Change the first match of a pattern in a part; there must be one."""
        text, count = re.subn(pattern, new, self.text(name), count=1, flags=re.DOTALL)
        assert count == 1, (name, pattern)
        self.data[name] = text.encode()

    def sheet(self, title: str) -> str:
        return f"xl/worksheets/sheet{self.titles.index(title) + 1}.xml"

    def before(self, title: str, tag: str, text: str) -> None:
        """Put something into a sheet, before an element of it."""
        self.replace(self.sheet(title), f"<{tag}", f"{text}<{tag}")

    def cell(self, title: str, address: str, change: Callable[[str], str]) -> None:
        """Change the element of a cell."""
        self.sub(self.sheet(title), rf'<c r="{address}"(?:[^>]*/>|.*?</c>)', lambda match: change(match[0]))

    def restyle(self, title: str, address: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Give a cell a style of its own, its present one with a change.

        The change gets the `xf`, its `font` and `fill` and a way to add a number format, `form`.
        """
        styles = "xl/styles.xml"
        ET.register_namespace("", MAIN)
        root = ET.fromstring(self.data[styles])
        names = ("numFmts", "fonts", "fills", "cellXfs")
        forms, fonts, fills, looks = (root.find(f"{{{MAIN}}}{name}") for name in names)
        assert forms is not None and fonts is not None and fills is not None and looks is not None
        found = re.search(rf'<c r="{address}"[^>]* s="(\d+)"', self.text(self.sheet(title)))
        assert found is not None, (title, address)
        number = int(found[1])
        look = ET.fromstring(ET.tostring(looks[number]))
        font = ET.fromstring(ET.tostring(fonts[int(look.get("fontId", "0"))]))
        fill = ET.fromstring(ET.tostring(fills[int(look.get("fillId", "0"))]))

        def form(code: str) -> None:
            ET.SubElement(forms, f"{{{MAIN}}}numFmt", {"numFmtId": "900", "formatCode": code})
            look.set("numFmtId", "900")

        change({"xf": look, "font": font, "fill": fill, "form": form})
        look.set("fontId", str(len(fonts)))
        look.set("fillId", str(len(fills)))
        fonts.append(font)
        fills.append(fill)
        looks.append(look)
        self.data[styles] = ET.tostring(root)
        self.cell(title, address, lambda text: text.replace(f's="{number}"', f's="{len(looks) - 1}"', 1))

    def relate(self, owner: str, kind: str, target: str, outside: bool = False) -> str:
        """Add a relation to a part; its id."""
        folder, name = posixpath.split(owner)
        part = f"{folder}/_rels/{name}.rels"
        empty = f'<Relationships xmlns="{PACKAGE}"></Relationships>'.encode()
        self.data.setdefault(part, empty)
        identifier = f"rIdNew{self.text(part).count('<Relationship ')}"
        mode = ' TargetMode="External"' if outside else ""
        relation = f'<Relationship Id="{identifier}" Type="{LINKS}/{kind}" Target="{target}"{mode}/>'
        self.replace(part, "</Relationships>", f"{relation}</Relationships>")
        return identifier

    def overlay(self, drawing: str, content: str, cell: tuple[int, int]) -> None:
        """Lay something over cells, in a drawing that is there."""
        corners = [
            f"<xdr:{end}><xdr:col>{cell[1] + step}</xdr:col><xdr:colOff>0</xdr:colOff>"
            f"<xdr:row>{cell[0] + step}</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:{end}>"
            for step, end in enumerate(("from", "to"))
        ]
        inside = f"{''.join(corners)}{content}<xdr:clientData/>"
        anchor = f"<xdr:twoCellAnchor>{inside}</xdr:twoCellAnchor>"
        self.replace(drawing, "</xdr:wsDr>", f"{anchor}</xdr:wsDr>")

    def type(self, title: str, address: str, value: Any) -> None:
        """Type a number, a text or a formula into a cell, or empty it (None); no stored value is left."""
        text = str(value).replace("&", "&amp;").replace("<", "&lt;")
        kind, inside = (
            ("", "")
            if value is None
            else ("", f"<v>{value}</v>")
            if not isinstance(value, str)
            else ("", f"<f>{text[1:]}</f>")
            if text.startswith("=")
            else (' t="inlineStr"', f"<is><t>{text}</t></is>")
        )

        def typed(cell: str) -> str:
            style = re.search(r' s="[0-9]+"', cell)
            return f'<c r="{address}"{style[0] if style else ""}{kind}>{inside}</c>'

        self.cell(title, address, typed)
        for name in self.data:
            if name.startswith("xl/worksheets/sheet"):
                self.data[name] = re.sub(rb"(?<=</f>)<v>[^<]*</v>", b"", self.data[name])

    def save(self, path: Path) -> Path:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.data.items():
                archive.writestr(name, data)
        return path


def shape(text: str) -> str:
    """A box with a text, to be laid over cells."""
    return (
        '<xdr:sp macro="" textlink=""><xdr:nvSpPr><xdr:cNvPr id="90" name="Box"/>'
        '<xdr:cNvSpPr txBox="1"/></xdr:nvSpPr><xdr:spPr>'
        '<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></xdr:spPr>'
        f"<xdr:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></xdr:txBody></xdr:sp>"
    )


def picture(identifier: str) -> str:
    """A picture, to be laid over cells."""
    return (
        '<xdr:pic><xdr:nvPicPr><xdr:cNvPr id="91" name="Picture"/><xdr:cNvPicPr/></xdr:nvPicPr><xdr:blipFill>'
        f'<a:blip xmlns:r="{LINKS}" r:embed="{identifier}"/></xdr:blipFill><xdr:spPr>'
        '<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></xdr:spPr></xdr:pic>'
    )
