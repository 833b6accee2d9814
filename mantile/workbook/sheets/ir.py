"""The IR sheet: what a model is made of, in order, where each fact comes from, and what was ignored."""

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
from mantile.graph.quantity import Input, Literal, Node, Quantity
from mantile.library.architecture import Choice, Fact
from mantile.library.facts import FACTS
from mantile.library.huggingface.unread import why_unread
from mantile.workbook import style
from mantile.workbook.book import Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows, cut, mark_beginning, needed_height, room_on_page
from mantile.workbook.text_width import cut_to

NUMBER, MODULE, KIND, LAYERS, TIMES, COPIES, OUT, IN, EACH, ALL, FORMAT, SIZE, SHARE, SPLIT = range(14)
_WIDTHS = (30, 166, 74, 126, 40, 44, 70, 58, 88, 108, 64, 54, 46)
_LAST_WIDTHS = (124, 102, 112)  # split, kept, origin
_APART_WIDTHS = (93, 93, 100, 52)  # split of prefill and of decode workers, kept, origin
_HEADS = (
    "no.",
    "module",
    "kind",
    "layers",
    "times",
    "copies",
    "out",
    "in",
    "params, each",
    "params, all",
    "format",
    "GB",
    "share",
)
_LEFT = (MODULE, KIND, LAYERS, FORMAT)
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
_CACHED = style.Style(size=9.5).but(**_LINE)
_TEXT = style.Style(size=9.5).but(**_LINE)
_NAME = style.LABEL.but(wrap=True, **_LINE)


def fill_ir(book: EstimateBook, shown: IrSheet, master: Quantity) -> None:
    """Lay out the IR sheet for the base scenario."""
    sheet = book.sheets["IR"]
    sheet.purpose = cut(
        "Every kind of module in the order of execution. A number leads to its block on Prefill, parameters "
        f"to Tensors, what is kept to Decode. {book.estimate.model.source}",
        190,
    )
    _Layout(book, sheet, shown).lay_out(master)


class _Layout:
    """The sheet while it is laid out."""

    def __init__(self, book: EstimateBook, sheet: Sheet, shown: IrSheet) -> None:
        self.book, self.sheet, self.shown = book, sheet, shown
        self.architecture = book.estimate.equations.ir.model.architecture
        self.apart = len(book.estimate.equations.workers) > 1
        sheet.widths = [*_WIDTHS, *(_APART_WIDTHS if self.apart else _LAST_WIDTHS)]
        self.last = len(sheet.widths) - 1
        self.cache, self.origin = self.last - 1, self.last
        equations = book.estimate.equations
        self.prefill, self.decode = (
            {block.id: block.layer_time for block in work.blocks}
            for work in (equations.prefill, equations.decode)
        )
        self.row = 0

    def lay_out(self, master: Quantity) -> None:
        """Everything from top to bottom."""
        sheet, shown = self.sheet, self.shown
        add_title_rows(self.book, sheet, "IR", self.last, master)
        del sheet.cells[0, 0]
        self.book.add_quantity(sheet, 0, 0, shown.title, style.SHEET_TITLE)
        self._key(2)
        self._heads(3)
        self.row = 4
        for row, share in zip(shown.rows, shown.shares, strict=True):
            self._module(row, share)
        sheet.conditional.append(((4, SHARE, self.row - 1, SHARE), _BAR))
        self._sum()
        for row in shown.apart:
            self._module(row, None)
        top = self.row + 1
        sheet.blocks.append((3, self.row))
        end = max(self._unread(top), self._layout(top), self._variant(top))
        sheet.blocks.append((top, end))
        sheet.print_area = (0, 0, end - 1, self.last)
        sheet.one_page = room_on_page(sheet, end - 1) >= 0
        sheet.freeze, sheet.repeat_rows = (4, 2), (0, 3)
        if not sheet.one_page and room_on_page(sheet, top - 1) >= 0:
            sheet.breaks, sheet.repeat_rows = [top], (0, 1)

    def _key(self, row: int) -> None:
        """What the tints mean, and how many facts there are of each origin."""
        facts = [*self.architecture.facts.values(), *map(_as_fact, self.architecture.choices.values())]
        counts = Counter(map(origin, facts))
        self.sheet.set_text(row, 0, f"Origin of {len(facts)} facts, as read", _SMALL)
        for name, column in zip(ORIGINS, (LAYERS, OUT, ALL, SPLIT, self.origin), strict=True):
            look = style.Style(size=9.5, bold=True, fill=style.ORIGINS[name], align="center")
            self.sheet.set_text(row, column, f"{name} {counts[name]}", look)
            if column < self.last:
                self.sheet.set_text(row, column + 1, _MEANING[name], _SMALL.but(indent=1))
        self.sheet.heights[row] = 22

    def _heads(self, row: int) -> None:
        splits = ("split, prefill", "split, decode") if self.apart else ("split over ranks",)
        for column, head in enumerate((*_HEADS, *splits, "kept, a layer", "origin")):
            right = (column < SPLIT and column not in _LEFT) or column == self.cache
            self.sheet.set_text(row, column, head, style.HEADER_RIGHT if right else style.HEADER)

    # --- modules ----------------------------------------------------------------------------------

    def _live(
        self, row: int, column: int, figure: Node | str, look: style.Style, link: str | None = None
    ) -> None:
        """A formula; a text or number that nothing changes is written as it is."""
        if isinstance(figure, Literal) and isinstance(figure.value, int):
            self.sheet.set_cell(row, column, Cell(look, number=figure.value))
        elif isinstance(figure, str | Literal):
            text = figure if isinstance(figure, str) else str(figure.value)
            self.sheet.set_text(row, column, text, look)
        else:
            self.sheet.set_formula(row, column, figure, look, link=link)

    def _place(
        self, row: int, column: int, figure: Quantity | Input, look: style.Style, link: str | None
    ) -> None:
        """A figure at a place of its own."""
        if isinstance(figure, Input):
            self.book.add_constant(self.sheet, row, column, figure, look)
        else:
            self.book.add_quantity(self.sheet, row, column, figure, look, link=link)

    def _link(self, figure: Node | None) -> str | None:
        """Where a figure stands; None where it has no place."""
        placed = isinstance(figure, Input | Quantity) and figure in self.book.addresses
        return self.book.link_to(figure) if placed else None  # type: ignore[arg-type]

    def _module(self, row: ModuleRow, share: Node | None) -> None:
        """One module; without a share one that is not run."""
        sheet, at = self.sheet, self.row
        ink = style.GREY if share is None else style.INK
        look = style.aired("0", colour=style.MUTE, size=9.5, **_LINE)
        link = self._link(self.prefill.get(row.id))
        sheet.set_cell(at, NUMBER, Cell(look, number=row.number, link=link))
        self.book.add_constant(sheet, at, MODULE, row.name, _NAME.but(colour=ink))
        sheet.set_text(at, KIND, row.kind, _TEXT.but(bold=True, colour=style.NAVY))
        if row.layers is not None:
            fact = weakest([self.architecture.facts[name] for name in row.counts])
            self._live(at, LAYERS, row.layers, _TEXT.but(fill=_tint(fact)))
        whole = style.aired("#,##0", **_LINE)
        if row.times is None:
            sheet.set_cell(at, TIMES, Cell(whole, number=1))
        else:
            self._live(at, TIMES, row.times, whole, self._link(row.times))
        fact = weakest([self.architecture.facts[n] for n in row.facts if n in self.architecture.facts])
        self._dims(row, _tint(fact))
        if row.each is not None:
            self._live(at, EACH, row.each, style.aired(_WHOLE, **_LINE))
        of_tensors = row.parameters.body if isinstance(row.parameters, Quantity) else None
        look = style.aired(_WHOLE, colour=style.LINK, **_LINE)
        self._place(at, ALL, row.parameters, look, self._link(of_tensors))
        if row.dtype is not None:
            self._live(at, FORMAT, row.dtype, _TEXT.but(colour=style.LINK))
        self._bytes(row, share)
        for column, text in enumerate(row.split, SPLIT):
            self._live(at, column, text, _TEXT)
        if row.cache is not None:
            look = style.aired(_PER[row.cache.unit], size=9.5, colour=style.MEMORY_TEXT, **_LINE)
            link = self._link(self.decode.get(row.id))
            self.book.add_quantity(sheet, at, self.cache, row.cache, look, link=link)
        if fact is not None:
            words = origin_words(row, row.remark or self._words(fact))
            if row.as_made is not None:
                mark_beginning(sheet, at, self.origin, TYPED, style.ALERT)
            self._live(at, self.origin, words, _TEXT.but(fill=_tint(fact), wrap=bool(row.remark)))
        sheet.set_style(at, 0, self.last, style.LABEL.but(**_LINE))
        of_name = needed_height(str(row.name.value), _NAME, sheet.widths[MODULE])
        of_remark = needed_height(row.remark, _TEXT, sheet.widths[self.origin]) if row.remark else 0
        sheet.heights[at] = max(20, of_name, of_remark)
        self.row += 1

    def _words(self, fact: Fact) -> str:
        """Where a fact comes from, and as much as fits of the reason where no field says it."""
        word = origin(fact)
        if word == "override":
            return self._cut(f"{TYPED}: {fact.source}", self.origin, self.last + 1)
        if word in ("config", "derived") or self.apart:
            return word
        reason = fact.source.partition(": ")[2] or fact.source.partition("default of ")[2].rpartition(".")[2]
        return self._cut(f"{word}: {reason}", self.origin, self.last + 1) if reason else word

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
        sheet.set_style(at, 0, self.last, style.LABEL.but(**rule))
        sheet.heights[at] = 22
        self.row += 1

    # --- below the modules ------------------------------------------------------------------------

    def _block_head(self, row: int, first: int, last: int, title: str) -> None:
        self.sheet.set_text(row, first, title, style.SECTION_HEAD)
        self.sheet.set_style(row, first + 1, last, style.SECTION_HEAD)

    def _unread(self, row: int) -> int:
        """What the config said that was not used; the row after it."""
        sheet, unread = self.sheet, self.architecture.unread
        self._block_head(row, 0, IN, "What the config said that was not used")
        if unread is None:
            sheet.set_text(
                row + 1, 0, "Not recorded: this model was entered without its whole config.", _SMALL
            )
            return row + 2
        for column, head in ((0, "field"), (KIND, "value"), (TIMES, "why it changes nothing")):
            sheet.set_text(row + 1, column, head, style.HEADER)
        sheet.set_style(row + 1, 0, IN, style.HEADER)
        at = row + 2
        for path, value in sorted(
            unread.items(), key=lambda field: (why_unread(*field) is not None, field[0])
        ):
            why = why_unread(path, value)
            look = _TEXT if why else _TEXT.but(bold=True, colour=style.ALERT, fill=style.ALERT_FILL)
            sheet.set_text(at, 0, self._cut(path if why else f"! {path}", 0, KIND), look)
            sheet.set_text(at, KIND, self._cut(value, KIND, TIMES), look)
            sheet.set_text(at, TIMES, why or "not known: check the model class", look)
            sheet.set_style(at, 0, IN, look)
            at += 1
        return at

    def _layout(self, row: int) -> int:
        """What lies in the cache; the row after it."""
        self._block_head(row, EACH, SHARE, "Cache layout")
        at = row + 1
        for label, figure in self.shown.layout:
            self.sheet.set_text(at, EACH, label, _SMALL.but(**_LINE))
            look = _CACHED if isinstance(figure, str) else _CACHED.but(form="#,##0.###")
            self._live(at, FORMAT, figure, look)
            self.sheet.set_style(at, ALL, ALL, _CACHED)
            at += 1
        return at

    def _variant(self, row: int) -> int:
        """Flags and other choices of the class; the row after them."""
        self._block_head(row, SPLIT, self.last, "Variant, as read")
        at = row + 1
        for label, value, fact in self._choices():
            shown = self._cut(label, SPLIT, self.cache)
            self.sheet.set_text(at, SPLIT, shown, _TEXT.but(colour=style.GREY))
            said = self._cut(value, self.cache, self.origin) if isinstance(value, str) else value
            self._live(at, self.cache, said, _TEXT)
            look = _TEXT.but(fill=_tint(fact))
            self.sheet.set_text(at, self.origin, self._words(fact), look)
            if self.apart:
                self.sheet.set_style(at, SPLIT + 1, SPLIT + 1, _TEXT)
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
