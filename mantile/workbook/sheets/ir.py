"""Parts of the IR sheet: what a model is made of, in order, and every tensor with its shape.

They stand above its workings, in their columns, and look at all sheets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mantile.equations.ir import (
    ORIGINS,
    TYPED,
    IrSheet,
    ModuleRow,
    flag_words,
    origin,
    origin_words,
    weakest,
)
from mantile.graph.quantity import Input, Literal, Named, Node, Quantity
from mantile.library.architecture import Choice, Fact
from mantile.library.facts import FACTS
from mantile.library.huggingface.unread import why_unread
from mantile.workbook import style
from mantile.workbook.book import Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_part, cut, mark_beginning, needed_height
from mantile.workbook.sheets.shapes import shapes_part
from mantile.workbook.sheets.workings import Front
from mantile.workbook.text_width import cut_to

NUMBER, MODULE, KIND, SPLIT, CACHE, LAYERS, TIMES, ALL, COPIES, OUT, IN, FORMAT, SIZE, SHARE, ORIGIN = range(
    15
)
_WIDTHS = (60, 70, 58, 64, 54, 46, 144)  # of the columns behind the base scenario
_HEADS = (
    "no.",
    "module",
    "kind",
    "split over ranks",
    "kept, a layer",
    "layers",
    "times",
    "params, all",
    "copies",
    "out",
    "in",
    "format",
    "GB",
    "share",
    "origin",
)
_LEFT = (MODULE, KIND, SPLIT, LAYERS, FORMAT, ORIGIN)
_LABEL, _SAID = TIMES, OUT  # columns of what stands beside the fields that were not used
_PER = {"B/token": '#,##0" B/token"', "B": '#,##0.00,," MB/request"'}
_WHOLE = '[=0]"–";#,##0'
_GB = '[=0]"–";[<10000000]"< 0.01";#,##0.00,,,'  # of bytes
_MEANING = {
    "config": "a field states it",
    "derived": "worked out from fields",
    "code": "the class does it",
    "override": "a person typed it",
    "default": "",
}
_LINE = {"bottom": (style.THIN, style.FAINT)}
_SMALL = style.Style(size=9.5, colour=style.GREY)
_CACHED = style.Style(size=9.5, align="left").but(**_LINE)
_TEXT = style.Style(size=9.5).but(**_LINE)
_BESIDE = _TEXT.but(indent=1)  # a number stands at its left
_NAME = style.LABEL.but(wrap=True, **_LINE)


def purpose_of_ir(book: EstimateBook) -> str:
    """What stands under the title of the sheet."""
    return cut(
        "Every kind of module in the order of execution. A number leads to its block on Prefill, parameters "
        f"to Tensors, what is kept to Decode. {book.estimate.model.source}",
        190,
    )


class IrParts:
    """Modules and shapes, for the base scenario, while they are drawn."""

    def __init__(self, book: EstimateBook, shown: IrSheet) -> None:
        self.book, self.shown = book, shown
        self.architecture = book.estimate.equations.ir.model.architecture
        self.links: list[tuple[Cell, Named]] = []
        self.row = 0

    @property
    def front(self) -> Front:
        """They, as the workings of the sheet take them."""
        return Front(_WIDTHS, self._draw)

    def _draw(self, sheet: Sheet, row: int) -> int:
        """Everything from a row on, and the title of the sheet; the row after it."""
        shown, self.sheet = self.shown, sheet
        del sheet.cells[0, 0]
        self.book.add_quantity(sheet, 0, 0, shown.title, style.SHEET_TITLE)
        start, note = row, "As the base scenario runs them. Tints: where the facts behind a figure come from."
        row = add_part(sheet, row, "Modules", note, ORIGIN)
        self._key(row)
        self._heads(row + 1)
        first = self.row = row + 2
        for module, share in zip(shown.rows, shown.shares, strict=True):
            self._module(module, share)
        sheet.conditional.append(((first, SHARE, self.row - 1, SHARE), _BAR))
        self._sum()
        for module in shown.apart:
            self._module(module, None)
        sheet.blocks.append((start, self.row))
        top = self.row + 1
        end = max(self._unread(top), self._variant(self._layout(top) + 1))
        sheet.blocks.append((top, end))
        sheet.breaks.append(end + 1)
        row = shapes_part(self.book, sheet, end + 1, shown, self.links)
        sheet.breaks.append(row)
        sheet.tables += [(0, 1, 0), (start, row - 1, 0)]
        return row

    def link(self) -> None:
        """Lead to figures of sheets that were laid out since."""
        for cell, figure in self.links:
            if figure in self.book.addresses:
                cell.link = self.book.link_to(figure)

    def _key(self, row: int) -> None:
        """What the tints mean, and how many facts there are of each origin."""
        facts = [*self.architecture.facts.values(), *map(_as_fact, self.architecture.choices.values())]
        counts = Counter(map(origin, facts))
        self.sheet.set_text(row, 0, f"Origin of {len(facts)} facts, as read", _SMALL)
        for name, column in zip(ORIGINS, (KIND, CACHE, TIMES, OUT, ORIGIN), strict=True):
            look = style.Style(size=9.5, bold=True, fill=style.ORIGINS[name], align="center")
            self.sheet.set_text(row, column, f"{name} {counts[name]}", look)
            if column < ORIGIN:
                self.sheet.set_text(row, column + 1, _MEANING[name], _SMALL.but(indent=1))
        self.sheet.heights[row] = 22

    def _heads(self, row: int) -> None:
        for column, head in enumerate(_HEADS):
            look = style.HEADER.but(indent=int(column in (LAYERS, FORMAT, ORIGIN)))
            self.sheet.set_text(row, column, head, look if column in _LEFT else style.HEADER_RIGHT)

    # --- modules ----------------------------------------------------------------------------------

    def _live(
        self, row: int, column: int, figure: Node | str, look: style.Style, leads: Node | None = None
    ) -> None:
        """A formula; a text or number that nothing changes is written as it is."""
        if isinstance(figure, Literal) and isinstance(figure.value, int):
            self.sheet.set_cell(row, column, Cell(look, number=figure.value))
        elif isinstance(figure, str | Literal):
            text = figure if isinstance(figure, str) else str(figure.value)
            self.sheet.set_text(row, column, text, look)
        else:
            self.sheet.set_formula(row, column, figure, look)
            self._leads(row, column, leads)

    def _place(
        self,
        row: int,
        column: int,
        figure: Quantity | Input,
        look: style.Style,
        leads: Node | None = None,
    ) -> None:
        """A figure at a place of its own."""
        if isinstance(figure, Input):
            self.book.add_constant(self.sheet, row, column, figure, look)
        else:
            self.book.add_quantity(self.sheet, row, column, figure, look)
            self._leads(row, column, leads)

    def _leads(self, row: int, column: int, figure: Node | None) -> None:
        """A cell leads to where a figure will stand, if it has a place."""
        if isinstance(figure, Input | Quantity):
            self.links.append((self.sheet.cells[row, column], figure))

    def _module(self, row: ModuleRow, share: Node | None) -> None:
        """One module; without a share one that is not run."""
        sheet, at = self.sheet, self.row
        ink = style.GREY if share is None else style.INK
        look = style.aired("0", colour=style.MUTE, size=9.5, **_LINE)
        sheet.set_cell(at, NUMBER, Cell(look, number=row.number))
        self._leads(at, NUMBER, self._block("prefill", row))
        self.book.add_constant(sheet, at, MODULE, row.name, _NAME.but(colour=ink))
        sheet.set_text(at, KIND, row.kind, _TEXT.but(bold=True, colour=style.NAVY))
        if row.layers is not None:
            fact = weakest([self.architecture.facts[name] for name in row.counts])
            self._live(at, LAYERS, row.layers, _BESIDE.but(fill=_tint(fact)))
        whole = style.aired("#,##0", **_LINE)
        if row.times is None:
            sheet.set_cell(at, TIMES, Cell(whole, number=1))
        else:
            self._live(at, TIMES, row.times, whole, row.times)
        fact = weakest([self.architecture.facts[n] for n in row.facts if n in self.architecture.facts])
        self._dims(row, _tint(fact))
        of_tensors = row.parameters.body if isinstance(row.parameters, Quantity) else None
        look = style.aired(_WHOLE, colour=style.LINK, **_LINE)
        self._place(at, ALL, row.parameters, look, of_tensors)
        if row.dtype is not None:
            self._live(at, FORMAT, row.dtype, _BESIDE.but(colour=style.LINK))
        self._bytes(row, share)
        self._live(at, SPLIT, row.shared, _TEXT)
        if row.cache is not None:
            look = style.aired(_PER[row.cache.unit], size=9.5, colour=style.MEMORY_TEXT, **_LINE)
            self._place(at, CACHE, row.cache, look, self._block("decode", row))
        if fact is not None:
            words = origin_words(row, row.remark or self._words(fact))
            if row.as_made is not None:
                mark_beginning(sheet, at, ORIGIN, TYPED, style.ALERT)
            self._live(at, ORIGIN, words, _BESIDE.but(fill=_tint(fact), wrap=bool(row.remark)))
        sheet.set_style(at, 0, ORIGIN, style.LABEL.but(**_LINE))
        of_name = needed_height(str(row.name.value), _NAME, sheet.widths[MODULE])
        of_remark = needed_height(row.remark, _TEXT, sheet.widths[ORIGIN]) if row.remark else 0
        sheet.heights[at] = max(20, of_name, of_remark)
        self.row += 1

    def _block(self, phase: str, row: ModuleRow) -> Quantity | None:
        """The time of a module in a layer, in a phase."""
        equations = self.book.estimate.equations
        work = equations.prefill if phase == "prefill" else equations.decode
        return next((block.layer_time for block in work.blocks if block.id == row.id), None)

    def _words(self, fact: Fact) -> str:
        """Where a fact comes from, and as much as fits of the reason where no field says it."""
        word = origin(fact)
        if word == "override":
            return self._cut(f"{TYPED}: {fact.source}", ORIGIN, ORIGIN + 1)
        if word in ("config", "derived"):
            return word
        reason = fact.source.partition(": ")[2] or fact.source.partition("default of ")[2].rpartition(".")[2]
        return self._cut(f"{word}: {reason}", ORIGIN, ORIGIN + 1) if reason else word

    def _cut(self, text: str, first: int, end: int) -> str:
        """As much of a text as is seen in the columns from the first up to the end."""
        return cut_to(text, _TEXT.size, sum(self.sheet.widths[first:end]))

    def _dims(self, row: ModuleRow, tint: str | None) -> None:
        """So many matrices of outputs x inputs, or a width."""
        if row.dims is None:
            return
        several = '#,##0" ×"'
        for column, figure, form in (
            (COPIES, row.dims.copies, several),
            (OUT, row.dims.outputs, "#,##0" if row.dims.inputs is None else several),
            (IN, row.dims.inputs, "#,##0"),
        ):
            look = style.aired(form, fill=tint, colour=style.LINK, **_LINE)
            if figure is None:
                self.sheet.set_style(self.row, column, column, look)
            else:
                self._live(self.row, column, figure, look)

    def _bytes(self, row: ModuleRow, share: Node | None) -> None:
        """Bytes of a module, shown in GB, and its share of all."""
        look = style.aired(_GB, **_LINE)
        if isinstance(row.bytes, Input):
            self.book.add_constant(self.sheet, self.row, SIZE, row.bytes, look)
        else:
            self.book.add_quantity(self.sheet, self.row, SIZE, row.bytes, look)
        if share is not None:
            self._live(self.row, SHARE, share, style.aired('[=0]"–";[<0.01]"< 1%";0%', **_LINE))

    def _sum(self) -> None:
        """All modules that run, and whether that is the list of tensors."""
        sheet, at, shown = self.sheet, self.row, self.shown
        rule = {"top": (style.THIN, style.INK), "bottom": (style.THIN, style.INK), "bold": True}
        sheet.set_text(at, MODULE, "All that a pass runs", style.LABEL.but(**rule))
        if shown.order is not None:
            as_made = style.Style(size=9.5, form='[=1]"order as made";"counts edited"').but(**rule)
            self.book.add_quantity(sheet, at, LAYERS, shown.order, as_made)
        self.book.add_quantity(sheet, at, ALL, shown.parameters, style.aired(_WHOLE, **rule))
        self.book.add_quantity(sheet, at, SIZE, shown.bytes, style.aired(_GB, **rule))
        look = style.Style(size=9.5, colour=style.PASS).but(**rule)
        sheet.set_formula(at, SPLIT, shown.check, look)
        mark_beginning(sheet, at, SPLIT, "✗", style.FAIL)
        sheet.set_style(at, 0, ORIGIN, style.LABEL.but(**rule))
        sheet.heights[at] = 22
        self.row += 1

    # --- below the modules ------------------------------------------------------------------------

    def _block_head(self, row: int, first: int, last: int, title: str) -> None:
        self.sheet.set_text(row, first, title, style.SECTION_HEAD)
        self.sheet.set_style(row, first + 1, last, style.SECTION_HEAD)

    def _unread(self, row: int) -> int:
        """What the config said that was not used; the row after it."""
        sheet, unread = self.sheet, self.architecture.unread
        self._block_head(row, 0, LAYERS, "What the config said that was not used")
        if unread is None:
            sheet.set_text(
                row + 1, 0, "Not recorded: this model was entered without its whole config.", _SMALL
            )
            return row + 2
        for column, head in ((0, "field"), (SPLIT, "value"), (CACHE, "why it changes nothing")):
            sheet.set_text(row + 1, column, head, style.HEADER)
        sheet.set_style(row + 1, 0, LAYERS, style.HEADER)
        at = row + 2
        for path, value in sorted(
            unread.items(), key=lambda field: (why_unread(*field) is not None, field[0])
        ):
            why = why_unread(path, value)
            look = _TEXT if why else _TEXT.but(bold=True, colour=style.ALERT, fill=style.ALERT_FILL)
            sheet.set_text(at, 0, self._cut(path if why else f"! {path}", 0, SPLIT), look)
            sheet.set_text(at, SPLIT, self._cut(value, SPLIT, CACHE), look)
            sheet.set_text(at, CACHE, why or "not known: check the model class", look)
            sheet.set_style(at, 0, LAYERS, look)
            at += 1
        return at

    def _layout(self, row: int) -> int:
        """What lies in the cache; the row after it."""
        self._block_head(row, _LABEL, ORIGIN, "Cache layout")
        at = row + 1
        for label, figure in self.shown.layout:
            self.sheet.set_text(at, _LABEL, label, _SMALL.but(indent=1, **_LINE))
            look = _CACHED if isinstance(figure, str) else _CACHED.but(form="#,##0.###")
            self._live(at, _SAID, figure, look)
            self.sheet.set_style(at, _LABEL, ORIGIN, _CACHED)
            at += 1
        return at

    def _variant(self, row: int) -> int:
        """Flags and other choices of the class; the row after them."""
        self._block_head(row, _LABEL, ORIGIN, "Variant, as read")
        at = row + 1
        for label, value, fact in self._choices():
            self.sheet.set_text(at, _LABEL, self._cut(label, _LABEL, _SAID), _BESIDE.but(colour=style.GREY))
            said = self._cut(value, _SAID, ORIGIN) if isinstance(value, str) else value
            self._live(at, _SAID, said, _TEXT)
            self.sheet.set_text(at, ORIGIN, self._words(fact), _TEXT.but(fill=_tint(fact)))
            self.sheet.set_style(at, _LABEL, ORIGIN, _TEXT)
            at += 1
        return at

    def _choices(self) -> Iterator[tuple[str, Node | str, Fact]]:
        for name, choice in sorted(self.architecture.choices.items()):
            yield name.replace("_", " "), choice.value, _as_fact(choice)
        for name, fact in self.architecture.facts.items():
            kind = FACTS.get(name)
            if kind is not None and kind.unit == "flag":
                yield kind.label, flag_words(self.book.estimate.equations.ir.facts[name]), fact


_BAR = {
    "type": "data_bar",
    "bar_solid": True,
    "data_bar_2010": True,
    "bar_color": style.CAPACITY_BAR,
    "min_type": "num",
    "max_type": "num",
    "min_value": 0,
    "max_value": 1,
}


def _as_fact(choice: Fact | Choice) -> Fact:
    """A choice as a fact: its origin and source are what matters."""
    return choice if isinstance(choice, Fact) else Fact(value=0, origin=choice.origin, source=choice.source)


def _tint(fact: Fact | None) -> str | None:
    """The fill of cells by where a fact comes from."""
    return None if fact is None else style.ORIGINS[origin(fact)]
