"""What the cells of a file look like: styles as numbers of a table, resolved to what a reader sees."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from functools import cached_property
from xml.etree.ElementTree import Element

from mantile.workbook.number_formats import NUMBERED, Section, normal_number_format
from mantile.workbook.package import Package

BLACK, WHITE = "000000", "FFFFFF"
# Colours of Excel's own theme, in the order in which styles number them.
_THEME = [WHITE, BLACK, "EEECE1", "1F497D", "4F81BD", "C0504D", "9BBB59", "8064A2", "4BACC6", "F79646"]
_THEME += ["0000FF", "800080"]
_THEME_ORDER = ["lt1", "dk1", "lt2", "dk2", "accent1", "accent2", "accent3", "accent4", "accent5", "accent6"]
_THEME_ORDER += ["hlink", "folHlink"]
# Colours that styles name by their numbers: from 0 and again from 8 on the basic ones.
_BASIC = ["000000", "FFFFFF", "FF0000", "00FF00", "0000FF", "FFFF00", "FF00FF", "00FFFF"]
_PALETTE = [
    *_BASIC,
    *_BASIC,
    *["800000", "008000", "000080", "808000", "800080", "008080", "C0C0C0", "808080"],
    *["9999FF", "993366", "FFFFCC", "CCFFFF", "660066", "FF8080", "0066CC", "CCCCFF"],
    *["000080", "FF00FF", "FFFF00", "00FFFF", "800080", "800000", "008080", "0000FF"],
    *["00CCFF", "CCFFFF", "CCFFCC", "FFFF99", "99CCFF", "FF99CC", "CC99FF", "FFCC99"],
    *["3366FF", "33CCCC", "99CC00", "FFCC00", "FF9900", "FF6600", "666699", "969696"],
    *["003366", "339966", "003300", "333300", "993300", "993366", "333399", "333333"],
]
_AUTOMATIC = 64  # colours of the system from here on: text, then paper
_NO = ("0", "false", "none", "off")
_SYMBOLS = ("wingdings", "webdings", "symbol", "marlett", "zapf", "dingbats")


@dataclass(frozen=True)
class Look:
    """How a cell looks. Colours are RRGGBB; `fill` is None for paper.

    Args:
        form: of numbers, in its normal form.
        concealed: its formula does not show in the bar.
    """

    form: tuple[Section, ...] = (("GENERAL",),)
    colour: str = BLACK
    fill: str | None = None
    font: str = ""
    size: float = 11
    bold: bool = False
    italic: bool = False
    struck: bool = False
    align: str = "general"
    rotation: int = 0
    indent: int = 0
    locked: bool = True
    concealed: bool = False

    @property
    def contrast(self) -> float:
        """Of text to what lies behind it: 1 where they are the same, 21 for black on white."""
        return contrast(self.colour, self.fill)

    @property
    def symbols(self) -> bool:
        """Whether the font shows pictures in place of letters."""
        return any(name in self.font.lower() for name in _SYMBOLS)


@dataclass(frozen=True)
class RuleLook:
    """What a rule of conditional formatting changes; None for what it leaves as it is."""

    colour: str | None = None
    fill: str | None = None
    form: tuple[Section, ...] | None = None
    struck: bool = False


class Looks:
    """The styles of a file, by the numbers that its cells and rules give."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.tree = next(
            (package.trees[name] for name in package.trees if name.endswith("/styles.xml")),
            Element("styleSheet"),
        )
        self.forms = NUMBERED | {
            int(form.get("numFmtId", "0")): form.get("formatCode", "")
            for form in self.tree.iterfind("numFmts/numFmt")
        }

    @cached_property
    def cells(self) -> list[Look]:
        """Styles of cells."""
        fonts, fills = self.tree.findall("fonts/font"), self.tree.findall("fills/fill")
        looks = []
        for style in self.tree.iterfind("cellXfs/xf"):
            font = _numbered(fonts, style.get("fontId"))
            fill = _numbered(fills, style.get("fillId"))
            alignment = _child(style, "alignment")
            protection = _child(style, "protection")
            looks.append(
                Look(
                    form=normal_number_format(self.forms.get(int(style.get("numFmtId", "0")), "General")),
                    colour=self.colour(font.find("color")) or BLACK,
                    fill=self._fill(fill),
                    font=_value(font, "name"),
                    size=float(_value(font, "sz") or Look.size),
                    bold=is_on(font.find("b")),
                    italic=is_on(font.find("i")),
                    struck=is_on(font.find("strike")),
                    align=alignment.get("horizontal", "general"),
                    rotation=int(alignment.get("textRotation", "0")),
                    indent=int(alignment.get("indent", "0")),
                    locked=protection.get("locked", "1") not in _NO,
                    concealed=protection.get("hidden", "0") not in _NO,
                )
            )
        return looks or [Look()]

    @cached_property
    def rules(self) -> list[RuleLook]:
        """Styles of rules of conditional formatting."""
        return [self.rule(style) for style in self.tree.iterfind("dxfs/dxf")]

    def rule(self, style: Element) -> RuleLook:
        """The style of a rule."""
        font, form = _child(style, "font"), style.find("numFmt")
        pattern = _child(_child(style, "fill"), "patternFill")
        back, front = pattern.find("bgColor"), pattern.find("fgColor")
        return RuleLook(
            colour=self.colour(font.find("color")),
            fill=self.colour(back if back is not None else front),
            form=None if form is None else normal_number_format(form.get("formatCode", "")),
            struck=is_on(font.find("strike")),
        )

    def cell(self, number: int) -> Look:
        """The style that a cell names."""
        return self.cells[number] if number < len(self.cells) else self.cells[0]

    @cached_property
    def palette(self) -> list[str]:
        """Colours by the numbers that styles give; a file may have its own in place of the first."""
        own = [colour.get("rgb", "")[-6:].upper() for colour in self.tree.iterfind("colors/indexedColors/*")]
        return [*own, *_PALETTE[len(own) :]]

    def colour(self, element: Element | None) -> str | None:
        """A colour as RRGGBB; None where there is none."""
        if element is None or element.get("auto", "0") not in _NO:
            return None
        if "rgb" in element.attrib:
            base: str | None = element.attrib["rgb"][-6:].upper()
        elif "theme" in element.attrib:
            number = int(element.attrib["theme"])
            base = self.theme[number] if number < len(self.theme) else None
        else:
            number = int(element.get("indexed", str(_AUTOMATIC)))
            base = self.palette[number] if number < len(self.palette) else None
        return base if base is None else _tinted(base, float(element.get("tint", "0")))

    @cached_property
    def theme(self) -> list[str]:
        """Colours of the file's theme, in the order in which styles number them."""
        trees = self.package.trees
        scheme = next(
            (trees[name].find(".//clrScheme") for name in sorted(trees) if "/theme/theme" in name), None
        )
        if scheme is None:
            return _THEME
        found = []
        for name, otherwise in zip(_THEME_ORDER, _THEME, strict=True):
            colour = next(iter(_child(scheme, name)), Element("none"))
            found.append((colour.get("lastClr") or colour.get("val") or otherwise)[-6:].upper())
        return found

    def _fill(self, fill: Element) -> str | None:
        pattern, gradient = fill.find("patternFill"), fill.find("gradientFill")
        if gradient is not None:
            return self.colour(gradient.find("stop/color"))
        if pattern is None or pattern.get("patternType", "none") == "none":
            return None
        kind = "fgColor" if pattern.get("patternType") == "solid" else "bgColor"
        return self.colour(pattern.find(kind))


def contrast(colour: str, fill: str | None) -> float:
    """Of a text's colour to what lies behind it, as the rules for legible pages of the W3C define it."""
    light, dark = sorted((_luminance(colour), _luminance(fill or WHITE)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _tinted(colour: str, tint: float) -> str:
    """A colour made lighter (tint over 0) or darker, as styles do with the colours of a theme."""
    if not tint:
        return colour
    hue, light, saturation = colorsys.rgb_to_hls(*(int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)))
    light = light * (1 + tint) if tint < 0 else light * (1 - tint) + tint
    parts = colorsys.hls_to_rgb(hue, min(max(light, 0.0), 1.0), saturation)
    return "".join(f"{round(part * 255):02X}" for part in parts)


def is_on(element: Element | None) -> bool:
    """Whether a switch of a style is there and not off."""
    return element is not None and element.get("val", "1") not in _NO


def _numbered(elements: list[Element], number: str | None) -> Element:
    place = int(number or 0)
    return elements[place] if place < len(elements) else Element("none")


def _child(element: Element, name: str) -> Element:
    child = element.find(name)
    return Element(name) if child is None else child


def _value(element: Element, name: str) -> str:
    return _child(element, name).get("val", "")
