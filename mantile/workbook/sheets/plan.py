"""The Plan sheet: which accelerator of the first system holds what, live in TP, PP and DP."""

from __future__ import annotations

from mantile.equations.constants import GIGA
from mantile.graph.quantity import Input, Node, Quantity, join, maximum, minimum, remainder, text, where, whole
from mantile.workbook import style
from mantile.workbook.book import Book, Sheet
from mantile.workbook.sheets.furniture import furnish

SHOWN = 8
FIRST_GPU = 2


def plan_sheet(book: Book, master: Quantity) -> Sheet:
    """Lay out one grid per scenario."""
    sheet = book.add(Sheet("Plan", "workings", "Which accelerator holds what. Live: change TP, PP or DP on Summary and the grid "
                           "recolours. The first system is shown."))  # fmt: skip
    sheet.widths = [170, 220, *([118] * SHOWN)]
    last = FIRST_GPU + SHOWN - 1
    furnish(book, sheet, "Plan", last, master)
    sheet.heights[2] = 8
    row = 3
    gpus: tuple[Input, ...] = ()
    for column in range(book.columns):
        gpus = _numbers(column)
        row = _grid(book, sheet, row, column, gpus)
    sheet.print_area = (0, 0, row - 1, last)
    sheet.one_page = True
    return sheet


def _numbers(column: int) -> tuple[Input, ...]:
    return tuple(Input(f"placement.{column}.gpu.{n}", f"GPU {n}", "number", n, shared=True, fixed=True) for n in range(SHOWN))


def _grid(book: Book, sheet: Sheet, row: int, column: int, gpus: tuple[Input, ...]) -> int:
    equations = book.estimate.equations
    facts, plan, held, inputs = equations.ir.facts, equations.plan, equations.memory, equations.inputs
    last = FIRST_GPU + SHOWN - 1
    title = Quantity(
        f"placement.{column}.title", "Title", "1",
        join(f"{'ABCDEFGH'[column]}{' · base' if column == 0 else ''}: ", text(inputs.tp, "0"), " tensor-parallel ranks × ",
             text(inputs.pp, "0"), " stages × ", text(inputs.dp, "0"), " replicas; ", text(held.used / GIGA, "0.0"),
             " GB used on the fullest accelerator"),
    )  # fmt: skip
    book.place(sheet, row, 0, title, style.Style(size=12, bold=True, colour=style.NAVY), of=column)
    sheet.heights[row] = 26
    row += 1
    sheet.text(row, 0, "slice", style.HEADER)
    sheet.text(row, 1, "rule", style.HEADER)
    for gpu, place in zip(gpus, range(FIRST_GPU, last + 1), strict=True):
        book.fix(sheet, row, place, gpu, style.HEADER.but(align="center", form=style.FRONT["gpu"]))
    row += 1
    rows: dict[str, list[Quantity]] = {}
    start = row

    def line(name: str, label: str, rule: str, body: object, look: style.Style, unit: str = "1", height: float = 26) -> None:
        nonlocal row
        sheet.text(row, 0, label, style.LABEL)
        sheet.text(row, 1, rule, style.SOURCE)
        rows[name] = []
        for index, gpu in enumerate(gpus):
            figure = Quantity(f"placement.{column}.{name}.{index}", f"{label}, GPU {index}", unit, body(index, gpu))  # type: ignore[operator]
            book.place(sheet, row, FIRST_GPU + index, figure, look, of=column)
            rows[name].append(figure)
        sheet.heights[row] = height
        row += 1

    cell = style.Style(align="center", right=(style.THIN, style.WHITE), bottom=(style.THIN, style.WHITE))

    def used(index: int) -> Quantity:
        return rows["used"][index]

    def text_where(index: int, words: Node) -> Node:
        return where(used(index) > 0, words, "–")

    def run(low: Node, high: Node) -> Node:
        return join(text(low, "0"), " – ", text(high, "0"))

    line("used", "In use", "1 if the plan uses it",
         lambda i, gpu: where(gpu < plan.accelerators, 1, 0),
         cell.but(form='[=1]"●";"–"'), "flag", 22)  # fmt: skip
    line("replica", "Replica", "number ÷ (TP × PP)", lambda i, gpu: whole(gpu / plan.ranks_per_replica),
         cell.but(form=style.FRONT["replica"]), "number")  # fmt: skip
    line("stage", "Pipeline stage", "number; colour = stage",
         lambda i, gpu: whole(remainder(gpu, plan.ranks_per_replica) / inputs.tp),
         cell.but(form=style.FRONT["stage"]), "number")  # fmt: skip
    line("rank", "Tensor-parallel rank", "remainder of number ÷ TP", lambda i, gpu: remainder(gpu, inputs.tp),
         cell.but(form=style.FRONT["rank"]), "number")  # fmt: skip
    stage, rank = rows["stage"], rows["rank"]
    line("layer_count", "Layers held", "layers ÷ PP; the last stage takes what is left",
         lambda i, gpu: used(i) * maximum(0, minimum(plan.layers, equations.ir.total_layers - stage[i] * plan.layers)),
         cell.but(form=style.FRONT["layers"]), "layer")  # fmt: skip
    layers = rows["layer_count"]
    line("layers", "Layers", "from – to", lambda i, gpu: text_where(
        i, run(stage[i] * plan.layers + 1, stage[i] * plan.layers + layers[i])), cell)  # fmt: skip
    heads, kv_heads = plan.heads, plan.kv_heads
    if heads is not None:
        line("heads", "Query heads", "heads ÷ TP", lambda i, gpu: text_where(
            i, run(rank[i] * heads, minimum(facts["attention_heads"], (rank[i] + 1) * heads) - 1)), cell)  # fmt: skip
    if kv_heads is not None:
        line("kv_first", "First KV head", "rank × KV heads ÷ TP",
             lambda i, gpu: used(i) * whole(rank[i] * facts["kv_heads"] / inputs.tp), cell.but(form="0"), "head")  # fmt: skip
        line("kv_heads", "Last KV head", "copied where there are more ranks than heads",
             lambda i, gpu: used(i) * (minimum(facts["kv_heads"], rows["kv_first"][i] + kv_heads) - 1), cell.but(form="0"), "head")  # fmt: skip
    shards = (("ffn_size", "FFN columns", "columns ÷ TP"), ("expert_size", "Columns of every expert", "columns ÷ TP"),
              ("vocabulary", "Vocabulary rows", "rows ÷ TP; first and last stage"))  # fmt: skip
    for name, label, rule in shards:
        if name in plan.columns:
            line(name, label, rule, lambda i, gpu, name=name: text_where(
                i, run(rank[i] * plan.columns[name], minimum(facts[name], (rank[i] + 1) * plan.columns[name]) - 1)), cell)  # fmt: skip
    coloured = (start, FIRST_GPU, row - 1, last)
    stage_row = start + 2 + 1
    for number, colour in enumerate(style.STAGES):
        sheet.conditional.append((coloured, {
            "type": "formula", "criteria": f"=AND(C${start + 1}=1,MOD(C${stage_row},{len(style.STAGES)})={number})",
            "format": style.Style(fill=colour)}))  # fmt: skip

    first = held.embedding_weights if held.vision_weights is None else held.embedding_weights + held.vision_weights
    amount = style.value("GB").but(align="center", form="#,##0.0")
    line("weights", "Weights", "GB", lambda i, gpu: used(i) * (
        layers[i] / plan.layers * held.layer_weights + where(stage[i] < 1, first, 0)
        + where(stage[i] + 1 >= inputs.pp, held.head_weights, 0)) / GIGA, amount, "GB", 22)  # fmt: skip
    line("kv", "KV cache", "GB, for the batch", lambda i, gpu: held.kv * layers[i] / plan.layers / GIGA,
         amount, "GB", 22)  # fmt: skip
    line("working", "Activations, logits", "GB", lambda i, gpu: used(i) * (held.activations + held.logits) / GIGA, amount, "GB", 22)
    line("reserve", "Runtime", "GB", lambda i, gpu: used(i) * held.reserve / GIGA, amount, "GB", 22)
    line("sum", "Used", "GB; bar = share of capacity",
         lambda i, gpu: rows["weights"][i] + rows["kv"][i] + rows["working"][i] + rows["reserve"][i],
         amount.but(bold=True, top=(style.THIN, style.INK)), "GB", 24)  # fmt: skip
    for place in (0, 1):
        sheet.cells[row - 1, place].style = style.LABEL.but(bold=place == 0, top=(style.THIN, style.INK))
    capacity = float(book.estimate_values[column][equations.hardware.memory_capacity]) / 1e9
    sheet.conditional.append(((row - 1, FIRST_GPU, row - 1, last), {
        "type": "data_bar", "bar_solid": True, "data_bar_2010": True, "bar_color": style.CAPACITY_BAR, "min_type": "num",
        "max_type": "num", "min_value": 0, "max_value": round(capacity, 3)}))  # fmt: skip
    sheet.heights[row] = 14
    return row + 1
