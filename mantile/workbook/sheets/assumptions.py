"""The assumptions on Audit: what the estimate takes on trust, numbered, most consequential first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mantile.equations.assumption import Assumption, Origin, assumption, origin, overridden
from mantile.equations.display import LETTERS
from mantile.equations.sensitivity import SensitivityInput
from mantile.equations.trace import Trace
from mantile.estimates.overrides import SOURCE, by_scenario, overrides, source
from mantile.estimates.sensitivity import MEANING, InputEffects
from mantile.graph.evaluate import Program
from mantile.graph.quantity import NOT_KNOWN, Input, Named, Quantity, Value, precedents
from mantile.workbook import style
from mantile.workbook.book import ACROSS, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.audit import ASSUMPTIONS, LAST
from mantile.workbook.sheets.cases import value_cell
from mantile.workbook.sheets.frame import add_part, mark_beginning, needed_height
from mantile.workbook.sheets.trace import add_figures
from mantile.workbook.text_width import cut_to

_HEADS = (
    "no.",
    "assumption",
    "used on",
    "source",
    "status",
    "value",
    "unit",
    "default",
    "changed",
    "TTFT",
    "TPOT",
    "USD/M",
)
_USED, _SOURCE, _STATUS, _VALUE, _UNIT, _DEFAULT, _CHANGED = range(2, 9)
_FIRST_EFFECT = 9
_ROW = 17  # least height of a row
_TIGHT = 1  # pixel less beside a text than elsewhere: the list is long, and prints on two pages
_UNDER = (style.THIN, style.FAINT)
_SAID = style.ROW_LABEL.but(size=9.5)
_ORIGIN = style.SOURCE.but(bottom=_UNDER)
_MEANING_OF_OVERRIDES = (
    "Figures that a scenario states itself. Effect = change of the result from the default to the value."
)
_REMARKS = (
    "Workload: lengths are means, drawn as the range of lengths on Inputs says; the concurrency stays, or "
    "follows from a request rate.",
    "Data types: norms and biases stay in 16 bit; kernels hand on 16-bit results; "
    "the KV cache holds whole requests.",
    "Parallelism: stages of a pipeline work on different requests; replicas share the requests evenly.",
)
_STATEMENTS = {
    "concurrency": "Requests arrive in a closed loop: so many are always in flight",
    "request_rate": "So many requests arrive per second, at random and whatever is in flight",
    "sessions": "So many people or agents send a request, wait for its answer, think and send the next",
    "input_tokens": "Prompts have this many tokens, mean; none are shared or cached",
    "output_tokens": "Answers have this many tokens, mean",
    "utilisation": "Accelerators carry this load for this share of the hours paid for",
    "electricity_price": "A kilowatt-hour costs this",
    "pue": "The building draws this multiple of what the machines draw",
    "compute_speed": "All FLOP/s reached are this share of what datasheet and efficiency give",
    "network_speed": "All links between accelerators have this share of their bandwidth",
    "price": "An accelerator costs this per hour on the price basis asked for",
    "gemm_launch": "A matrix product costs this before its first byte",
    "gemm_compute": "A large matrix product reaches this share of the dense peak",
    "gemm_bandwidth": "A product that streams its weights reaches this share of memory bandwidth",
    "gemm_bandwidth_scale": "Products in a serving run reach this multiple of the measured bandwidth",
    "launch_scale": "Kernels launched from a graph cost this share of their measured overhead",
    "moe_launch": "The grouped products of a layer's experts cost this before their first byte",
    "moe_compute": "Large grouped products reach this share of the dense peak",
    "moe_bandwidth": "Grouped products that stream experts reach this share of memory bandwidth",
    "moe_widening": "Grouped products widen weights that they do not multiply in no faster than this",
    "moe_launch_scale": "Expert kernels launched from a graph cost this share of their measured overhead",
    "moe_bandwidth_scale": "Experts in a serving run are streamed at this multiple of the measured rate",
    "launch_current": "Launches of engines since May 2026 take this share of those of engines before",
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
    "attention_prefill_fp8": "Attention of prompts over an fp8 cache runs at this rate against 16 bit",
    "moe_sent": "Experts multiply tokens that were sent to them at this rate against others",
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
    "queueing": "A new request waits this much longer behind other prompts "
    "than the scheduler's closed form says",
    "eager_launch": "The host takes this long to start an operation of a prompt outside a graph",
    "eager_mode_launch": "Without graphs and compilation the host takes this long to start an operation",
    "step_lag": "Around its prefill a request waits for this many decode steps",
    "expert_cold_start": "The warm-up burst of a benchmark waits this long per billion parameters of experts",
    "cold_start": "The warm-up burst of a benchmark waits this long for compilation and caches",
    "first_token": "Request handling adds this to the first token",
    "memory_usable": "The engine takes this share of memory for weights and KV cache",
    "runtime_reserve": "What lies outside the framework takes this much memory on a rank by itself",
    "communication_reserve": "Buffers of collectives take this much memory",
    "switch_reserve": "Where the switch reduces they take this much more",
    "graph_memory": "Graphs take this much memory per layer, twice as much where ranks work together",
    "graphs_inside": "Graphs count in the share of memory that the engine takes, if 1",
    "scores_held": "Attention writes its scores down, if 1",
    "logits_of_all": "There is room for the logits of every token of a step, if 1",
    "host_process": "The processes that serve a rank take this much memory of the host",
    "sampler_copies": "Sampling at the start holds this many copies of all logits",
}


LiveEffects = Mapping[str, Mapping[str, Quantity]]
"""By id of the input and key of the result: effects that What-if works out."""


def add_assumptions(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    effects: Sequence[InputEffects],
    live: LiveEffects,
    found: Trace,
) -> int:
    """What the estimate takes on trust, from a row on; the row after it.

    Args:
        effects: what the results follow from, most consequential first, with its effects as generated.
        live: the effects that follow the inputs.
        found: where figures come from.
    """
    note = f"everything this estimate takes on trust, most consequential first. {MEANING}; * as generated"
    start = row
    row = add_part(sheet, row, ASSUMPTIONS, note, LAST)
    sheet.breaks.append(start)
    sheet.heights[row] = 22
    for column, head in enumerate(_HEADS):
        right = column in (_VALUE, _DEFAULT) or column >= _FIRST_EFFECT
        sheet.set_text(row, column, head, style.HEADER_RIGHT if right else style.HEADER)
    first = row + 1
    used = _used_on(book)
    own = {item.id: item for item in overrides(book.estimate)}
    origins: dict[str, Origin] = {}
    for row, item in enumerate(effects, first):
        figure = item.input.figure
        override = own.get(item.input.id)
        value = book.estimate_values[0][figure] if override is None else override.without[figure]
        generated = value if isinstance(value, str) else float(value)
        sheets = ", ".join(used.get(figure, ()))
        origins[item.input.id] = _assumption(
            book, sheet, row, row - first + 1, item.input, sheets, generated, found
        )
        _effects(book, sheet, row, item.effects, live.get(item.input.id, {}))
    _heights(book, sheet, {row: origins[item.input.id].source for row, item in enumerate(effects, first)})
    row = _overrides(book, sheet, first + len(effects), used)
    _bars(sheet, first, row - 1)
    for below, remark in enumerate(_REMARKS, 1):
        sheet.set_text(row + below, 0, remark, style.PURPOSE)
        sheet.heights[row + below] = _ROW
    return add_figures(book, sheet, row + len(_REMARKS) + 2, LAST, found)


def statement(item: SensitivityInput) -> str:
    """What is taken on trust, in a sentence."""
    workers = ", on decode workers" if item.id.startswith("decode.") else ""
    return _STATEMENTS[item.id.rpartition(".")[2]] + workers


def _used_on(book: EstimateBook) -> dict[Named, tuple[str, ...]]:
    """Sheets and parts of them in which figures are used, by figure."""
    sheets: dict[Named, dict[str, None]] = {}
    for name, sections in book.estimate.equations.sheets.items():
        for section in sections:
            for figure in section.figures():
                for other in precedents(figure) if isinstance(figure, Quantity) else ():
                    sheets.setdefault(other, {})[section.part or name] = None
    return {figure: tuple(names) for figure, names in sheets.items()}


def _assumption(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    number: int,
    item: SensitivityInput,
    used: str,
    generated: Value,
    found: Trace,
) -> Origin:
    """What is taken on trust, where it is used, its value beside its default, and where it comes from."""
    figures = assumption(item, generated)
    origins = origin(item, figures.changed, found.sources.get(item.figure))
    _words(sheet, row, f"A-{number:02d}", statement(item), used)
    _origin(book, sheet, row, (origins.status, origins.source))
    integer = isinstance(item.figure, Input) and item.figure.integer
    _figures(book, sheet, row, figures, integer, book.link_to(item.figure))
    sheet.ids[row] = item.id
    return origins


def _overrides(book: EstimateBook, sheet: Sheet, row: int, used: Mapping[Named, Sequence[str]]) -> int:
    """The overrides of all scenarios below the assumptions, if there are any; the row after the last."""
    items = list(by_scenario(book.estimate))
    if not items:
        return row
    row += 1
    sheet.set_text(row, 0, "Overrides", style.SECTION_HEAD)
    sheet.set_text(row, 1, _MEANING_OF_OVERRIDES, style.SECTION_HEAD.but(bold=False))
    sheet.set_style(row, 2, LAST, style.SECTION_HEAD)
    everywhere = len(book.estimate.columns)
    for number, (columns, item) in enumerate(items, 1):
        row += 1
        label = item.cell.label.removeprefix("Override, ")
        letters = ", ".join(LETTERS[column] for column in columns)
        of = "the scenario states" if len(columns) == everywhere else f"scenario {letters} states"
        sheets = ", ".join(used.get(item.figures[0], ()))
        _words(sheet, row, f"O-{number:02d}", f"{label}, as {of} it", sheets)
        said = source(item.reason)
        _origin(book, sheet, row, (SOURCE, said))
        _heights(book, sheet, {row: said})
        overridable = book.estimate.equations.overridable.get(item.id)
        default = item.default if overridable is None else overridable.defaults[0]
        figures = overridden(f"override.{number}.{item.id}", label, item.cell, default)
        _figures(
            book,
            sheet,
            row,
            figures,
            getattr(item.cell, "integer", True),
            book.link_to(item.cell, columns[0]),
            columns[0],
        )
        _effects(book, sheet, row, item.effects, {})
        sheet.ids[row] = f"override.{number}.{item.id}"
    return row + 1


def _words(sheet: Sheet, row: int, number: str, said: str, sheets: str) -> None:
    """Number, statement and sheets."""
    sheet.set_text(row, 0, number, _ORIGIN)
    sheet.set_text(row, 1, said, _SAID.but(bottom=_UNDER))
    sheet.set_text(row, _USED, cut_to(sheets, _ORIGIN.size, sheet.widths[_USED]), _ORIGIN)
    sheet.heights[row] = max(_ROW, needed_height(said, _SAID, sheet.widths[1]) - _TIGHT)


def _origin(book: EstimateBook, sheet: Sheet, row: int, origins: Sequence[Quantity | str]) -> None:
    """Status and source, live unless they are texts."""
    for column, words in zip((_STATUS, _SOURCE), origins, strict=True):
        if isinstance(words, Quantity):
            book.add_quantity(sheet, row, column, words, _ORIGIN)
        else:
            sheet.set_text(row, column, words, _ORIGIN)
    mark_beginning(sheet, row, _STATUS, "assumed", style.ALERT)


def _heights(book: EstimateBook, sheet: Sheet, sources: Mapping[int, Quantity | str]) -> None:
    """Each source is seen whole as it is now."""
    live = [stated for stated in sources.values() if isinstance(stated, Quantity)]
    now = Program(live).run(book.estimate.inputs(0))
    for row, stated in sources.items():
        said = stated if isinstance(stated, str) else str(now[stated])
        needed = needed_height(said, _ORIGIN, sheet.widths[_SOURCE]) - _TIGHT
        sheet.heights[row] = max(sheet.heights[row], needed)


def _figures(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    figures: Assumption,
    integer: bool,
    link: str,
    scenario: int = 0,
) -> None:
    """Value, unit, default, and whether both differ."""
    unit = figures.value.unit
    look = style.value(unit, role="link", integer=integer).but(bottom=_UNDER)
    book.add_quantity(sheet, row, _VALUE, figures.value, look, scenario, link)
    sheet.set_text(row, _UNIT, style.shown_unit(unit), style.UNIT.but(bottom=_UNDER))
    look = style.value(unit, role="fixed", integer=integer).but(bottom=_UNDER)
    if isinstance(figures.default, Input):
        book.add_constant(sheet, row, _DEFAULT, figures.default, look)
    else:
        book.add_quantity(sheet, row, _DEFAULT, figures.default, look, scenario)
    look = style.front("changed", colour=style.ALERT, bold=True).but(bottom=_UNDER)
    book.add_quantity(sheet, row, _CHANGED, figures.changed, look, scenario)


def _effects(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    effects: Mapping[str, float | None],
    live: Mapping[str, Quantity],
) -> None:
    """The effect on each result: live where What-if has the input, else as generated."""
    parts = style.FRONT["effect"].split(";")
    look = style.Style(form=";".join(f"{part}_)_)" for part in parts), align="right", bottom=_UNDER)
    stored = look.but(form=";".join(f'{part}"*"' for part in parts), colour=style.GREY)
    for column, (key, effect) in enumerate(effects.items(), _FIRST_EFFECT):
        if key in live:
            book.add_quantity(sheet, row, column, live[key], look.but(colour=style.LINK), scenario=ACROSS)
        else:
            value = NOT_KNOWN if effect is None else round(effect, 6)
            sheet.set_cell(row, column, value_cell(stored, value))


def _bars(sheet: Sheet, first: int, last: int) -> None:
    """Bars behind the effects."""
    rule = {
        "type": "data_bar",
        "bar_solid": True,
        "data_bar_2010": True,
        "bar_color": style.SHARE_BAR,
        "bar_negative_color": style.CAPACITY_BAR,
        "bar_axis_color": style.HAIRLINE,
        "min_type": "num",
        "max_type": "num",
        "min_value": -0.45,
        "max_value": 0.9,
    }
    for column in range(_FIRST_EFFECT, LAST + 1):
        sheet.conditional.append(((first, column, last, column), rule))
