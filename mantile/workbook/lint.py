"""The workbook linter: what a professional modeller expects of a sheet, as far as a program can see it.

Works on a file, so it also judges a workbook that somebody edited.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token, TokenizerError
from openpyxl.formula.translate import Translator
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange

from mantile.equations.graph import CALCULATION, IR, PARTS
from mantile.equations.variation import MOST_CHARACTERS
from mantile.library.errors import InputError
from mantile.library.facts import FACTS, VISION_FACTS
from mantile.workbook.book import ANSWERS, FIRST, HEADS, KEYS, OF_LETTER, REPEATING
from mantile.workbook.bundle import BUNDLE_SHEET
from mantile.workbook.package_part import MAX_AREA, column_number
from mantile.workbook.read import read_cells
from mantile.workbook.sheets.folding import WHAT_IF

FRONT = ("Summary",)
COLLECTING = (
    *FRONT,
    "Layers",
    "Capacity",
    WHAT_IF,
    "Audit",
)
WORKINGS = (
    "Inputs",
    "Hardware",
    "Efficiency",
    IR,
    CALCULATION,
)
ORDER = (
    "Summary",
    "Capacity",
    "Inputs",
    "Hardware",
    "Efficiency",
    IR,
    CALCULATION,
    "Layers",
    WHAT_IF,
    "Audit",
)
_LOOK_BACK = ("measured.", "stamp.", "typed.")
"""What ids of rows begin with that look at results and at cells, on the sheets of what is typed."""
FUNCTIONS = {
    "IF",
    "AND",
    "OR",
    "NOT",
    "MAX",
    "MIN",
    "SUM",
    "SUMIFS",
    "COUNTIFS",
    "SUMPRODUCT",
    "INDEX",
    "MATCH",
    "ABS",
    "ROUNDUP",
    "INT",
    "MOD",
    "EXP",
    "LN",
    "SQRT",
    "CHOOSE",
    "LARGE",
    "LEFT",
    "MID",
    "LEN",
    "FIND",
    "RANK",
    "ISBLANK",
    "ISERROR",
    "ISNUMBER",
    "N",
}
FRONT_FUNCTIONS = {"FIXED", "ROUND", "IFERROR", "NA"}
MAX_LENGTH, MAX_REFERENCES, MAX_RANGE, MAX_CHUNK = 120, 8, 100_000, 32_000
_AGAIN = re.compile(r"[a-z]\w*(\.[^\s.]+)+")  # an id at the beginning of a row that works one out again
_MAX_NESTING = 64
# Results that nobody inside the book has to use.
OUTPUTS = re.compile(
    r"^(metrics\.|load\.(state|in_flight|seats|wait\w*|served)$|serving\.|break_even\.|evidence\.(\w+\.p\d+|power_basis)$|stamp\.|floor\.|check"
    r"|drift\.(p\d+|months)$"
    r"|correction\.(version|digest|\w+\.(p\d+|newest))$"
    r"|framework\.[\w.-]+\.(cache_policy|pads_\w+)$|((decode|fullest)\.)?startup\.\w+|memory\.(free|fits)|.*\.(bound|bottleneck|mfu|mbu)$"
    r"|efficiency\.(profile_in_use|chain\.\w+|place\.\w+)"
    r"|model\.active_parameters|measured\.(error_of_all|in_use\..*|lowest\..*|highest\..*)|memory\.kv_bytes_per_token"
    r"|classes\.\d\.((ttft|e2e)_p\d\d|e2e|sessions)$|sessions\.told$|nearest\.\w+$|break_even\.|grid\.|(decode\.)?(cost\.|hardware\.\w+\.path|plan\.shared_copies"
    r"|efficiency\.(profile_in_use|place\.\w+|from\.[\w.-]+)|memory\.fits)|tensors\.(vision|prediction|buffers)"
    r"|model\.(vision\.)?\w*width|model\.(mtp_layers|q_lora_rank))"
)
# Of a model of states only, without caches and FFNs.
NO_CACHE = {
    "hardware.kv_bytes",
    "efficiency.kv_format_in_use",
    "memory.sequence_length",
    "decode.length",
    "prefill.tokens",
    "decode.tokens",
    "network.stage.inside",
    "efficiency.gather_latency.stage",
}
STRUCTURE = {f"model.{name}" for name, kind in FACTS.items() if kind.structural} | {
    f"model.vision.{name}" for name in VISION_FACTS
}
_FAR_COLUMN = re.compile(r"(?<![A-Za-z'])\$?[A-Z]{2}(?=\$?\d)")
_CELL = re.compile(
    r"(?:(?:'(?P<quoted>[^']+)'|(?P<sheet>[A-Za-z_]\w*))!)?"
    r"\$?(?P<c1>[A-Z]{1,3})\$?(?P<r1>\d+)(?::\$?(?P<c2>[A-Z]{1,3})\$?(?P<r2>\d+))?$"
)

VOLATILE = {"CELL", "INDIRECT", "INFO", "NOW", "OFFSET", "RAND", "RANDARRAY", "RANDBETWEEN", "TODAY"}
# What holds where a rule is kept, by the name of the rule.
RULES = {
    "sheet-order": "Sheets stand in the order in which figures follow from each other.",
    "refers-down": "A formula of workings refers to rows above its own, never below; only Answers do.",
    "refers-right": (
        "A formula of workings refers to sheets to the left of its own; to the right only to what is typed, "
        "to checks of the library, and Inputs to its ids."
    ),
    "column-heads": "Sheets of workings have the same columns: section, quantity, unit, how, source, id.",
    "no-frozen-panes": (
        "The heads of a sheet stay on the screen; those of workings stand on each printed page too."
    ),
    "inconsistent-formula": "A row has the same formula in every scenario.",
    "missing-unit": "Every row has a unit, also where it is 1.",
    "duplicate-id": "An id stands on one row only.",
    "duplicate-label": "A label stands on one row of its block only; parts of a sheet have their own blocks.",
    "merged-cells": "No cells are merged.",
    "hidden-sheet": "No sheet is hidden, except the one of the bundle.",
    "hidden-cells": "No column is hidden, and no row but those that an outline folds away.",
    "hidden-target": "No link leads into a row or column that is hidden or folded away.",
    "bundle-sheet": (
        f"The sheet of the bundle is very hidden, and its cells have at most {MAX_CHUNK:,} characters."
    ),
    "long-formula": (
        f"A formula has at most {MAX_LENGTH} characters, {MOST_CHARACTERS} where figures are worked out "
        "again; names of columns and sheets count as one letter."
    ),
    "too-many-references": (
        f"A formula has at most {MAX_REFERENCES} references, but where figures of other sheets are worked "
        "out again."
    ),
    "nested-if": "No IF stands inside an IF.",
    "magic-number": (
        "No number but 0, 1, exponents and the digits of a text is typed into a formula; it has a cell of "
        "its own."
    ),
    "volatile-function": f"No function that is recalculated at every change: {', '.join(sorted(VOLATILE))}.",
    "unknown-function": "Only functions that every spreadsheet program works out alike.",
    "array-formula": "No array formulas and no data tables.",
    "unreadable-formula": "Every formula can be read.",
    "large-range": f"A formula refers to ranges of at most {MAX_RANGE:,} cells.",
    "no-stored-value": "Every formula has its value stored, for programs that do not calculate.",
    "error-value": "No cell holds an error as a constant.",
    "unused-row": "Every row is used by another one, unless it is a result.",
    "missing-name": "The name master_check leads to the result of all checks.",
    "not-a-cell": "A formula refers to cells, not to names.",
    "page-setup": (
        "A sheet prints in landscape, scaled to its pages, with the digest of the bundle in the footer."
    ),
    "missing-validation": "Every cell for an input has data validation.",
    "large-validation": f"Data validation covers at most {MAX_AREA:,} cells of a sheet.",
    "unprotected-sheet": (
        "A sheet is protected, only inputs can be typed over; or it has outlines, which Excel opens on no "
        "protected sheet, and its formulas ask before they are typed over."
    ),
}


@dataclass(frozen=True)
class Finding:
    """A rule that does not hold, one of `RULES`, and where."""

    rule: str
    sheet: str
    cell: str
    message: str


def lint(path: str | Path) -> list[Finding]:
    """Every rule that a workbook breaks.

    Raises:
        InputError: if the file is no workbook, or one that nobody should open.

    Example:
        mantile.lint("run.xlsx")    # [] where no rule is broken
    """
    cells = read_cells(Path(path))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of what it would lose on saving; we only read
            book = openpyxl.load_workbook(path)
    except Exception as error:  # openpyxl raises whatever the broken part of a file provokes
        raise InputError(f"{path}: cannot be read as a workbook: {type(error).__name__}: {error}") from error
    findings = [*_structure(book), *_links(book), *_identities(book)]
    used: set[tuple[str, int, int]] = set()
    all_formulas = (cell for sheet in book.worksheets for cell in _formulas(sheet))
    followed = {str(cell.value) for cell in all_formulas if not cell.protection.locked}
    for sheet in book.worksheets:
        if sheet.title == BUNDLE_SHEET:
            continue
        findings += _page(sheet)
        first = _first_row(sheet)
        for cell in _formulas(sheet):
            stored = cells.stored[sheet.title].get((cell.row - 1, cell.column - 1))
            collects = sheet.title in COLLECTING or cell.row < first
            findings += _formula(sheet, cell, used, stored, followed, collects)
        if sheet.title in WORKINGS:
            findings += _rows(sheet)
    findings += _dependents(book, used)
    return findings


def _first_row(sheet: Any) -> int:
    """The first row of workings of a sheet: parts above them collect, as whole sheets do."""
    heads = PARTS.get(sheet.title, ())[:1]
    return next((row for row in range(5, sheet.max_row + 1) if sheet.cell(row, 1).value in heads), 5)


def _formulas(sheet: Any) -> Iterator[Any]:
    return (cell for row in sheet.iter_rows() for cell in row if cell.data_type == "f")


def _structure(book: Any) -> Iterator[Finding]:
    names = [sheet.title for sheet in book.worksheets if sheet.title != BUNDLE_SHEET]
    if names != [name for name in ORDER if name in names]:
        yield Finding("sheet-order", "", "", f"sheets stand in the order {names}; expected {list(ORDER)}")
    for sheet in book.worksheets:
        if sheet.merged_cells.ranges:
            yield Finding(
                "merged-cells", sheet.title, str(next(iter(sheet.merged_cells.ranges))), "merged cells"
            )
        if sheet.title == BUNDLE_SHEET:
            if sheet.sheet_state != "veryHidden":
                yield Finding(
                    "bundle-sheet",
                    sheet.title,
                    "",
                    f"the bundle's sheet is {sheet.sheet_state}; expected very hidden",
                )
            for row in sheet.iter_rows():
                if len(str(row[0].value or "")) > MAX_CHUNK:
                    yield Finding(
                        "bundle-sheet",
                        sheet.title,
                        row[0].coordinate,
                        f"a chunk of {len(str(row[0].value))} characters",
                    )
        elif sheet.sheet_state != "visible":
            yield Finding("hidden-sheet", sheet.title, "", "hidden sheet")
        hidden = [
            key
            for key, size in [*sheet.column_dimensions.items(), *sheet.row_dimensions.items()]
            if size.hidden and not size.outlineLevel
        ]
        if hidden:
            yield Finding("hidden-cells", sheet.title, str(hidden[0]), "hidden row or column")
        if not sheet.protection.sheet and not _asks(sheet):
            yield Finding("unprotected-sheet", sheet.title, "", "sheet is not protected")
    if "master_check" not in book.defined_names:
        yield Finding("missing-name", "", "", "the name master_check is missing")


def _links(book: Any) -> Iterator[Finding]:
    """Links within the workbook that lead to what nobody sees."""
    for sheet in book.worksheets:
        for cell in (cell for row in sheet.iter_rows() for cell in row if cell.hyperlink is not None):
            match = _CELL.match((cell.hyperlink.location or "").replace("$", ""))
            name = "" if match is None else match["quoted"] or match["sheet"] or sheet.title
            if match is None or name not in book.sheetnames:
                continue
            target = book[name]
            if target.row_dimensions[int(match["r1"])].hidden or target.column_dimensions[match["c1"]].hidden:
                place = f"{name}!{match['c1']}{match['r1']}"
                yield Finding("hidden-target", sheet.title, cell.coordinate, f"leads to {place}, not seen")


def _asks(sheet: Any) -> bool:
    """Whether a sheet has outlines, and a rule by which its formulas ask before they are typed over."""
    outlined = any(size.outlineLevel for size in sheet.row_dimensions.values())
    return outlined and any(rule.type == "custom" for rule in sheet.data_validations.dataValidation)


def _page(sheet: Any) -> Iterator[Finding]:
    if sheet.page_setup.orientation != "landscape":
        yield Finding("page-setup", sheet.title, "", "not landscape")
    fits = sheet.sheet_properties.pageSetUpPr is not None and sheet.sheet_properties.pageSetUpPr.fitToPage
    if not fits and not sheet.page_setup.scale:
        yield Finding("page-setup", sheet.title, "", "neither fitted to a page nor scaled")
    if "bundle" not in (sheet.oddFooter.right.text or "") + (sheet.oddFooter.left.text or ""):
        yield Finding("page-setup", sheet.title, "", "footer without bundle digest")
    if sheet.freeze_panes is None or (sheet.title in WORKINGS and not sheet.print_title_rows):
        yield Finding("no-frozen-panes", sheet.title, "", "no frozen panes or no repeated header")
    areas = [area for rule in sheet.data_validations.dataValidation for area in rule.sqref.ranges]
    covered = sum((area.max_row - area.min_row + 1) * (area.max_col - area.min_col + 1) for area in areas)
    if covered > MAX_AREA:
        yield Finding("large-validation", sheet.title, "", f"data validation of {covered:,} cells")
        return
    validated = {place for area in areas for place in area.cells}
    for row in sheet.iter_rows():
        for cell in row:
            if (
                not cell.protection.locked
                and sheet.title in ("Summary", *WORKINGS)
                and (cell.row, cell.column) not in validated
            ):
                yield Finding(
                    "missing-validation", sheet.title, cell.coordinate, "an input without data validation"
                )
            if cell.data_type == "e":
                yield Finding("error-value", sheet.title, cell.coordinate, f"error value {cell.value}")


def _identities(book: Any) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in WORKINGS:
        sheet = book[name] if name in book.sheetnames else None
        if sheet is None:
            continue
        heads = tuple(sheet.cell(4, column).value for column in range(1, 7))
        if heads != HEADS:
            yield Finding("column-heads", name, "A4", f"columns are headed {heads}; expected {HEADS}")
        labels: Counter[tuple[str, str, str]] = Counter()
        part = block = ""  # by its head: the section of a row is cut where it is long
        for row in range(_first_row(sheet), sheet.max_row + 1):
            section, label, unit, _, _, identifier = (sheet.cell(row, column).value for column in range(1, 7))
            if identifier is None:
                block = section or block
                part = block if block in PARTS.get(name, ()) else part
                continue
            if not unit:
                yield Finding("missing-unit", name, f"C{row}", "a row without a unit")
            if section in REPEATING:
                continue
            labels[part, str(block), str(label)] += 1
            if identifier in seen:
                yield Finding(
                    "duplicate-id", name, f"F{row}", f"the id {identifier} stands on {seen[identifier]} too"
                )
            seen[identifier] = name
        for (*_, label), count in labels.items():
            if count > 1:
                yield Finding("duplicate-label", name, "", f"the label {label!r} stands on {count} rows")


def _formula(
    sheet: Any,
    cell: Any,
    used: set[tuple[str, int, int]],
    stored: Any,
    followed: Container[str],
    collects: bool,
) -> Iterator[Finding]:
    name, text, place = sheet.title, str(cell.value), cell.coordinate
    if not isinstance(cell.value, str):
        yield Finding("array-formula", name, place, "an array formula or a data table")
        return
    tokens = _tokenised(text)
    if tokens is None:
        yield Finding("unreadable-formula", name, place, f"no formula that can be read: {text:.60}")
        return
    composed = name in (*FRONT, "Layers") or (collects and "&" in text)  # a text of many figures
    references = [token for token in tokens if token.type == Token.OPERAND and token.subtype == Token.RANGE]
    sheets = [token.value.rpartition("!")[0] for token in references]
    length = len(text) - sum(len(_FAR_COLUMN.findall(token.value)) for token in references)
    length -= sum(len(other) - 1 for other in sheets if other)
    again = name == WHAT_IF and _AGAIN.fullmatch(str(sheet.cell(cell.row, 1).value)) is not None
    if length > (MOST_CHARACTERS if again else MAX_LENGTH) and not composed:
        yield Finding("long-formula", name, place, f"{length} characters: {text}")
    if len(references) > MAX_REFERENCES and not composed and not again:
        yield Finding("too-many-references", name, place, f"{len(references)} references: {text}")
    if stored is None:
        yield Finding("no-stored-value", name, place, "no stored value")
    yield from _tokens(name, place, tokens, collects)
    looks_back = str(sheet.cell(cell.row, len(HEADS)).value).startswith(_LOOK_BACK)
    for token in references:
        match = _CELL.match(token.value)
        if match is None:
            yield Finding("not-a-cell", name, place, f"{token.value} is not a cell")
            continue
        if _cells_of(match) > MAX_RANGE:
            yield Finding(
                "large-range", name, place, f"{token.value} is a range of {_cells_of(match):,} cells"
            )
            continue
        other = match["quoted"] or match["sheet"] or name
        first, last = int(match["r1"]), int(match["r2"] or match["r1"])
        c1, c2 = column_number(match["c1"]), column_number(match["c2"] or match["c1"])
        used |= {(other, row, column) for row in range(first, last + 1) for column in range(c1, c2 + 1)}
        if collects or other in (*FRONT, "Audit") or not cell.protection.locked:
            continue  # what an input follows until it is typed over may stand further on
        if text in followed:
            continue  # a cell that repeats this
        if other == name and first > cell.row and not looks_back and sheet.cell(cell.row, 1).value != ANSWERS:
            yield Finding("refers-down", name, place, f"refers down to {token.value}")
        elif name == "Inputs" and other == "Hardware" and c1 == c2 == KEYS + 1 and last > first:
            continue  # a list of ids
        elif (
            other in ORDER
            and name in ORDER
            and ORDER.index(other) > ORDER.index(name)
            and not looks_back  # predictions beside what was measured, what cells hold, what changed
            and not (_cells_of(match) == 1 and _is_typed(sheet.parent, other, first, c1))
        ):
            yield Finding("refers-right", name, place, f"refers right to {token.value}")


def _is_typed(book: Any, sheet: str, row: int, column: int) -> bool:
    """Whether somebody types into a cell."""
    return sheet in book.sheetnames and not book[sheet].cell(row, column).protection.locked


def _tokenised(formula: Any) -> list[Token] | None:
    """The parts of a formula; None if it cannot be read, or is an array formula or a data table."""
    try:
        return Tokenizer(formula).items if isinstance(formula, str) else None
    except (TokenizerError, IndexError):
        return None


def _cells_of(match: re.Match[str]) -> int:
    rows = abs(int(match["r2"] or match["r1"]) - int(match["r1"])) + 1
    return rows * (abs(column_number(match["c2"] or match["c1"]) - column_number(match["c1"])) + 1)


def calculable(formula: str, sheets: Container[str]) -> bool:
    """Whether an engine is handed a formula that is not as generated.

    Only functions, references to cells and sizes that a workbook of ours may have: others could call
    programs, open files or take all memory there is.
    """
    if not formula.startswith("="):
        return False
    tokens = _tokenised(formula)
    if tokens is None:
        return False
    depth = 0
    for token in tokens:
        depth += {Token.OPEN: 1, Token.CLOSE: -1}.get(token.subtype, 0)
        if depth > _MAX_NESTING or token.type in (Token.ARRAY, Token.LITERAL):
            return False
        if (
            token.type == Token.FUNC
            and token.subtype == Token.OPEN
            and token.value.rstrip("(").upper() not in FUNCTIONS | FRONT_FUNCTIONS
        ):
            return False
        if token.type == Token.OPERAND and token.subtype == Token.RANGE:
            match = _CELL.match(token.value)
            if (
                match is None
                or _cells_of(match) > MAX_RANGE
                or ((name := match["quoted"] or match["sheet"]) and name not in sheets)
            ):
                return False
    return depth == 0


def _tokens(sheet: str, place: str, tokens: list[Token], collects: bool) -> Iterator[Finding]:
    stack: list[str] = []
    previous = ""
    for token in tokens:
        if token.type == Token.FUNC and token.subtype == Token.OPEN:
            name = token.value.rstrip("(").upper()
            if name == "IF" and "IF" in stack:
                yield Finding("nested-if", sheet, place, "IF inside IF")
            allowed = name in FUNCTIONS or (name in FRONT_FUNCTIONS and collects)
            if not allowed:
                rule = "volatile-function" if name in VOLATILE else "unknown-function"
                yield Finding(rule, sheet, place, f"function {name}")
            stack.append(name)
        elif token.type == Token.FUNC and token.subtype == Token.CLOSE and stack:
            stack.pop()
        elif (
            token.type == Token.OPERAND
            and token.subtype == Token.NUMBER
            and token.value not in ("0", "1")
            and previous != "^"
            and stack[-1:] not in (["FIXED"], ["ROUND"])
        ):
            yield Finding("magic-number", sheet, place, f"literal {token.value}")
        if token.type != Token.WSPACE:
            previous = token.value


def _rows(sheet: Any) -> Iterator[Finding]:
    columns = range(FIRST + 1, sheet.max_column + 1)  # asked for once: all cells are looked at for it
    groups: dict[int, str] = {}  # columns of lines, by what their head says behind the scenario
    for row in range(_first_row(sheet), sheet.max_row + 1):
        if sheet.cell(row, 6).value is None and sheet.cell(row, 1).value:
            heads = ((column, sheet.cell(row, column).value) for column in columns)
            groups = {column: str(head).rpartition(OF_LETTER)[2] for column, head in heads if head}
        bases: dict[str, Any] = {}
        for column in columns:
            other = sheet.cell(row, column)
            base = bases.setdefault(groups.get(column, ""), other)
            if other is base or base.data_type != "f" or _tokenised(base.value) is None:
                continue  # what is wrong with it is reported by itself
            if other.data_type != "f" or not other.protection.locked:
                continue  # an input of that scenario
            expected = Translator(base.value, origin=base.coordinate).translate_formula(other.coordinate)
            if other.value != expected and "Summary!" not in base.value:
                yield Finding(
                    "inconsistent-formula",
                    sheet.title,
                    other.coordinate,
                    f"{other.value}; expected {expected}, as in the base",
                )


def _offered(book: Any) -> set[tuple[str, int, int]]:
    """The cells of a range that an input is chosen from: sheet, row, column."""
    found: set[tuple[str, int, int]] = set()
    for rule in (rule for sheet in book for rule in sheet.data_validations.dataValidation):
        name, mark, area = str(rule.formula1 or "").rpartition("!")
        if rule.type == "list" and mark:
            cells = [cell for line in CellRange(area).rows for cell in line]
            found |= {(name.strip("'"), row, column) for row, column in cells}
    return found


def _dependents(book: Any, used: set[tuple[str, int, int]]) -> Iterator[Finding]:
    layers = book["Layers"] if "Layers" in book.sheetnames else ()
    if not any(row[0].value == "Plan" for row in layers):  # nothing shows what some rows are for
        return
    used = used | _offered(book)
    for name in WORKINGS:
        if name not in book.sheetnames:
            continue
        sheet = book[name]
        for row in range(_first_row(sheet), sheet.max_row + 1):
            identifier = sheet.cell(row, 6).value
            if identifier is None or OUTPUTS.match(str(identifier)) or identifier in STRUCTURE | NO_CACHE:
                continue
            if sheet.cell(row, 1).value == ANSWERS:
                continue
            filled = [column for column in (FIRST, FIRST + 1) if sheet.cell(row, column).value is not None]
            if filled and not any((name, row, column) in used for column in filled):
                cell = f"{get_column_letter(filled[0])}{row}"
                yield Finding("unused-row", name, cell, f"nothing uses {identifier}")
