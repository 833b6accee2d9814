"""Number formats in one spelling: two that show the same have the same normal form."""

from __future__ import annotations

import re
from functools import cache

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_(?P<room>.)|\*(?P<filled>.)|\[(?P<bracket>[^\]]*)\]|(?P<end>;)'
    r"|(?P<word>General|[Ee][+-])|(?P<other>.)",
    re.DOTALL | re.IGNORECASE,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?[0-9.]+)")
_CURRENCY = re.compile(r"\$([^-]*)(?:-[0-9A-Fa-f]+)?")
_CODES = re.compile("[0#?.,%@/A-Za-z1-9]")  # signs that stand for something; all others stand for themselves
Section = tuple[str, ...]

# Formats that files name by a number alone, as ECMA-376 part 1, 18.8.30 has them for English.
NUMBERED = {
    0: "General",
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    5: '"$"#,##0_);("$"#,##0)',
    6: '"$"#,##0_);[Red]("$"#,##0)',
    7: '"$"#,##0.00_);("$"#,##0.00)',
    8: '"$"#,##0.00_);[Red]("$"#,##0.00)',
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "mm-dd-yy",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "m/d/yy h:mm",
    37: "#,##0_);(#,##0)",
    38: "#,##0_);[Red](#,##0)",
    39: "#,##0.00_);(#,##0.00)",
    40: "#,##0.00_);[Red](#,##0.00)",
    41: r'_(* #,##0_);_(* \(#,##0\);_(* "-"_);_(@_)',
    42: r'_("$"* #,##0_);_("$"* \(#,##0\);_("$"* "-"_);_(@_)',
    43: r'_(* #,##0.00_);_(* \(#,##0.00\);_(* "-"??_);_(@_)',
    44: r'_("$"* #,##0.00_);_("$"* \(#,##0.00\);_("$"* "-"??_);_(@_)',
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mmss.0",
    48: "##0.0E+0",
    49: "@",
}


@cache
def normal_number_format(text: str) -> tuple[Section, ...]:
    """What a number format shows, section by section: its condition, then its signs.

    How texts are quoted, room beside a number, languages and a section that says what is so anyhow do not
    count.

    Example:
        normal_number_format('0" USD"_)') == normal_number_format(r"0\\ \\U\\S\\D")    # True
    """
    sections: list[list[str]] = [[]]
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup, match[match.lastgroup or 0]
        if kind == "end":
            sections.append([])
        elif kind == "bracket":
            sections[-1] += _bracket(value)
        elif kind in ("quoted", "escaped") or (kind == "other" and not _CODES.match(value)):
            sections[-1] += [f"'{sign}" for sign in value]
        elif kind == "filled":
            sections[-1].append(f"*{value}")
        elif kind != "room":
            sections[-1].append(value.upper())
    found = [tuple(section) for section in sections]
    return tuple(_without_needless(found)) or (("GENERAL",),)


def _bracket(text: str) -> list[str]:
    """A condition, a colour or a currency."""
    condition = _CONDITION.fullmatch(text.strip())
    if condition is not None:
        return [f"[{condition[1]}{float(condition[2]):g}]"]
    currency = _CURRENCY.fullmatch(text)
    if currency is not None:
        return [f"'{sign}" for sign in currency[1]]
    return [f"[{text.upper()}]"]


def _without_needless(sections: list[Section]) -> list[Section]:
    """Without sections at the end that say what is so anyhow."""
    anyhow: tuple[Section, ...] = ((), ("GENERAL",), ("@",))
    has_conditions = any(part.startswith(("[<", "[>", "[=")) for section in sections for part in section)
    if len(sections) == 4 and sections[3] in (anyhow if sections[2] == () else anyhow[1:]):
        sections = sections[:3]
    while has_conditions and len(sections) > 1 and sections[-1] == ("GENERAL",):
        sections = sections[:-1]
    return sections
