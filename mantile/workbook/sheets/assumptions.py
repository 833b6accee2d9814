"""The Assumptions sheet: what the estimate takes on trust, most consequential first."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.assembly import DECODE
from mantile.equations.checks import TOLERANCE
from mantile.equations.efficiency import Efficiency
from mantile.graph.quantity import Input, Quantity, absolute, where
from mantile.workbook import style
from mantile.workbook.book import Book, Cell, Sheet
from mantile.workbook.sheets.furniture import furnish

_NUDGE = 1.1
_STATEMENTS = {
    "gemm_launch": "A matrix product costs this before its first byte",
    "gemm_compute": "A large matrix product reaches this share of the dense peak",
    "gemm_bandwidth": "A product that streams its weights reaches this share of memory bandwidth",
    "gemm_bandwidth_scale": "Products in a serving run reach this multiple of the measured bandwidth",
    "launch_scale": "Kernels launched from a graph cost this share of their measured overhead",
    "moe_launch": "The grouped products of a layer's experts cost this before their first byte",
    "moe_compute": "Large grouped products reach this share of the dense peak",
    "moe_bandwidth": "Grouped products that stream experts reach this share of memory bandwidth",
    "moe_launch_scale": "Expert kernels launched from a graph cost this share of their measured overhead",
    "moe_bandwidth_scale": "Experts in a serving run are streamed at this multiple of the measured rate",
    "moe_early": "Kernels for experts took this many times longer in engines before December 2025",
    "routing_spread": "Routing touches as many experts as uniform routing of tokens to this power",
    "expert_imbalance": "The busiest rank's experts do this multiple of the mean work",
    "latent_launch": "A latent attention kernel costs this before its first byte",
    "latent_decode": "Decode reads the latents at this share of bandwidth",
    "latent_compute": "Absorbed decode attention reaches this share of the bf16 peak",
    "state_launch": "A recurrent kernel costs this before its first byte",
    "state_bandwidth": "Recurrent states are read and written at this share of bandwidth",
    "attention_launch": "An attention kernel costs this before its first byte",
    "attention_prefill": "Fused causal attention reaches this share of the bf16 peak",
    "attention_prefill_scale": "Prefill attention in a serving run reaches this share of its measured rate",
    "attention_decode": "Decode attention reads the KV cache at this share of bandwidth",
    "attention_decode_scale": "Decode attention in a serving run reaches this share of its measured rate",
    "small_kernel": "A fused elementwise kernel costs this before its bytes",
    "elementwise_bandwidth": "Norms and activations stream at this share of bandwidth",
    "step_host": "The scheduler spends this per step on the host",
    "step_row": "The scheduler spends this per request and step on the host",
    "one_shot_latency": "An all-reduce in which every rank reads all others costs this before its bytes",
    "one_shot_bandwidth": "Such an all-reduce reaches this share of the links",
    "two_shot_latency": "An all-reduce that scatters and gathers at once costs this before its bytes",
    "two_shot_bandwidth": "Such an all-reduce reaches this share of the links",
    "in_switch_latency": "An all-reduce summed by the switch costs this before its bytes",
    "in_switch_bandwidth": "Such an all-reduce reaches this share of the links",
    "ring_latency": "A collective around a ring costs this to start",
    "ring_step": "Every step around a ring costs this",
    "ring_bandwidth": "A ring reaches this share of the links",
    "torus_hop": "Every hop along an axis of a torus costs this",
    "torus_bandwidth": "A collective over a torus reaches this share of the links",
    "all_reduce_latency_scale": "All-reduces in a serving run cost this share of their measured latency",
    "gather_latency": "An all-gather or a reduce-scatter costs this before its bytes",
    "gather_bandwidth": "An all-gather or a reduce-scatter reaches this share of the links",
    "all_to_all_latency": "An all-to-all costs this before its bytes",
    "all_to_all_bandwidth": "An all-to-all reaches this share of the links",
    "network_latency": "A step between domains costs this before its bytes",
    "network_bandwidth": "Messages between domains reach this share of the network",
    "p2p_latency": "A message between pipeline stages costs this before its bytes",
    "p2p_bandwidth": "A message between stages reaches this share of the link",
    "all_reduce_overlap": "This share of all-reduce time is hidden behind computation",
    "gather_overlap": "This share of gathering and scattering is hidden behind computation",
    "all_to_all_overlap": "This share of sending tokens to experts is hidden behind computation",
    "p2p_overlap": "This share of the time between stages is hidden behind computation",
    "kv_transfer_overlap": "This share of the KV transfer follows prefill layer by layer",
    "host_link": "Reads from host memory reach this share of its link",
    "interference": "Other requests' prefills delay decode by this share of their time",
    "queueing": "A new request waits this much longer behind other prompts than the scheduler's closed form says",
    "prefill_alone": "The pass of a lone prompt takes this many times what is estimated",
    "step_lag": "Around its prefill a request waits for this many decode steps",
    "cold_start": "The first wave of a benchmark waits this long for compilation and caches",
    "first_token": "Request handling adds this to the first token",
    "memory_usable": "The engine takes this share of memory for weights and KV cache",
    "runtime_reserve": "Context, graphs and communication buffers take this much memory",
}


@dataclass(frozen=True)
class _Line:
    figure: Quantity
    statement: str
    source: str
    status: str
    ttft: float
    tpot: float


def _lines(book: Book) -> list[_Line]:
    """Every factor with the effect of raising it by a tenth, as the native engine finds it when the file is made."""
    estimate = book.estimate
    equations = estimate.equations
    inputs = estimate.inputs(0)
    base = book.estimate_values[0]
    served = equations.serving
    program = estimate.program
    found = []
    known = equations.figures
    seen: set[Quantity] = set()
    for side in equations.sides:
        reached = side.efficiency
        for kind in reached.kinds():
            figure = reached.factors[kind.name]
            if figure.id not in known or figure in seen:
                continue  # decode workers share it, or have no use for it
            seen.add(figure)
            decode = side is not equations.side
            higher = {item.id: item.value * _NUDGE for item in reached.figures[kind.name] if isinstance(item.value, int | float)}
            name = f"{DECODE if decode else ''}efficiency.{kind.name}.override"
            given = inputs.get(name)
            if isinstance(given, int | float):
                higher[name] = given * _NUDGE
            changed = program.run(inputs | higher)
            ttft, tpot = (float(changed[result]) / float(base[result]) - 1 for result in (served.ttft, served.tpot))
            status, _, source = _figure_in_use(book, reached, kind.name, figure).source.partition(": ")
            statement = _STATEMENTS[kind.name] + (", on decode workers" if decode else "")
            found.append(_Line(figure, statement, source, status.split(" ")[0], ttft, tpot))
    return sorted(found, key=lambda line: -max(abs(line.ttft), abs(line.tpot)))


def _figure_in_use(book: Book, reached: Efficiency, name: str, figure: Quantity) -> Input:
    """The library figure behind a factor of the base scenario: of those equal to it, the one of the highest level."""
    values = book.estimate_values[0]
    scale = {"s": 1e6, "B": 1e-9, "B/s": 1e-9}.get(figure.unit, 1.0)
    rows = reached.in_use[name]
    value = float(values[figure]) * scale
    fitting = [row for row in rows if abs(float(values[row[0]]) - value) <= 1e-9 * abs(value)] or list(rows)
    return max(fitting, key=lambda row: reached.level(row[1], values))[0]


def assumptions_sheet(book: Book, master: Quantity) -> Sheet:
    """Lay out the Assumptions sheet."""
    sheet = book.add(Sheet("Assumptions", "control", "Everything this estimate takes on trust, most consequential first. Effect = change "
                           "of the result if the figure is a tenth higher, as generated."))  # fmt: skip
    sheet.widths = [48, 450, 116, 64, 116, 90, 380, 84, 80, 80]
    sheet.default_height = 24
    last = 9
    furnish(book, sheet, "Assumptions", last, master)
    sheet.heights |= {2: 6, 3: 22}
    heads = ("no.", "assumption", "value", "unit", "as generated", "changed", "source", "status", "TTFT", "TPOT")
    for column, head in enumerate(heads):
        sheet.text(3, column, head, style.HEADER_RIGHT if column in (2, 4, 8, 9) else style.HEADER)
    sheet.freeze, sheet.repeat_rows = (4, 2), (0, 3)
    under = (style.THIN, style.FAINT)
    row = 4
    for number, line in enumerate(_lines(book), 1):
        unit = line.figure.unit
        sheet.text(row, 0, f"A-{number:02d}", style.SOURCE.but(bottom=under))
        sheet.text(row, 1, line.statement, style.LABEL.but(bottom=under))
        sheet.formula(row, 2, line.figure, style.value(unit, role="link").but(bottom=under), link=book.anchor(line.figure))
        sheet.text(row, 3, style.shown_unit(unit), style.UNIT.but(bottom=under))
        default = Input(f"assumption.{line.figure.id}", f"As generated, {line.figure.label}", unit,
                        float(book.estimate_values[0][line.figure]), shared=True, fixed=True)  # fmt: skip
        book.fix(sheet, row, 4, default, style.value(unit, role="fixed").but(bottom=under))
        sheet.formula(row, 5, where(absolute(line.figure - default) > TOLERANCE * absolute(default), 1, 0),
                      style.front("changed", colour=style.ALERT, bold=True).but(bottom=under))  # fmt: skip
        sheet.text(row, 6, line.source, style.SOURCE.but(bottom=under))
        assumed = line.status == "assumed"
        sheet.text(row, 7, "! assumed" if assumed else line.status,
                   style.LABEL.but(bottom=under, bold=assumed, colour=style.ALERT if assumed else style.INK))  # fmt: skip
        for column, effect in ((8, line.ttft), (9, line.tpot)):
            look = style.front("effect", align="right").but(form=";".join(part + "_)_)" for part in style.FRONT["effect"].split(";")), bottom=under)
            sheet.put(row, column, Cell(look, number=round(effect, 6)))
        sheet.ids[row] = line.figure.id
        row += 1
    for column in (8, 9):
        sheet.conditional.append(((4, column, row - 1, column), {
            "type": "data_bar", "bar_solid": True, "data_bar_2010": True, "bar_color": style.SHARE_BAR,
            "bar_negative_color": style.CAPACITY_BAR, "bar_axis_color": style.HAIRLINE, "min_type": "num", "max_type": "num",
            "min_value": -0.15, "max_value": 0.3}))  # fmt: skip
    row += 1
    for words in ("Workload: a closed loop keeps the stated number of requests in flight; lengths are the same for all of them.",
                  "Data types: norms and biases stay in 16 bit; kernels hand on 16-bit results; the KV cache holds whole requests.",
                  "Parallelism: stages of a pipeline work on different requests; replicas share the requests evenly."):  # fmt: skip
        sheet.text(row, 0, words, style.PURPOSE)
        row += 1
    sheet.print_area = (0, 0, row - 1, last)
    return sheet

